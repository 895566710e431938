use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Verdict;

/// What a judge noticed beside the statements it was asked about. It changes no verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Remarks {
    /// Behaviour that matters and that no statement of the case is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncovered: Vec<String>,
    /// What the agent says of its own work, held against the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub claim: String,
    /// Whether the record bears it out.
    pub verified: bool,
    pub evidence: String,
}

impl Remarks {
    pub fn is_empty(&self) -> bool {
        self.uncovered.is_empty() && self.claims.is_empty()
    }
}

/// One of several answers to the same question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Vote {
    pub verdict: Verdict,
    pub score: Option<f64>,
    pub rationale: String,
}

impl Vote {
    /// How many of each answer there are, and the share of the most frequent; `None` without votes.
    pub fn agreement(votes: &[Vote]) -> Option<String> {
        let of = |wanted: &Verdict| votes.iter().filter(|vote| vote.verdict == *wanted).count();
        let (passed, failed, all) = (of(&Verdict::Pass), of(&Verdict::Fail), votes.len());
        let most = passed.max(failed).max(all - passed - failed);
        let none = all - passed - failed;
        let told =
            || format!("{most} of {all} votes agree: {passed} pass, {failed} fail, {none} without an answer");
        (all > 0).then(told)
    }
}

/// How much there is to doubt in the marks of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubts {
    /// Checks that would also be met by an agent that did nothing of use.
    pub weak_checks: u64,
    /// Marks with a quote that is not in the record, or with none.
    pub unsupported_marks: u64,
    /// Remarks on behaviour that no check is about.
    pub uncovered: u64,
    /// Claims of agents that the record does not bear out.
    pub unverified_claims: u64,
}

/// What judges found of the evals themselves: a check that is too easily met, or behaviour that none is
/// about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvalFinding {
    pub suite: String,
    pub case: String,
    /// The check that would pass for trivial reasons; `None` where something is about no check at all.
    pub weak_check: Option<String>,
    /// Why it would, or the behaviour that matters.
    pub text: String,
    /// In how many trials a judge said so.
    pub trials: u64,
}

impl EvalFinding {
    /// One line for people.
    pub fn in_words(&self) -> String {
        let Self { suite, case, weak_check, text, trials } = self;
        let said = match weak_check {
            Some(check) => format!("weak check {check}"),
            None => "no check is about".to_owned(),
        };
        let often = if *trials > 1 { format!(" (said of {trials} trials)") } else { String::new() };
        format!("{case} of {suite}, {said}: {text}{often}")
    }
}
