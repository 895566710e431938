use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::improve::journal::StepResult;
use crate::improve::{Analysis, CaseSplit, EditSuggestion, RefusedSuggestion};
use practicum_core::model::{ComparisonVerdict, SkillJudgement, TrialId, TrialRecord};

/// What the loop needs others to do. Each may take long and cost money; none of them is trusted to come
/// back.
pub trait LoopServices {
    /// Runs every case with the skill in a folder, as a run of this id and for at most so much. Gives why
    /// it was stopped, if it was, with something spent already.
    fn run_version(
        &mut self,
        skill: &Path,
        run: &str,
        left: RemainingBudget,
    ) -> Result<StepResult<Result<(), LoopStop>>, LoopStop>;

    /// What a run took that was killed, in seconds and money, as far as its record tells.
    fn cost_of_killed_run(&mut self, run: &str) -> StepResult<f64>;

    fn records(&mut self, run: &str) -> Result<Vec<TrialRecord>, LoopStop>;

    /// What was said in a run of the skill's own text.
    fn skill_judgements(&mut self, run: &str) -> Result<Vec<SkillJudgement>, LoopStop>;

    /// Where a trial of a run left its files.
    fn trial_folder(&self, run: &str, trial: &TrialId) -> Result<PathBuf, LoopStop>;

    /// Asks for edits to a version, for what it failed on the tuning cases.
    fn propose_edits(
        &mut self,
        best: &TestedVersion,
        split: &CaseSplit,
        round: u32,
    ) -> Result<StepResult<EditProposal>, LoopStop>;

    /// Has outputs of the tuning cases compared blindly, and keeps what was said in a folder.
    fn compare_blindly(
        &mut self,
        best: &TestedVersion,
        candidate: &TestedVersion,
        split: &CaseSplit,
        folder: &Path,
    ) -> Result<StepResult<BlindOpinions>, LoopStop>;

    /// Asks why one did better, and for edits to it. `None` if there is no answer: that alone ends
    /// nothing.
    fn explain_winner(
        &mut self,
        winner: &TestedVersion,
        loser: &TestedVersion,
        said: &BlindOpinions,
        split: &CaseSplit,
        round: u32,
    ) -> Result<StepResult<Option<StepAnalysis>>, LoopStop>;

    /// Whether the user wants it to end.
    fn is_stopped(&self) -> bool;

    /// Tells the user what happens.
    fn show_message(&mut self, text: &str);
}

/// What may still be spent, where there is a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemainingBudget {
    pub usd: Option<f64>,
    pub seconds: Option<f64>,
}

/// Why it cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopStop {
    Interrupted,
    OutOfTime,
    OutOfMoney,
    Failed(String),
}

impl LoopStop {
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

/// Edits that can be made, one after the other, and those that cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditProposal {
    pub edits: Vec<EditSuggestion>,
    pub refused: Vec<RefusedSuggestion>,
}

/// What blind judges said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlindOpinions {
    /// Of the candidate; `None` if there was nothing to look at.
    pub verdict: Option<ComparisonVerdict>,
    /// Their reasons, by version.
    pub reasons: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepAnalysis {
    pub analysis: Analysis,
    pub refused: Vec<RefusedSuggestion>,
}
