//! The report of an improvement loop.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::improve::version_decision::{Confirmation, ImproveGoal};
use crate::improve::{CaseSplit, RefusedSuggestion};
use practicum_core::model::{ComparisonVerdict, Estimate, Outcome};

/// The result of an improvement loop: `improve --json`, and `improve.json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "The result of an improvement loop (improve --json, improve.json)")]
pub struct ImproveReport {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    pub goal: ImproveGoal,
    pub stopped: LoopEnd,
    /// Why the loop failed; `None` if it did not.
    pub failed: Option<String>,
    /// The version at the start of the loop.
    pub baseline: Option<u32>,
    /// The best version. It is the baseline unless fresh runs confirmed a better one.
    pub best: Option<u32>,
    /// The pass rate of the baseline: in its last fresh run if a candidate was tested against it, otherwise in its
    /// first run.
    pub baseline_pass_rate: Option<f64>,
    /// The pass rate of the best version in its last fresh run, which did not decide that it became a candidate.
    pub best_pass_rate: Option<f64>,
    /// Whether the skill is now the best version. If not, the user changed it during the loop.
    pub applied: bool,
    /// The changes from the baseline to the best version, as a unified diff.
    pub diff: String,
    pub split: CaseSplit,
    pub rounds: Vec<ImproveRound>,
    /// The cost of the loop; `None` if a part of it is unknown.
    pub cost_usd: Option<f64>,
    pub seconds: f64,
}

impl ImproveReport {
    /// Gives the outcome of the loop. Rounds that could not be decided because cases have no result are no
    /// success, unless the target was reached without them.
    pub fn outcome(&self) -> Outcome {
        let undecided = self.stopped != LoopEnd::Target && self.rounds.iter().any(|round| round.unanswered);
        match self.stopped.outcome() {
            Outcome::Passed if undecided => Outcome::Incomplete,
            outcome => outcome,
        }
    }
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// The baseline passes everything, so the evals cannot show an improvement.
    TooEasy,
    /// The best version reaches the target.
    Target,
    /// Two rounds in a row brought no candidate for an improvement.
    Flat,
    /// The greatest number of rounds is reached.
    Rounds,
    Time,
    Cost,
    Interrupted,
    Failed,
}

impl LoopEnd {
    /// Gives the outcome that this end of the loop means.
    pub fn outcome(self) -> Outcome {
        match self {
            LoopEnd::TooEasy | LoopEnd::Target | LoopEnd::Flat | LoopEnd::Rounds | LoopEnd::Time => {
                Outcome::Passed
            }
            LoopEnd::Failed => Outcome::Incomplete,
            LoopEnd::Cost => Outcome::OverBudget,
            LoopEnd::Interrupted => Outcome::Interrupted,
        }
    }

    /// Says whether the loop is over, so that it cannot be continued.
    pub fn is_final(self) -> bool {
        match self {
            LoopEnd::TooEasy | LoopEnd::Target | LoopEnd::Flat => true,
            LoopEnd::Rounds | LoopEnd::Time | LoopEnd::Cost | LoopEnd::Interrupted | LoopEnd::Failed => false,
        }
    }
}

/// One round of the loop.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ImproveRound {
    /// The number of the round, from 1.
    pub round: u32,
    /// The version that was tested; `None` if no edit could be applied.
    pub version: Option<u32>,
    pub accepted: bool,
    pub why: String,
    /// The pass rate, as a mean over the cases with a scored run.
    pub pass_rate: Option<f64>,
    /// The number of passed runs of the version; `failed` and `not_scored` count the others.
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Whether the version was not accepted because a case of it, or of the best version, has no answer.
    pub unanswered: bool,
    /// The change of the pass rate on the tuning cases.
    pub tuning: Estimate,
    /// The change of the pass rate on the held-out cases.
    pub held_out: Estimate,
    /// The test on fresh runs of this version and the best so far; `None` if the version was no candidate.
    pub confirmation: Option<Confirmation>,
    /// The verdict of the blind comparison with the best version.
    pub blind: Option<ComparisonVerdict>,
    /// Proposed edits that were refused.
    pub refused: Vec<RefusedSuggestion>,
}
