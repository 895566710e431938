//! The documents in the files of a run directory.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::options::RunOptions;
use practicum_core::model::{
    CasePrompt, CaseSample, Condition, Digest, Gate, Origin, Suite, TrialId, TrialRecord,
};
use practicum_evals::dialects::{EvalRegistry, decode_stored_suite, encode_stored_suite};

/// What a run was asked to do, and what it read: `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "What a run was asked to do (run.json)")]
pub struct RunInfo {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run's id, which is also its folder's name.
    pub run: String,
    /// When it started.
    pub started: String,
    /// The version of the program.
    pub practicum: String,
    /// The suites of the run.
    #[serde(flatten)]
    #[schemars(with = "RunSuitesDocument")]
    pub suites: RunSuites,
    /// The planned trials, in the order in which they start.
    pub trials: Vec<PlannedTrial>,
    /// Whether the model's answers were scripted.
    pub scripted: bool,
    /// Whether the model's answers came from a cassette.
    #[serde(default)]
    pub replayed: bool,
    /// The notices that the user was shown before the run.
    #[serde(default)]
    pub notices: Vec<String>,
    /// The run whose stored trials this run grades again; `None` if this run ran its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graded_from: Option<String>,
    /// The earlier version of the skill that `compare --against` tested in this run. Trends leave such a run out
    /// unless they are asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_skill: Option<String>,
    /// The gates that the user set on the command line (`--gate`). Grading the run again keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Why trends and badges leave the run out: criteria were left out, or nothing was checked. `None` if they count
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_history: Option<String>,
    /// The part of the cases that was selected (`--case`, `--only`, `--shard`, `--max-evals`); `None` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<CaseSample>,
    /// Whether cases that are known to be flaky may fail a gate alone (`--count-flaky`). Grading the run again keeps
    /// it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub count_flaky: bool,
    /// The files that scripts and plugins of the run may run, by path, with their digests, where the user said
    /// `--trust`. The run is only resumed on that trust while they are the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_code: Option<BTreeMap<PathBuf, Digest>>,
    /// Everything that the caller decided about the run, to resume it with. Records of earlier versions have only
    /// the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<RunOptions>,
    /// The words of the command that started the run.
    #[serde(default)]
    pub command: Vec<String>,
    /// The folder in which the command was given.
    #[serde(default)]
    pub folder: PathBuf,
    /// The project of the run. Empty in records of earlier versions.
    #[serde(default)]
    pub project: PathBuf,
}

impl RunInfo {
    /// Gives the suite of this name.
    pub fn suite(&self, name: &str) -> Option<&RunSuite> {
        self.suites.iter().find(|of| of.suite.name == name)
    }

    /// Says how to continue the run if it was interrupted. Only some commands are one run that can be resumed; the
    /// others reuse the finished trials when they are started again.
    pub fn resume_hint(&self) -> String {
        let id = &self.run;
        match self.started_by() {
            Some(command @ ("run" | "noise")) => format!("practicum {command} --resume {id} continues it"),
            Some(command) => {
                let anew = match &self.options {
                    Some(options) => options.no_reuse,
                    // Records of earlier versions have only the command.
                    None => self.command.iter().any(|word| word == "--no-cache"),
                };
                let but = if anew { " without --no-cache" } else { "" };
                format!(
                    "the same practicum {command} again{but} continues it: finished trials are not run again"
                )
            }
            None => "the same command again continues it".to_owned(),
        }
    }

    /// Says how to get the verdict of a run that was interrupted while its last trials were running.
    pub fn verdict_hint(&self) -> String {
        match self.started_by() {
            Some(command @ ("run" | "noise")) => {
                format!("practicum {command} --resume {} runs none again and gives the verdict", self.run)
            }
            Some(_) | None => "the same command again runs none again and gives the verdict".to_owned(),
        }
    }

    /// Says where the model's answers came from, if not from the model.
    pub fn model_stand_ins(&self) -> impl Iterator<Item = &'static str> {
        let scripted = "The model's answers came from a script: this tests the evals, not a model.";
        let replayed = "The model's answers were recorded earlier, and so were tokens and cost.";
        [(self.scripted, scripted), (self.replayed, replayed)]
            .into_iter()
            .filter_map(|(so, words)| so.then_some(words))
    }

    /// Says whether the run only called a skill by its own command, so that there was nothing to grade.
    pub fn is_skill_call(&self) -> bool {
        let mut cases = self.suites.iter().flat_map(|of| &of.suite.cases);
        self.started_by() == Some("try")
            && cases.all(|case| matches!(case.prompt, CasePrompt::SkillCommand { .. }))
    }

    /// Gives the command that began the run, if it is known.
    pub fn started_by(&self) -> Option<&str> {
        self.command.first().map(String::as_str)
    }
}

/// The suites of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RunSuitesDocument", into = "RunSuitesDocument")]
pub struct RunSuites(pub Vec<RunSuite>);

impl Deref for RunSuites {
    type Target = [RunSuite];

    fn deref(&self) -> &[RunSuite] {
        &self.0
    }
}

impl DerefMut for RunSuites {
    fn deref_mut(&mut self) -> &mut [RunSuite] {
        &mut self.0
    }
}

/// A suite as it was run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSuite {
    /// The suite, with the file that it was read from.
    pub suite: Suite,
    /// The skill under test as it was when the run began, if it is one folder.
    pub skill: Option<RunSkill>,
    /// What the files and folders held that each case gives to the agent, by the case. Records of earlier versions do
    /// not say.
    pub given_files: BTreeMap<String, Digest>,
    /// Every setting with where it came from.
    pub settings: BTreeMap<String, RunSetting>,
}

impl RunSuite {
    /// Gives the value of a setting, as a person would write it.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|setting| setting.value.as_str())
    }
}

/// The suites of a run as `run.json` has them.
#[derive(Serialize, Deserialize, JsonSchema)]
struct RunSuitesDocument {
    suites: Vec<RunSuiteDocument>,
    /// For each suite, every setting with where it came from.
    settings: Vec<BTreeMap<String, RunSetting>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "RunSuite")]
struct RunSuiteDocument {
    origin: Origin,
    /// The suite in the native format, seen from its origin's folder.
    #[schemars(with = "serde_json::Map<String, Value>")]
    suite: Value,
    /// The skill under test as it was when the run began, if it is one folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skill: Option<RunSkill>,
    /// What the files and folders held that each case gives to the agent, by the case. Records of earlier versions do
    /// not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    given_files: BTreeMap<String, Digest>,
}

impl From<RunSuites> for RunSuitesDocument {
    fn from(suites: RunSuites) -> Self {
        let rows = suites.0.into_iter().map(|RunSuite { suite, skill, given_files, settings }| {
            let document = encode_stored_suite(&suite);
            (RunSuiteDocument { origin: suite.origin, suite: document, skill, given_files }, settings)
        });
        let (suites, settings) = rows.unzip();
        Self { suites, settings }
    }
}

impl TryFrom<RunSuitesDocument> for RunSuites {
    type Error = String;

    fn try_from(document: RunSuitesDocument) -> Result<Self, String> {
        let settings = document.settings.into_iter().chain(std::iter::repeat_with(BTreeMap::new));
        let suites = document.suites.into_iter().zip(settings).map(|(of, settings)| {
            let RunSuiteDocument { origin, suite, skill, given_files } = of;
            // Checks from outside are kept as they were written; who grades with them reads them again.
            let suite = decode_stored_suite(&suite, origin, &EvalRegistry::default())?;
            Ok(RunSuite { suite, skill, given_files, settings })
        });
        suites.collect::<Result<_, String>>().map(Self)
    }
}

/// The skill under test of a suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSkill {
    /// The folder of the skill.
    pub path: PathBuf,
    /// The digest of the skill's files, without its evals. Equal digests mean the same version.
    pub digest: Digest,
}

/// The value of a setting, and its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSetting {
    /// The value as a user would write it.
    pub value: String,
    /// The source: a flag, a variable, a file, or a default.
    pub from: String,
}

/// A planned trial of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTrial {
    /// The id of the trial, which is also the name of its folder.
    pub id: TrialId,
    /// The name of the suite.
    pub suite: String,
    /// The id of the case.
    pub case: String,
    /// The agent, the model and the arm.
    pub condition: Condition,
    /// The number of the repeat, from 1.
    pub attempt: u32,
}

/// The results of a trial: `checks.json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "The results of a trial (trials/*/checks.json)")]
pub struct TrialChecks<'r> {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The record of the trial.
    #[serde(flatten)]
    pub record: &'r TrialRecord,
}
