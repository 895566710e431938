use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::improve::journal::Spent;
use crate::improve::{Analysis, Refused, Split, Suggestion};
use practicum_core::model::{Compared, SkillJudged, TrialId, TrialRecord};

/// What the loop needs others to do. Each may take long and cost money; none of them is trusted to come
/// back.
pub trait Means {
    /// Runs every case with the skill in a folder, as a run of this id and for at most so much. Gives why
    /// it was stopped, if it was, with something spent already.
    fn examine(&mut self, skill: &Path, run: &str, left: Left) -> Result<Spent<Result<(), Halt>>, Halt>;

    /// What a run took that was killed, in seconds and money, as far as its record tells.
    fn lost_in(&mut self, run: &str) -> Spent<f64>;

    fn records(&mut self, run: &str) -> Result<Vec<TrialRecord>, Halt>;

    /// What was said in a run of the skill's own text.
    fn skills_judged(&mut self, run: &str) -> Result<Vec<SkillJudged>, Halt>;

    /// Where a trial of a run left its files.
    fn folder_of(&self, run: &str, trial: &TrialId) -> Result<PathBuf, Halt>;

    /// Asks for edits to a version, for what it failed on the tuning cases.
    fn suggest(&mut self, best: &Examined, split: &Split, round: u32) -> Result<Spent<Proposal>, Halt>;

    /// Has outputs of the tuning cases compared blindly, and keeps what was said in a folder.
    fn compare(
        &mut self,
        best: &Examined,
        candidate: &Examined,
        split: &Split,
        folder: &Path,
    ) -> Result<Spent<Looks>, Halt>;

    /// Asks why one did better, and for edits to it. `None` if there is no answer: that alone ends
    /// nothing.
    fn analyse(
        &mut self,
        winner: &Examined,
        loser: &Examined,
        said: &Looks,
        split: &Split,
        round: u32,
    ) -> Result<Spent<Option<Analysed>>, Halt>;

    /// Whether the user wants it to end.
    fn is_stopped(&self) -> bool;

    /// Tells the user what happens.
    fn tell(&mut self, text: &str);
}

/// What may still be spent, where there is a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Left {
    pub usd: Option<f64>,
    pub seconds: Option<f64>,
}

/// Why it cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    Interrupted,
    OutOfTime,
    OutOfMoney,
    Failed(String),
}

impl Halt {
    pub fn failed(why: impl std::fmt::Display) -> Self {
        Halt::Failed(why.to_string())
    }
}

/// A version that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    pub version: u32,
    pub files: PathBuf,
    pub run: String,
}

/// Edits that can be made, one after the other, and those that cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    pub edits: Vec<Suggestion>,
    pub refused: Vec<Refused>,
}

/// What blind judges said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looks {
    /// Of the candidate; `None` if there was nothing to look at.
    pub verdict: Option<Compared>,
    /// Their reasons, by version.
    pub reasons: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysed {
    pub analysis: Analysis,
    pub refused: Vec<Refused>,
}
