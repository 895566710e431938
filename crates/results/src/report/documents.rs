//! The JSON documents that commands print.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use practicum_core::model::{
    AgentEnding, GateName, GateResult, Severity, Summary, TokenUsage, TrialTotals, Verdict, VerdictChange,
};

/// What was found in eval files: `check --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What was found in eval files (check --json)")]
pub struct CheckDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub files: Vec<CheckedFile>,
    /// Files that were found and not read: they hold no evals, git ignores them, or they are dependencies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathBuf>,
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
    pub problems: Vec<FileProblem>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileProblem {
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

/// What a skill answered that was called by its own command: `try --args --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What a called skill answered (try --args --json)")]
pub struct SkillCallDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: String,
    /// What its command was given.
    pub args: String,
    pub agent: String,
    /// The agent's last message.
    pub output: String,
    pub ended: AgentEnding,
    /// Why it ended so, where that is not plain.
    pub ended_because: Option<String>,
    pub seconds: f64,
    pub usage: TokenUsage,
    /// `None` if nobody knows the model's price.
    pub cost_usd: Option<f64>,
    /// The run that the record is kept as.
    pub run: String,
}

/// What two captured texts come to by the same checks: `compare A B --spec --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Two captured texts, compared by a spec (compare --spec --json)")]
pub struct TextComparisonDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub before: PathBuf,
    pub after: PathBuf,
    /// The eval file whose exact checks both were held against.
    pub spec: PathBuf,
    /// The checks with another result than before.
    pub flips: Vec<CheckFlip>,
    /// How many checks pass in both.
    pub pass_in_both: usize,
    pub fail_in_both: usize,
    /// How many have no answer in both: only a judge or a run could tell.
    pub not_scored_in_both: usize,
    /// Whether nothing was lost and every answer of before is still there.
    pub ok: bool,
}

/// A check that came to something else for the second text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckFlip {
    /// The check's id; where several cases were marked, behind its case's and a slash.
    pub check: String,
    pub before: GradedVerdict,
    pub after: GradedVerdict,
    /// What was found in the second text.
    pub why: String,
}

impl CheckFlip {
    /// Describes the change in a word.
    pub fn describe(&self) -> &'static str {
        match (self.before, self.after) {
            (_, GradedVerdict::NotScored) => "unanswered",
            (_, GradedVerdict::Pass) => "gained",
            (GradedVerdict::NotScored, GradedVerdict::Fail) => "failed",
            (_, GradedVerdict::Fail) => "lost",
        }
    }

    /// Gives the exit code for this change alone: 1 for a loss, 3 if an answer is gone.
    pub fn exit_code(&self) -> u8 {
        match (self.before, self.after) {
            (_, GradedVerdict::Pass) => 0,
            (_, GradedVerdict::Fail) => 1,
            (_, GradedVerdict::NotScored) => 3,
        }
    }
}

/// What was found in a captured text: `grade --output --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What was found in a captured text (grade --output --json)")]
pub struct TextGradingDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub results: Vec<GradedCheck>,
    pub gates: Vec<GradedGate>,
    /// What narrows the result: criteria that were left out, evidence that was shortened for the judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the exit code is 0.
    pub ok: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GradedCheck {
    /// The check's id; where several cases were marked, behind its case's and a slash.
    pub id: String,
    /// What people call it, where that is not its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub verdict: GradedVerdict,
    /// On the check's own scale; only judged checks have one.
    pub score: Option<f64>,
    /// What was found, or why nothing was.
    pub why: String,
    /// What the finding rests on.
    pub evidence: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GradedVerdict {
    Pass,
    Fail,
    NotScored,
}

impl From<&Verdict> for GradedVerdict {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Pass => GradedVerdict::Pass,
            Verdict::Fail => GradedVerdict::Fail,
            Verdict::NotScored(_) => GradedVerdict::NotScored,
        }
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GradedGate {
    pub name: GateName,
    /// `None` when nothing was measured: then the gate does not hold.
    pub value: Option<f64>,
    /// The ends of the value's interval, where one is known.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub threshold: f64,
    pub ok: bool,
}

impl From<GateResult> for GradedGate {
    fn from(gate: GateResult) -> Self {
        let GateResult {
            name,
            suite: _,
            agent: _,
            value,
            low,
            high,
            worst: _,
            threshold,
            spared: _,
            too_many_flaky: _,
            not_run: _,
            ok,
        } = gate;
        Self { name, value, low, high, threshold, ok }
    }
}

/// A run that was marked again: `grade RUN --json`, and `changes.json` in the new run's folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "A run that was marked again (grade RUN --json, changes.json)")]
pub struct RegradeDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The new run's id.
    pub run: String,
    /// The run that was marked again, and is as it was.
    pub graded_from: String,
    /// The verdicts that are others now.
    pub changes: Vec<VerdictChange>,
    pub summary: Summary,
}

/// What would run: `list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What would run (list --json)")]
pub struct PlanListing {
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
    /// What is put into the room before the agent comes.
    pub files: Vec<ListedFile>,
    pub trials: Vec<ListedTrials>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedFile {
    pub from: PathBuf,
    /// Where it is put, seen from the room's root.
    pub to: String,
}

/// How many trials of a case there are with one agent in one arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ListedTrials {
    pub agent: String,
    pub arm: String,
    pub count: usize,
}

/// The runs of a project: `runs --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The runs of a project (runs --json)")]
pub struct RunListing {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The oldest first.
    pub runs: Vec<ListedRun>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedRun {
    /// The run's id, which is also its folder's name.
    pub run: String,
    pub path: PathBuf,
    /// How it stands, in words.
    pub state: String,
    /// When it started; empty where nothing says.
    pub started: String,
    /// The exit code; `None` while it has not come to its end.
    pub exit: Option<u8>,
    /// How many trials it was to have.
    pub planned: u64,
    /// The trials that are done, by their verdict.
    pub totals: TrialTotals,
    /// `None` where any part of it is not known.
    pub cost_usd: Option<f64>,
    pub seconds: Option<f64>,
}

/// What a comparison takes: `power --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What a comparison takes (power --json)")]
pub struct PowerDocument {
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
