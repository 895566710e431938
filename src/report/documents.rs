//! What the commands print for machines.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::improve::{Followed, Refused};
use crate::model::Severity;

/// What was found in eval files: `check --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What was found in eval files (check --json)")]
pub struct Checked {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub files: Vec<CheckedFile>,
    /// Whether no file has an error.
    pub ok: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckedFile {
    pub path: PathBuf,
    /// The format it was read as; `None` where it is none of them.
    pub dialect: Option<String>,
    /// The suite's name; `None` where the file could not be understood.
    pub suite: Option<String>,
    /// How many cases it has.
    pub cases: usize,
    pub ok: bool,
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Problem {
    pub severity: Severity,
    /// A stable kebab-case name for this kind of problem.
    pub code: String,
    pub message: String,
    /// From 1.
    pub line: Option<usize>,
    /// From 1, in characters.
    pub column: Option<usize>,
    /// What to do about it.
    pub help: Option<String>,
}

/// What would run: `list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What would run (list --json)")]
pub struct Listed {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub suites: Vec<ListedSuite>,
    /// How many trials there are in all.
    pub trials: usize,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedSuite {
    pub name: String,
    pub dialect: String,
    pub path: PathBuf,
    /// The skills under test, by name.
    pub skills: Vec<String>,
    pub cases: Vec<ListedCase>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedCase {
    pub id: String,
    pub group: Option<String>,
    /// How many checks it has.
    pub checks: usize,
    pub trials: Vec<ListedTrials>,
}

/// How many trials of a case there are with one agent in one arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedTrials {
    pub agent: String,
    pub arm: String,
    pub count: usize,
}

/// What a comparison takes: `power --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What a comparison takes (power --json)")]
pub struct Needed {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// Which of them was looked for: cases, repeat, effect or power.
    pub sought: &'static str,
    /// The pass rate before.
    pub baseline: f64,
    /// How much it changes.
    pub effect: Option<f64>,
    pub cases: Option<u64>,
    /// Runs of each case on each side.
    pub repeat: Option<u64>,
    /// Runs in all. `None`, like what was looked for, if no number is enough.
    pub runs: Option<u64>,
    /// The chance that the comparison shows a change of this size.
    pub power: Option<f64>,
    /// The chance that it shows one where there is none.
    pub alpha: f64,
}

/// Edits that a model proposes: `suggest --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Edits proposed for a skill (suggest --json)")]
pub struct Edits {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: PathBuf,
    /// The run whose failed checks they are for.
    pub run: String,
    /// Those checks, each as `case/check`.
    pub failed: Vec<String>,
    pub edits: Vec<Followed>,
    /// Proposals that cannot be followed, with why not.
    pub refused: Vec<Refused>,
    /// All edits together, as a unified diff.
    pub diff: String,
    /// Whether the skill was changed.
    pub applied: bool,
    /// The version that holds the skill as it was before.
    pub kept_as: Option<u32>,
}
