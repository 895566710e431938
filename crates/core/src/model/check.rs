//! Checks: what must be true of an agent's work, and how that is decided.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CheckFinding, Observation, RelPath};

/// One thing that must be true of the agent's work (required) or should be (optional).
#[derive(Debug, Clone)]
pub struct Check {
    /// The id, unique within its case and stable: reports compare runs by it.
    pub id: String,
    /// A name for people.
    pub name: Option<String>,
    /// Whether the check can fail its case.
    pub need: CheckNeed,
    /// How much the check counts in the score of a trial. Only cases that pass by their score use it.
    pub weight: CheckWeight,
    /// The text that the check reads.
    pub target: CheckTarget,
    /// What decides the check.
    pub kind: CheckKind,
}

impl Check {
    /// Makes a required check that code decides, on what the rule reads by default.
    pub fn by_rule(id: impl Into<String>, rule: Arc<dyn Rule>) -> Self {
        Self {
            id: id.into(),
            name: None,
            need: CheckNeed::Required,
            weight: CheckWeight::ONE,
            target: rule.default_target(),
            kind: CheckKind::Rule(rule),
        }
    }

    /// Says whether a judge must be shown pictures for the check.
    pub fn needs_pictures(&self) -> bool {
        matches!(self.target, CheckTarget::Pictures(_))
    }

    /// Says whether a model decides the check.
    pub fn needs_model(&self) -> bool {
        match &self.kind {
            CheckKind::Judged(_) | CheckKind::Sections(_) => true,
            CheckKind::Activation(activation) => activation.source == ActivationSource::Predicted,
            CheckKind::Rule(_) => false,
        }
    }
}

/// Whether a check must pass for the case to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckNeed {
    /// A trial that fails the check fails.
    Required,
    /// The check alone does not fail a trial. It may count in the trial's score.
    Advisory,
}

/// How much a check counts in the score of a trial: a finite number, 0 or more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct CheckWeight(f64);

impl CheckWeight {
    /// The weight of a check that says none.
    pub const ONE: CheckWeight = CheckWeight(1.0);
    /// The weight of a check that is reported and does not count.
    pub const ZERO: CheckWeight = CheckWeight(0.0);

    /// Makes a weight. `None` for a negative or infinite number.
    pub fn new(weight: f64) -> Option<Self> {
        (weight.is_finite() && weight >= 0.0).then_some(Self(weight))
    }

    /// Gives the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for CheckWeight {
    fn default() -> Self {
        Self::ONE
    }
}

impl From<CheckWeight> for f64 {
    fn from(weight: CheckWeight) -> f64 {
        weight.0
    }
}

impl TryFrom<f64> for CheckWeight {
    type Error = String;

    fn try_from(weight: f64) -> Result<Self, String> {
        Self::new(weight).ok_or_else(|| format!("{weight} is not a weight; a weight is 0 or more"))
    }
}

/// The text that a check reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// The last assistant message of the last turn.
    Output,
    /// All assistant text of the last turn, also what was said before its tool calls.
    LastTurn,
    /// All assistant text of all turns.
    AllText,
    /// One file that the agent was to write. The check fails if the file is missing or untouched.
    File(RelPath),
    /// Every file that matches a pattern and was created or changed, in order, each as a text of its own.
    Files(Vec<String>),
    /// Every image, PDF and presentation that matches a pattern and was created or changed, as pictures for a judge.
    Pictures(Vec<String>),
    /// Output, tool calls and files: for checks that read no single text.
    WholeRun,
}

impl CheckTarget {
    /// Describes the text for a message; files by their names.
    pub fn describe(&self) -> String {
        match self {
            CheckTarget::Output => "the answer".to_owned(),
            CheckTarget::LastTurn => "the last turn".to_owned(),
            CheckTarget::AllText => "what the agent said".to_owned(),
            CheckTarget::File(path) => path.to_string(),
            CheckTarget::Files(globs) | CheckTarget::Pictures(globs) => globs.join(", "),
            CheckTarget::WholeRun => "the run".to_owned(),
        }
    }
}

/// The kind of a check, which decides who grades it.
#[derive(Debug, Clone)]
pub enum CheckKind {
    /// A check decided by code. The crate `practicum-evals` defines which kinds there are.
    Rule(Arc<dyn Rule>),
    /// A statement that a judge decides.
    Judged(JudgedStatement),
    /// Sections of the output whose entries a model extracts and code checks.
    Sections(Vec<OutputSection>),
    /// Whether a skill is activated.
    Activation(ActivationCheck),
}

/// A deterministic check: data that can be written to a file and can grade a trial.
pub trait Rule: fmt::Debug + Send + Sync {
    /// Gives the key of the rule in a native eval file.
    fn key(&self) -> &str;

    /// Gives the value after the key. Two rules are equal if their keys and values are.
    fn value(&self) -> Value;

    /// Gives what the rule finds in the evidence.
    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding;

    /// Gives what the rule reads if the eval file does not say: the output, unless the rule reads no single text.
    fn default_target(&self) -> CheckTarget {
        CheckTarget::Output
    }

    /// Says whether the rule reads what the agent said and did, and not only the files it left.
    fn reads_agent_output(&self) -> bool {
        true
    }

    /// Says whether the rule must hold for every text, so that one more text can make the check fail but never
    /// pass.
    fn is_about_every_text(&self) -> bool {
        false
    }

    /// Says whether grading runs something that the eval's author wrote. Then the user must trust it.
    fn runs_code(&self) -> bool {
        false
    }

    /// Reads the files beside the eval file that the rule names. `None` if it names none, otherwise the rule with their
    /// contents, or what is wrong with them.
    fn read_eval_files(&self, _folder: &Path) -> Option<Result<Arc<dyn Rule>, String>> {
        None
    }

    /// Says whether grading may wait for servers on the network.
    fn uses_network(&self) -> bool {
        false
    }
}

/// The evidence that a rule may read.
pub struct CheckEvidence<'a> {
    /// The texts that the check's `looks_at` names: one, or one for each file. Never empty.
    pub texts: &'a [CheckedText<'a>],
    /// What was observed of the run.
    pub observation: &'a Observation,
    /// The workspace after the run.
    pub workspace: &'a dyn WorkspaceView,
    /// Access to the network; `None` if the check may not use it.
    pub url_checker: Option<&'a dyn UrlChecker>,
}

/// A text that a check reads. A match lies within one text; counts and measures are added up over all texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedText<'a> {
    /// The file that the text comes from, if a check reads several files. Never part of the text.
    pub path: Option<RelPath>,
    /// The text itself.
    pub text: Cow<'a, str>,
    /// The reason why `text` is not the whole file, if it is not.
    pub unread: Option<String>,
}

impl<'a> CheckedText<'a> {
    /// Makes a text that comes from no file, or from the only one.
    pub fn without_path(text: impl Into<Cow<'a, str>>) -> Self {
        Self { path: None, text: text.into(), unread: None }
    }

    /// Gives words for a message: " in notes/a.md", or nothing if there is no file to name.
    pub fn location_phrase(&self) -> String {
        self.path.as_ref().map(|path| format!(" in {path}")).unwrap_or_default()
    }
}

impl CheckEvidence<'_> {
    /// Gives the number of characters (code points) in all texts together.
    pub fn total_length(&self) -> usize {
        self.texts.iter().map(|checked| checked.text.chars().count()).sum()
    }
}

/// A way for checks to use the network.
pub trait UrlChecker: Sync {
    /// Says whether a web address answers; `Err` says why not. Only public addresses are requested.
    fn check_url(&self, url: &str) -> Result<(), String>;
}

/// The permissions of checks beyond reading.
#[derive(Clone, Copy, Default)]
pub struct CheckPermissions<'l> {
    /// Whether checks may run code that the eval's author wrote.
    pub run_code: bool,
    /// Access to the network; `None` if checks may not use it.
    pub url_checker: Option<&'l dyn UrlChecker>,
}

/// A shell command that a check runs in the workspace.
#[derive(Debug, Clone, Copy)]
pub struct CheckCommand<'c> {
    /// The command, for `sh -c`.
    pub run: &'c str,
    /// The time after which it is ended.
    pub time_limit: Duration,
    /// The text on its standard input.
    pub input: Option<&'c str>,
}

/// The result of a command that a check ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutcome {
    /// How the command ended.
    pub end: CommandEnd,
    /// The beginning of its standard output.
    pub stdout: String,
    /// The beginning of its standard error.
    pub stderr: String,
}

/// How a command of a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEnd {
    /// The command ended with this exit code.
    Exited(i32),
    /// This signal ended the command.
    Signalled(i32),
    /// The command was ended because it took too long.
    TimedOut,
    /// The command used more than a limit allows. The text says which.
    OverLimit(String),
    /// The user stopped the run.
    Cancelled,
}

/// The agent's workspace after the run, as far as a check may see it: regular files inside it, read up to a size
/// limit, never through a link that leads out.
pub trait WorkspaceView: Sync {
    /// Reads a file. Gives `None` if there is no such file.
    fn read(&self, path: &RelPath) -> std::io::Result<Option<Vec<u8>>>;

    /// Says whether a file or folder exists. An error if that can no longer be determined.
    fn exists(&self, path: &RelPath) -> std::io::Result<bool>;

    /// Gives the file that a path leads to through links, if it is another one.
    fn link_target(&self, _path: &RelPath) -> Option<RelPath> {
        None
    }

    /// Describes what is at a path that cannot be read as a file of the workspace. `None` if nothing is there.
    fn describe_unreadable(&self, _path: &RelPath) -> Option<&'static str> {
        None
    }

    /// Runs a shell command in the workspace, as isolated and limited as the agent was. `None` if only a record is
    /// left.
    fn run_command(&self, _command: &CheckCommand<'_>) -> Option<std::io::Result<CommandOutcome>> {
        None
    }
}

/// A statement that a judge decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedStatement {
    /// The statement about the agent's work.
    pub statement: String,
    /// Background that the judge needs for this statement. Not graded.
    pub context: Option<String>,
    /// The scale on which the judge answers.
    pub scale: ScoreScale,
}

/// The scale on which a judge scores a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScoreScale {
    /// The statement holds or it does not.
    #[serde(rename = "pass-fail")]
    PassFail,
    /// A score from 1 to 5.
    #[serde(rename = "1-5")]
    OneToFive,
    /// A score from 0 to 1.
    #[serde(rename = "0-1")]
    Unit,
}

impl ScoreScale {
    /// Every scale.
    pub const ALL: [ScoreScale; 3] = [ScoreScale::PassFail, ScoreScale::OneToFive, ScoreScale::Unit];

    /// Gives the name of the scale in eval files.
    pub fn name(self) -> &'static str {
        match self {
            ScoreScale::PassFail => "pass-fail",
            ScoreScale::OneToFive => "1-5",
            ScoreScale::Unit => "0-1",
        }
    }

    /// Gives the scale of this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scale| scale.name() == text)
    }

    /// Gives the lowest score that passes.
    pub fn lowest_passing_score(self) -> f64 {
        match self {
            ScoreScale::PassFail => 1.0,
            ScoreScale::OneToFive => 3.0,
            ScoreScale::Unit => 0.5,
        }
    }

    /// Says whether the score passes. `None` if the scale does not have this score.
    pub fn passes(self, score: f64) -> Option<bool> {
        let is_on_scale = match self {
            ScoreScale::PassFail => score == 0.0 || score == 1.0,
            ScoreScale::OneToFive => (1.0..=5.0).contains(&score) && score.fract() == 0.0,
            ScoreScale::Unit => (0.0..=1.0).contains(&score),
        };
        is_on_scale.then_some(score >= self.lowest_passing_score())
    }
}

/// A part of the output from which a model extracts entries, which code then checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSection {
    /// The name of the section.
    pub name: String,
    /// The tiers of the section, each with its own entries.
    pub tiers: Vec<SectionTier>,
}

/// A group of entries in a section, with the number and the fields that they must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionTier {
    /// The name of the tier.
    pub label: String,
    /// A description of the entries, for the model that extracts them.
    pub description: Option<String>,
    /// The least number of entries.
    pub min_entries: u32,
    /// The greatest number of entries, if there is one.
    pub max_entries: Option<u32>,
    /// The fields of each entry.
    pub fields: Vec<SectionField>,
}

/// A field of an entry in a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionField {
    /// The id of the field, unique in its tier.
    pub id: String,
    /// The name of the field in the extracted entries.
    pub name: String,
    /// Whether every entry must have the field.
    pub required: bool,
    /// The name of a registered format, or a pattern for the whole value.
    pub format: Option<String>,
}

/// A check of whether skills are activated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationCheck {
    /// The skills that the check is about. `Must`: one of them is activated. `MustNot`: none of them is.
    pub skills: Vec<String>,
    /// Whether a skill must be activated or must not be.
    pub expect: ActivationExpectation,
    /// Whether activation is observed in a run or predicted by a model.
    pub source: ActivationSource,
}

/// What a case expects: the skill must be activated, must not be, or both are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActivationExpectation {
    /// The skill must be activated.
    Must,
    /// The skill must not be activated.
    MustNot,
    /// Both outcomes are accepted.
    Either,
}

impl ActivationExpectation {
    /// Gives the word for the expectation in eval files.
    pub fn name(self) -> &'static str {
        match self {
            ActivationExpectation::Must => "must",
            ActivationExpectation::MustNot => "must_not",
            ActivationExpectation::Either => "either",
        }
    }
}

/// Whether activation was observed in a run or predicted by a model. The two are never added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActivationSource {
    /// Seen in the run of an agent.
    Observed,
    /// Predicted by a model from the descriptions of skills, without an agent.
    Predicted,
}

impl PartialEq for Check {
    fn eq(&self, other: &Self) -> bool {
        (&self.id, &self.name, self.need, self.weight, &self.target, &self.kind)
            == (&other.id, &other.name, other.need, other.weight, &other.target, &other.kind)
    }
}

impl PartialEq for CheckKind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (CheckKind::Rule(a), CheckKind::Rule(b)) => a.key() == b.key() && a.value() == b.value(),
            (CheckKind::Judged(a), CheckKind::Judged(b)) => a == b,
            (CheckKind::Sections(a), CheckKind::Sections(b)) => a == b,
            (CheckKind::Activation(a), CheckKind::Activation(b)) => a == b,
            (
                CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_),
                _,
            ) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_derived_from_the_score() {
        for (scale, score, expected) in [
            (ScoreScale::OneToFive, 3.0, Some(true)),
            (ScoreScale::OneToFive, 2.0, Some(false)),
            (ScoreScale::OneToFive, 2.5, None),
            (ScoreScale::OneToFive, 0.0, None),
            (ScoreScale::OneToFive, 6.0, None),
            (ScoreScale::Unit, 0.5, Some(true)),
            (ScoreScale::Unit, 0.49, Some(false)),
            (ScoreScale::Unit, 1.5, None),
            (ScoreScale::Unit, f64::NAN, None),
            (ScoreScale::PassFail, 1.0, Some(true)),
            (ScoreScale::PassFail, 0.0, Some(false)),
            (ScoreScale::PassFail, 0.7, None),
        ] {
            assert_eq!(scale.passes(score), expected, "{scale:?} {score}");
        }
    }
}
