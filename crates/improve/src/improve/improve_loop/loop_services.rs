//! The services that the improvement loop needs from the program, and their results.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::improve::journal::StepResult;
use crate::improve::{Analysis, CaseSplit, EditSuggestion, RefusedSuggestion};
use practicum_core::model::{ComparisonVerdict, TrialRecord};

/// The services that the loop needs. Each call may take long and cost money, and the program may be killed during
/// any of them.
pub trait LoopServices {
    /// Runs every case with the skill in a folder, as a run of this id and within this budget. With the name of a
    /// sample, only trials of the same sample are reused. If the run was stopped, says why and what it had already
    /// cost.
    fn run_version(
        &mut self,
        skill: &Path,
        run: &str,
        sample: Option<&str>,
        left: RemainingBudget,
    ) -> Result<StepResult<Result<(), LoopStop>>, LoopStop>;

    /// Gives the seconds and the cost of a run that was killed, as far as its record shows them.
    fn cost_of_killed_run(&mut self, run: &str) -> StepResult<f64>;

    fn records(&mut self, run: &str) -> Result<Vec<TrialRecord>, LoopStop>;

    /// Writes how each trial of a version was graded, as files below a folder.
    fn write_gradings(
        &mut self,
        tested: &TestedVersion,
        records: &[TrialRecord],
        folder: &Path,
    ) -> Result<(), LoopStop>;

    /// Asks for edits to a version, for the tuning cases that it failed.
    fn propose_edits(
        &mut self,
        best: &TestedVersion,
        split: &CaseSplit,
        round: u32,
    ) -> Result<StepResult<EditProposal>, LoopStop>;

    /// Has the outputs of the tuning cases compared blindly, and stores the comparisons in a folder.
    fn compare_blindly(
        &mut self,
        best: &TestedVersion,
        candidate: &TestedVersion,
        split: &CaseSplit,
        folder: &Path,
    ) -> Result<StepResult<BlindOpinions>, LoopStop>;

    /// Asks why one version did better, and for edits to it. Gives `None` if there is no answer, which does not
    /// end the loop.
    fn explain_winner(
        &mut self,
        winner: &TestedVersion,
        loser: &TestedVersion,
        said: &BlindOpinions,
        split: &CaseSplit,
        round: u32,
    ) -> Result<StepResult<Option<StepAnalysis>>, LoopStop>;

    /// Says whether the user has asked the loop to stop.
    fn is_stopped(&self) -> bool;

    /// Shows the user a message.
    fn show_message(&mut self, text: &str);
}

/// The budget that is left, if there is a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemainingBudget {
    pub usd: Option<f64>,
    pub seconds: Option<f64>,
}

/// The reason why the loop cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopStop {
    Interrupted,
    OutOfTime,
    OutOfMoney,
    Failed(String),
}

impl LoopStop {
    /// Makes a stop because of an error.
    pub fn failed(why: impl std::fmt::Display) -> Self {
        LoopStop::Failed(why.to_string())
    }
}

/// A version that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestedVersion {
    pub version: u32,
    pub files: PathBuf,
    pub run: String,
}

/// The edits that can be applied one after the other, and those that cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditProposal {
    pub edits: Vec<EditSuggestion>,
    pub refused: Vec<RefusedSuggestion>,
}

/// The opinions of blind judges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlindOpinions {
    /// The verdict on the candidate; `None` if there was nothing to compare.
    pub verdict: Option<ComparisonVerdict>,
    /// The judges' reasons, by version.
    pub reasons: String,
}

/// An analysis, and the suggestions in it that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepAnalysis {
    pub analysis: Analysis,
    pub refused: Vec<RefusedSuggestion>,
}
