//! Gates: what a suite must reach, and whether it did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::is_zero;
use super::{ActivationExpectation, Case, CheckKind, FailureKind, Ratio};

/// What a run must reach for its exit code to be 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    pub name: GateName,
    /// Between 0 and 1.
    #[schemars(with = "f64")]
    pub threshold: Ratio,
}

impl Gate {
    /// What must be reached where nobody says otherwise.
    pub const ALL_CASES_PASS: Gate = Gate { name: GateName::AllCasesPass, threshold: Ratio::ONE };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    /// Every case passes. Its threshold is 1 by meaning.
    AllCasesPass,
    /// The share of scored trials that pass.
    PassRate,
    /// The share of judged checks that pass.
    CriteriaPassRate,
    /// The mean score of judged checks, each on a scale from 0 to 1.
    MeanScore,
    /// The smallest share of a case's trials that pass. Beside a gate on the activation cases, those cases are
    /// left out.
    Stability,
    /// Every case passes that says whether a skill must be activated. Its threshold is 1 by meaning.
    ActivationCasesPass,
    Precision,
    Recall,
    F1,
    Accuracy,
}

impl GateName {
    /// Says whether these cases have checks that such a gate measures.
    pub fn applies_to<'c>(self, cases: impl IntoIterator<Item = &'c Case>) -> bool {
        let mut cases = cases.into_iter();
        let mut any_check = |is_it: fn(&CheckKind) -> bool| {
            cases.by_ref().flat_map(|case| &case.checks).any(|check| is_it(&check.kind))
        };
        match self {
            GateName::AllCasesPass | GateName::PassRate => true,
            GateName::Stability => cases.next().is_some(),
            GateName::CriteriaPassRate | GateName::MeanScore => {
                any_check(|kind| matches!(kind, CheckKind::Judged(_)))
            }
            GateName::ActivationCasesPass
            | GateName::Precision
            | GateName::Recall
            | GateName::F1
            | GateName::Accuracy => any_check(|kind| match kind {
                CheckKind::Activation(activation) => activation.expect != ActivationExpectation::Either,
                CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => false,
            }),
        }
    }

    /// Whether trials that fail in this way lower what such a gate measures.
    pub fn measures(self, failure: FailureKind) -> bool {
        match self {
            GateName::AllCasesPass
            | GateName::ActivationCasesPass
            | GateName::PassRate
            | GateName::Stability => true,
            GateName::CriteriaPassRate | GateName::MeanScore => failure == FailureKind::Judged,
            GateName::Precision => failure == FailureKind::WronglyActivated,
            GateName::Recall => failure == FailureKind::NotActivated,
            GateName::F1 | GateName::Accuracy => {
                matches!(failure, FailureKind::WronglyActivated | FailureKind::NotActivated)
            }
        }
    }

    pub const ALL: [GateName; 10] = [
        GateName::AllCasesPass,
        GateName::PassRate,
        GateName::CriteriaPassRate,
        GateName::MeanScore,
        GateName::Stability,
        GateName::ActivationCasesPass,
        GateName::Precision,
        GateName::Recall,
        GateName::F1,
        GateName::Accuracy,
    ];

    pub fn name(self) -> &'static str {
        match self {
            GateName::AllCasesPass => "all_cases_pass",
            GateName::PassRate => "pass_rate",
            GateName::CriteriaPassRate => "criteria_pass_rate",
            GateName::MeanScore => "mean_score",
            GateName::Stability => "stability",
            GateName::ActivationCasesPass => "activation_cases_pass",
            GateName::Precision => "precision",
            GateName::Recall => "recall",
            GateName::F1 => "f1",
            GateName::Accuracy => "accuracy",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gate| gate.name() == text)
    }
}

impl GateResult {
    /// Says whether the measured value is below the threshold. A gate that only lacks answers does not fail.
    pub fn fails(&self) -> bool {
        !self.ok && self.value.is_some_and(|value| value < self.threshold)
    }

    /// Says whether any value would be too low. A user removes a gate by setting its threshold to 0.
    pub fn can_fail(&self) -> bool {
        self.threshold > 0.0
    }

    /// Gives the suite, and the agent if each of several agents has its own result: `notes with codex`.
    pub fn subject(&self) -> String {
        match &self.agent {
            Some(agent) => format!("{} with {agent}", self.suite),
            None => self.suite.clone(),
        }
    }

    /// Describes the result in a word or two.
    pub fn status(&self) -> &'static str {
        match (self.ok, self.value) {
            // A gate with the threshold 0 decides nothing.
            (true, _) if !self.can_fail() => "cannot fail",
            (true, _) => "holds",
            (false, None) => "not measured",
            (false, Some(_)) if self.fails() => "fails",
            (false, Some(_)) => "open",
        }
    }
}

/// A gate after the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    pub name: GateName,
    /// The suite whose cases it is about.
    pub suite: String,
    /// The agent whose trials it is about, with its model if one was asked for. `None` where the suite ran with one
    /// agent only. Of several agents, each has to reach the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `None` when nothing was measured: then the gate does not hold.
    pub value: Option<f64>,
    /// The ends of the value's interval, where one is known.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The value if everything without an answer had failed.
    #[serde(default)]
    pub worst: Option<f64>,
    pub threshold: f64,
    /// Flaky cases without which it holds. What they do is no worse than what they do anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<String>,
    /// Flaky cases without which it would hold, and none is spared: each could be as flaky as ever, and
    /// together they pass less often than they do anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_many_flaky: Vec<String>,
    /// Planned trials that the gate is about and that were not run. A gate that could fail does not hold without them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Whether the value reaches the threshold, and would with the worst of what is missing, unless
    /// so much may be missing.
    pub ok: bool,
}
