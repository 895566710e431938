//! Gates: what a suite must reach, and whether it did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::summary::is_zero;
use super::{ActivationExpectation, Case, CheckKind, FailureKind, Ratio};

/// A condition that a suite must reach for the exit code 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// What is measured.
    pub name: GateName,
    /// The least value that passes, between 0 and 1.
    #[schemars(with = "f64")]
    pub threshold: Ratio,
    /// How sure it must be that the true value reaches the threshold, between 0.5 and 1: then the lower bound decides.
    /// `None` if the value itself decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>")]
    pub confidence: Option<Ratio>,
}

impl Gate {
    /// The gate of a suite that sets none.
    pub const ALL_CASES_PASS: Gate = Gate::new(GateName::AllCasesPass, Ratio::ONE);

    /// Makes a gate that the value itself decides.
    pub const fn new(name: GateName, threshold: Ratio) -> Self {
        Self { name, threshold, confidence: None }
    }

    /// Adds how sure it must be that the true value reaches the threshold. An error says what to do instead.
    pub fn with_confidence(self, confidence: f64) -> Result<Self, &'static str> {
        match self.name {
            GateName::Stability => {
                return Err("stability has no interval, so it cannot have a confidence; use pass_rate");
            }
            GateName::NoRegression => {
                return Err("no_regression has its own test and cannot have a confidence");
            }
            _ => {}
        }
        let sound = Ratio::new(confidence).filter(|share| (0.5..1.0).contains(&share.get()));
        let confidence = sound.ok_or("a confidence must be at least 0.5 (50 %) and below 1 (100 %)")?;
        Ok(Self { confidence: Some(confidence), ..self })
    }
}

/// The value that a gate measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateName {
    /// Every case passes. The threshold is normally 1.
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
    /// Every case that checks activation passes. The threshold is normally 1.
    ActivationCasesPass,
    /// The share of activations that were expected.
    Precision,
    /// The share of expected activations that happened.
    Recall,
    /// The harmonic mean of precision and recall of activation.
    F1,
    /// The share of runs in which the skill was activated exactly as expected.
    Accuracy,
    /// The share of the cases of a stored baseline that did not get worse. The threshold is normally 1.
    NoRegression,
}

impl GateName {
    /// Says whether these cases have checks that such a gate measures.
    pub(crate) fn applies_to<'c>(self, cases: impl IntoIterator<Item = &'c Case>) -> bool {
        let mut cases = cases.into_iter();
        let mut any_check = |is_it: fn(&CheckKind) -> bool| {
            cases.by_ref().flat_map(|case| &case.checks).any(|check| is_it(&check.kind))
        };
        match self {
            GateName::AllCasesPass | GateName::PassRate | GateName::NoRegression => true,
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

    /// Says whether trials that fail in this way lower the value of such a gate.
    pub fn measures(self, failure: FailureKind) -> bool {
        match self {
            GateName::AllCasesPass
            | GateName::ActivationCasesPass
            | GateName::PassRate
            | GateName::Stability
            | GateName::NoRegression => true,
            GateName::CriteriaPassRate | GateName::MeanScore => failure == FailureKind::Judged,
            GateName::Precision => failure == FailureKind::WronglyActivated,
            GateName::Recall => failure == FailureKind::NotActivated,
            GateName::F1 | GateName::Accuracy => {
                matches!(failure, FailureKind::WronglyActivated | FailureKind::NotActivated)
            }
        }
    }

    /// Every gate, in the order in which they are listed for people.
    pub const ALL: [GateName; 11] = [
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
        GateName::NoRegression,
    ];

    /// Gives the key of the gate in eval files and in `--gate`.
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
            GateName::NoRegression => "no_regression",
        }
    }

    /// Reads the key of a gate; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|gate| gate.name() == text)
    }
}

impl GateResult {
    /// Makes the result of a gate that was not measured.
    pub fn new(gate: &Gate, suite: &str, agent: Option<String>) -> Self {
        Self {
            name: gate.name,
            suite: suite.to_owned(),
            agent,
            value: None,
            low: None,
            high: None,
            worst: None,
            threshold: gate.threshold.get(),
            confidence: gate.confidence.map(Ratio::get),
            bound: None,
            spared: Vec::new(),
            too_many_flaky: Vec::new(),
            lost: Vec::new(),
            cannot_tell: Vec::new(),
            without_baseline: 0,
            not_run: 0,
            ok: false,
        }
    }

    /// Says whether the measured value is below the threshold. A gate that only lacks answers does not fail.
    pub fn fails(&self) -> bool {
        let decides = if self.confidence.is_some() { self.bound } else { self.value };
        !self.ok && decides.is_some_and(|value| value < self.threshold)
    }

    /// Says whether the gate can fail. With the threshold 0, which removes a gate, it cannot.
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
            (false, Some(value)) if self.fails() && value >= self.threshold => "not sure enough",
            (false, Some(_)) if self.fails() => "fails",
            (false, Some(_)) => "open",
        }
    }
}

/// The result of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// What was measured.
    pub name: GateName,
    /// The suite that the gate belongs to.
    pub suite: String,
    /// The agent whose trials were measured, with its model if one was requested. `None` if the suite ran with one
    /// agent. Each of several agents has to reach the threshold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The measured value; `None` if nothing was measured, and then the gate does not hold.
    pub value: Option<f64>,
    /// The lower end of the value's interval, if there is one; `high` is the upper end.
    pub low: Option<f64>,
    /// The upper end of the value's interval, if there is one.
    pub high: Option<f64>,
    /// The value if everything that is not scored had failed.
    #[serde(default)]
    pub worst: Option<f64>,
    /// The least value that passes.
    pub threshold: f64,
    /// How sure it must be that the true value reaches the threshold. Then `bound` decides and not the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The value that the true one reaches with that confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// Known-flaky cases that failed and were left out, because they fail no more often than their history predicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<String>,
    /// Known-flaky cases that failed and count all the same, because together they fail more often than their history
    /// predicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_many_flaky: Vec<String>,
    /// For `no_regression`: the cases that are clearly worse than in the baseline, or missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// For `no_regression`: the cases that fell, and of which so few runs cannot show anything. They leave the gate open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot_tell: Vec<String>,
    /// For `no_regression`: the number of cases that the baseline does not have, or has with another content.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_baseline: u64,
    /// The number of planned trials of the gate that were not run. Without them, a gate that could fail does not hold.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Whether the gate holds: the value reaches the threshold, and would also reach it if everything missing had
    /// failed, unless the user allows that much to be missing.
    pub ok: bool,
}
