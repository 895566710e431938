//! The report of an improvement loop.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::improve::version_decision::ImproveGoal;
use crate::improve::{CaseSplit, RefusedSuggestion};
use practicum_core::model::{ComparisonVerdict, Estimate};

/// What became of a skill: `improve --json`, and `improve.json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "What became of a skill (improve --json, improve.json)")]
pub struct ImproveReport {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    pub goal: ImproveGoal,
    pub stopped: LoopEnd,
    /// Why it could not go on, if it could not.
    pub failed: Option<String>,
    /// The version it began with.
    pub baseline: Option<u32>,
    /// The best version. It is the baseline unless a better one was accepted.
    pub best: Option<u32>,
    pub baseline_pass_rate: Option<f64>,
    pub best_pass_rate: Option<f64>,
    /// Whether the skill is now the best version. If not, the user changed it meanwhile.
    pub applied: bool,
    /// What the best version changes in the baseline, as a unified diff; empty if nothing.
    pub diff: String,
    pub split: CaseSplit,
    pub rounds: Vec<ImproveRound>,
    /// `None` where the cost is not known.
    pub cost_usd: Option<f64>,
    pub seconds: f64,
}

impl ImproveReport {
    /// Gives the program's exit code. Rounds that could not be decided because cases have no result are no
    /// success, unless the target was reached without them.
    pub fn exit(&self) -> u8 {
        let undecided = self.stopped != LoopEnd::Target && self.rounds.iter().any(|round| round.unanswered);
        match self.stopped.exit() {
            0 if undecided => 3,
            exit => exit,
        }
    }
}

/// Why a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnd {
    /// The baseline passes everything, so that nothing can be shown to be better.
    TooEasy,
    /// The best version passes as much as was wanted.
    Target,
    /// Two rounds brought nothing better.
    Flat,
    /// As many rounds as were allowed.
    Rounds,
    Time,
    Cost,
    Interrupted,
    Failed,
}

impl LoopEnd {
    /// Gives the program's exit code for this end of the loop.
    pub fn exit(self) -> u8 {
        match self {
            LoopEnd::TooEasy | LoopEnd::Target | LoopEnd::Flat | LoopEnd::Rounds | LoopEnd::Time => 0,
            LoopEnd::Failed => 3,
            LoopEnd::Cost => 4,
            LoopEnd::Interrupted => 130,
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

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ImproveRound {
    /// From 1.
    pub round: u32,
    /// The version that was tried; `None` if no edit could be made.
    pub version: Option<u32>,
    pub accepted: bool,
    pub why: String,
    /// The share of runs that passed, a mean over the cases that have an answer.
    pub pass_rate: Option<f64>,
    /// How many runs of the version passed, failed, and have no answer.
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Whether it was refused because a case has no answer, of this version or of the best so far.
    pub unanswered: bool,
    /// The change of the pass rate on the tuning cases.
    pub tuning: Estimate,
    /// The same on the held-out cases.
    pub held_out: Estimate,
    /// What blind judges say of it.
    pub blind: Option<ComparisonVerdict>,
    /// Edits that were proposed and could not be made.
    pub refused: Vec<RefusedSuggestion>,
}
