//! The documents in the files of a run directory.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::RunOptions;
use practicum_core::model::{CaseSample, Condition, Digest, Gate, Origin, TrialId, TrialRecord};

/// What was asked: `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "What a run was asked (run.json)")]
pub struct RunInfo {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run's id, which is also its folder's name.
    pub run: String,
    /// When it started.
    pub started: String,
    /// The version of the program.
    pub practicum: String,
    pub suites: Vec<RunSuite>,
    /// For each suite, every setting with where it came from.
    pub settings: Vec<BTreeMap<String, RunSetting>>,
    /// In the order they start.
    pub trials: Vec<PlannedTrial>,
    /// Whether the model's answers were scripted.
    pub scripted: bool,
    /// Whether they came from a cassette.
    #[serde(default)]
    pub replayed: bool,
    /// What the user was told about how this run is carried out.
    #[serde(default)]
    pub notices: Vec<String>,
    /// The run whose trials these are, where nothing was run and all was marked again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graded_from: Option<String>,
    /// The earlier version of the skill that was under test, where a comparison put it back. Such a run
    /// is in no trend unless it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_skill: Option<String>,
    /// The gates that the user set on the command line (`--gate`). Grading the run again keeps them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Why the run says nothing about the whole, if so: criteria were left out, or nothing was checked. Such
    /// a run is in no trend and no badge unless it is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_in_history: Option<String>,
    /// Set where only a part of the cases was to be run (`--max-evals`, `--shard`).
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
    /// The command that began it.
    #[serde(default)]
    pub command: Vec<String>,
    /// Where that command was given.
    #[serde(default)]
    pub folder: PathBuf,
    /// The project that it was given in. Empty in records of earlier versions.
    #[serde(default)]
    pub project: PathBuf,
}

impl RunInfo {
    /// Says how to continue the run if it was interrupted. Only some commands are one run that can be resumed; the
    /// others reuse the finished trials when they are started again.
    pub fn resume_hint(&self) -> String {
        let id = &self.run;
        match self.started_by() {
            Some(command @ ("run" | "noise")) => format!("practicum {command} --resume {id} goes on with it"),
            Some(command) => {
                let anew = self.command.iter().any(|word| word == "--no-cache");
                let but = if anew { " without --no-cache" } else { "" };
                format!("the same practicum {command} again{but} goes on: what finished is not run again")
            }
            None => "the command that began it goes on, given again".to_owned(),
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
        let has_args = self.command.iter().any(|word| word == "--args" || word.starts_with("--args="));
        self.started_by() == Some("try") && has_args
    }

    /// Gives the command that began the run, if it is known.
    pub fn started_by(&self) -> Option<&str> {
        self.command.first().map(String::as_str)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSuite {
    pub origin: Origin,
    /// The suite in the native format, seen from its origin's folder.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub suite: Value,
    /// The skill under test as it was when the run began, if it is one folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<RunSkill>,
    /// What the files and folders held that each case gives to the agent, by the case. Records of earlier versions do
    /// not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given_files: BTreeMap<String, Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSkill {
    pub path: PathBuf,
    /// Of its own files, without its evals: versions with one digest are the same.
    pub digest: Digest,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSetting {
    /// As a person would write it.
    pub value: String,
    /// Who said so.
    pub from: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedTrial {
    /// Also the name of the trial's folder.
    pub id: TrialId,
    pub suite: String,
    pub case: String,
    pub condition: Condition,
    /// From 1.
    pub attempt: u32,
}

/// What was found in a trial: `checks.json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "What a trial was found to be (trials/*/checks.json)")]
pub struct TrialChecks<'r> {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    #[serde(flatten)]
    pub record: &'r TrialRecord,
}
