//! The JSON documents that commands print.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use practicum_core::model::{
    ActivatedSkill, AgentEnding, GateName, GateResult, Observation, Outcome, Severity, Step, Summary,
    TokenUsage, TrialTotals, Verdict, VerdictChange, count_with_noun,
};

/// The problems of eval files: `check --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Problems of eval files (check --json)")]
pub struct CheckDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub files: Vec<CheckedFile>,
    /// Files that were found and not read, because they contain no evals, git ignores them or they are dependencies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<PathBuf>,
    /// Whether no file has an error.
    pub ok: bool,
}

/// An eval file, and its problems.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckedFile {
    pub path: PathBuf,
    /// The format of the file; `None` if no format fits.
    pub dialect: Option<String>,
    /// The name of the suite; `None` if the file cannot be understood.
    pub suite: Option<String>,
    /// The number of cases.
    pub cases: usize,
    pub ok: bool,
    pub problems: Vec<FileProblem>,
    /// The formats that fit the file, the best first, and why. Only with `--explain-format`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formats: Option<Vec<FittingFormat>>,
}

/// A format that fits an eval file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FittingFormat {
    pub name: String,
    /// The sum of the points of all reasons. The format with the highest score reads the file.
    pub score: u32,
    pub reasons: Vec<FormatPoints>,
}

/// A reason why a format fits an eval file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FormatPoints {
    pub points: u32,
    pub reason: String,
}

/// A problem of an eval file.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileProblem {
    pub severity: Severity,
    /// A stable kebab-case name for this kind of problem.
    pub code: String,
    pub message: String,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The column in characters, counted from 1.
    pub column: Option<usize>,
    /// What the user can do about it.
    pub help: Option<String>,
}

/// The answer of a skill that was called by its own command: `try --args --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The answer of a called skill (try --args --json)")]
pub struct SkillCallDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub skill: String,
    /// The arguments of the command.
    pub args: String,
    pub agent: String,
    /// The agent's last message.
    pub output: String,
    pub ended: AgentEnding,
    /// An explanation of the ending, if it needs one.
    pub ended_because: Option<String>,
    pub seconds: f64,
    pub usage: TokenUsage,
    /// The cost in USD; `None` if the price of the model is unknown.
    pub cost_usd: Option<f64>,
    /// The id of the run that stores the record.
    pub run: String,
}

/// The comparison of two captured texts by the same checks: `compare A B --spec --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "Two captured texts, compared by a spec (compare --spec --json)")]
pub struct TextComparisonDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub before: PathBuf,
    pub after: PathBuf,
    /// The eval file whose deterministic checks both texts were graded with.
    pub spec: PathBuf,
    /// The checks whose result changed.
    pub flips: Vec<CheckFlip>,
    /// The number of checks that pass for both texts.
    pub pass_in_both: usize,
    pub fail_in_both: usize,
    /// The number of checks that are scored for neither text, because they need a judge or a run.
    pub not_scored_in_both: usize,
    /// Whether no check was lost and none became unscored.
    pub ok: bool,
}

/// A check with another verdict for the second text.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CheckFlip {
    /// The check's id. If several cases were graded, it begins with the case's id and a slash.
    pub check: String,
    pub before: GradedVerdict,
    pub after: GradedVerdict,
    /// What the check found in the second text.
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

    /// Gives the outcome of this change alone: failed for a loss, incomplete if an answer is gone.
    pub fn outcome(&self) -> Outcome {
        match (self.before, self.after) {
            (_, GradedVerdict::Pass) => Outcome::Passed,
            (_, GradedVerdict::Fail) => Outcome::Failed,
            (_, GradedVerdict::NotScored) => Outcome::Incomplete,
        }
    }
}

/// The grading of a captured text: `grade --output --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The grading of a captured text (grade --output --json)")]
pub struct TextGradingDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The session that was graded; absent if a text was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<GradedSession>,
    pub results: Vec<GradedCheck>,
    pub gates: Vec<GradedGate>,
    /// Limits of the result, such as criteria that were left out or evidence that was shortened for the judge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether the exit code is 0.
    pub ok: bool,
}

/// A recorded session that was graded.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GradedSession {
    /// `claude-code`, `codex` or `atif`.
    pub format: String,
    pub agent: String,
    pub agent_version: Option<String>,
    pub model: Option<String>,
    pub id: Option<String>,
    /// The number of messages of the user.
    pub turns: usize,
    pub tool_calls: usize,
    /// The skills that the agent activated.
    pub activated: Vec<String>,
    /// How the agent ended its last turn.
    pub ended: String,
    pub usage: TokenUsage,
    pub cost_usd: Option<f64>,
    /// How long the agent worked; `None` if the session does not say it.
    pub seconds: Option<f64>,
}

impl GradedSession {
    /// Describes what was observed of a session.
    pub fn new(format: &str, agent: &str, id: Option<&str>, seen: &Observation) -> Self {
        let mut activated: Vec<String> = seen.activated.iter().map(ActivatedSkill::full_name).collect();
        activated.sort_unstable();
        activated.dedup();
        Self {
            format: format.to_owned(),
            agent: agent.to_owned(),
            agent_version: seen.agent_version.clone(),
            model: seen.model.clone(),
            id: id.map(str::to_owned),
            turns: seen.turns,
            tool_calls: seen.steps.iter().filter(|step| matches!(step, Step::Tool(_))).count(),
            activated,
            ended: seen.ended.name().to_owned(),
            usage: seen.usage,
            cost_usd: seen.cost_usd,
            seconds: (!seen.missing.seconds).then_some(seen.seconds),
        }
    }

    /// Describes the session in a line.
    pub fn describe(&self) -> String {
        let version = self.agent_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let model = self.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        let activated = match self.activated.as_slice() {
            [] => String::new(),
            skills => format!(", activated {}", skills.join(", ")),
        };
        let (turns, calls) =
            (count_with_noun(self.turns, "turn"), count_with_noun(self.tool_calls, "tool call"));
        format!("session of {}{version}{model}: {turns}, {calls}{activated}", self.agent)
    }
}

/// The result of one check.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GradedCheck {
    /// The check's id. If several cases were graded, it begins with the case's id and a slash.
    pub id: String,
    /// The name of the check for people; `None` if that is its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub verdict: GradedVerdict,
    /// The score on the check's own scale; only judged checks have one.
    pub score: Option<f64>,
    /// What the check found, or why it is not scored.
    pub why: String,
    /// The quotes or values that support the result.
    pub evidence: Vec<String>,
}

/// The verdict of a check, without the reason of a missing answer.
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

/// The result of a gate.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GradedGate {
    pub name: GateName,
    /// The measured value; `None` if nothing was measured, and then the gate does not hold.
    pub value: Option<f64>,
    /// The lower end of the value's interval, if there is one; `high` is the upper end.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub threshold: f64,
    /// How sure it must be that the true value reaches the threshold, and what the true value reaches so surely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
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
            confidence,
            bound,
            spared: _,
            too_many_flaky: _,
            lost: _,
            cannot_tell: _,
            without_baseline: _,
            not_run: _,
            ok,
        } = gate;
        Self { name, value, low, high, threshold, confidence, bound, ok }
    }
}

/// A regraded run: `grade RUN --json`, and `changes.json` in the new run's folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "A regraded run (grade RUN --json, changes.json)")]
pub struct RegradeDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The new run's id.
    pub run: String,
    /// The original run, which is unchanged.
    pub graded_from: String,
    /// The verdicts that changed.
    pub changes: Vec<VerdictChange>,
    pub summary: Summary,
}

/// The plan of a run: `list --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The plan of a run (list --json)")]
pub struct PlanListing {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub suites: Vec<ListedSuite>,
    /// The number of all trials.
    pub trials: usize,
}

/// A suite of the plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedSuite {
    pub name: String,
    pub dialect: String,
    pub path: PathBuf,
    /// The skills under test, by name.
    pub skills: Vec<String>,
    pub cases: Vec<ListedCase>,
}

/// A case of the plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedCase {
    pub id: String,
    pub group: Option<String>,
    /// The number of checks.
    pub checks: usize,
    /// The files that are copied into the workspace before the agent starts.
    pub files: Vec<ListedFile>,
    pub trials: Vec<ListedTrials>,
}

/// A file that a case copies into the workspace.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedFile {
    pub from: PathBuf,
    /// Its path in the workspace.
    pub to: String,
}

/// The number of trials of a case with one agent in one arm.
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
    /// The runs, the oldest first.
    pub runs: Vec<ListedRun>,
}

/// A run in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ListedRun {
    /// The run's id, which is also its folder's name.
    pub run: String,
    pub path: PathBuf,
    /// The state of the run in words.
    pub state: String,
    /// The start of the run; empty if it is unknown.
    pub started: String,
    /// The exit code; `None` if the run has not ended.
    #[schemars(with = "Option<u8>")]
    pub exit: Option<Outcome>,
    /// The number of planned trials.
    pub planned: u64,
    /// The numbers of finished trials, by verdict, with how many of them were reused.
    pub totals: TrialTotals,
    /// Whether the model's answers came from a script or (`replayed`) from a recording.
    pub scripted: bool,
    pub replayed: bool,
    /// The cost of the run, without reused trials; `None` if a part of it is unknown.
    pub cost_usd: Option<f64>,
    pub seconds: Option<f64>,
}

/// The size of a comparison that can show a change: `power --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The size of a comparison that can show a change (power --json)")]
pub struct PowerDocument {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The value that was computed: cases, repeat, effect or power.
    pub sought: &'static str,
    /// The pass rate before the change.
    pub baseline: f64,
    /// The change of the pass rate.
    pub effect: Option<f64>,
    pub cases: Option<u64>,
    /// The number of runs of each case on each side.
    pub repeat: Option<u64>,
    /// The number of all runs; `None` if no number is enough.
    pub runs: Option<u64>,
    /// The chance that the comparison shows a change of this size.
    pub power: Option<f64>,
    /// The chance that the comparison shows a change although there is none.
    pub alpha: f64,
}
