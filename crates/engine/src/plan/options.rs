//! Everything that a caller decides about a run, as plain data.
//!
//! In: nothing. Out: types that are stored in a run's record. Never: reads a file or knows where a value came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::settings::LIMITS_PREFIX;
use practicum_core::model::{Gate, Ratio};

/// Everything that a caller decides about a run. Stored in the run's record, so that the run can be resumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunOptions {
    /// The evals and skills of the run, and what replaces the model.
    pub inputs: RunInputs,
    /// The cases that are run.
    pub selection: CaseSelection,
    /// Settings by name, as text; they win over the environment and all files.
    pub settings: BTreeMap<String, String>,
    /// A file with prices of models.
    pub prices: Option<PathBuf>,
    /// Gates that are added to those of the files, or replace those of the same name.
    pub gates: Vec<Gate>,
    /// The share of trials that may stay unscored without the run counting as incomplete.
    #[schemars(with = "f64")]
    pub allow_unscored: Ratio,
    /// Whether a case that is known to be flaky may fail a gate alone.
    pub count_flaky: bool,
    /// A run, or a file that `practicum baseline` wrote, that the gate `no_regression` compares with. `None` for the file in
    /// its usual place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Variables of the user's environment that agents get, by name.
    pub pass_env: Vec<String>,
    /// Whether checks may open links.
    pub allow_network: bool,
    /// Whether no trial is started after one has failed.
    pub fail_fast: bool,
    /// When the run ends, in seconds since 1970: no trial is started later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Whether repeats of a case stop when the earlier ones show whether it mostly passes.
    pub stop_early: bool,
    /// Whether every trial is run, even if a stored result could be reused.
    pub no_reuse: bool,
    /// The name of an independent sample: only trials of the same sample are reused. `None` for the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// Whether the agents' workspaces stay after the run.
    pub keep_workspaces: bool,
    /// Whether real MCP servers answer and are recorded, in place of their recordings. It needs trust.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub record_mocks: bool,
    /// Whether a model predicts activation from the descriptions, in place of observing it.
    pub predict_activation: bool,
    /// The earlier version of the skill, if `compare --against` tests one.
    pub earlier_skill: Option<String>,
    /// Why trends and badges leave the run out; `None` if they count it.
    pub not_in_history: Option<String>,
    /// Reports to write at the end, as `FORMAT=PATH`.
    pub reports: Vec<String>,
}

/// The evals and skills of a run, and what replaces the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunInputs {
    /// Skill folders, eval folders and eval files.
    pub paths: Vec<PathBuf>,
    /// The folder or file of the evals, if they are not in a usual place.
    pub evals: Option<PathBuf>,
    /// The format of the files; `None` to recognise it.
    pub dialect: Option<String>,
    /// The skill under test, in place of the one that the files name.
    pub skill: Option<PathBuf>,
    /// Skills that are staged beside the one under test, in every arm.
    pub with_skills: Vec<PathBuf>,
    /// Plugins that are staged whole, for agents that load plugins.
    pub plugins: Vec<PathBuf>,
    /// Whether scripts of the evals and code of plugins may run.
    pub trust: bool,
    /// A script that answers in place of the model. It replaces the one that the files name.
    pub script: Option<PathBuf>,
    /// A cassette file to which requests and answers of the model are written.
    pub record: Option<PathBuf>,
    /// A cassette file that answers in place of the model.
    pub replay: Option<PathBuf>,
    /// Whether judged checks stay unscored.
    pub no_judge: bool,
    /// Whether the plan is only to be shown, so that its agents need not be installed.
    #[serde(skip)]
    pub only_shown: bool,
    /// Whether workers run the trials, so that the agents of all of them need not be installed here.
    #[serde(skip)]
    pub runs_elsewhere: bool,
}

/// The kind of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaseKind {
    /// The case checks what the agent does.
    Artifact,
    /// The case only checks whether the skill is activated.
    Activation,
}

impl CaseKind {
    /// Gives the kind as it is written on a command line.
    pub fn name(self) -> &'static str {
        match self {
            CaseKind::Artifact => "artifact",
            CaseKind::Activation => "activation",
        }
    }
}

/// The cases of the suites that are run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CaseSelection {
    /// Patterns of case ids with `*` and `?`; empty means all.
    pub cases: Vec<String>,
    /// Only cases of one kind.
    pub only: Option<CaseKind>,
    /// The number of a part, from 1, and the number of parts.
    pub shard: Option<(u32, u32)>,
    /// A file that says how long each case takes, so that the parts take about the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durations: Option<PathBuf>,
    /// The greatest number of cases; if there are more, a random sample is run.
    pub max_cases: Option<u32>,
    /// Only these cases, each by the name of its suite and its id; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exactly: Vec<(String, String)>,
    /// Only suites of which something changed since a commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_since: Option<ChangedSince>,
}

/// The commit that suites are compared with to see which have changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedSince {
    /// The last commit that this branch shares with the default branch.
    DefaultBranch,
    /// The last commit that this branch shares with a branch, a tag or a commit.
    Reference(String),
}

/// Settings that may change when a run is resumed. They are limits that do not affect results.
const RESUMABLE_SETTINGS: [&str; 6] =
    ["jobs", "judge-jobs", "max-cost", "max-tokens", "retries", "retry-wait"];

/// Says whether a setting may change when a run is resumed.
fn may_change(name: &str) -> bool {
    RESUMABLE_SETTINGS.contains(&name) || name.starts_with(LIMITS_PREFIX)
}

impl RunOptions {
    /// Gives the options of a resumed run: those of its start, with the limits that are given now.
    #[must_use]
    pub fn resumed_with(self, now: Self) -> Self {
        let mut settings = self.settings;
        let limits = now.settings.into_iter().filter(|(name, _)| may_change(name));
        settings.extend(limits);
        let mut reports = self.reports;
        reports.extend(now.reports);
        Self {
            settings,
            reports,
            inputs: RunInputs { trust: now.inputs.trust || self.inputs.trust, ..self.inputs },
            prices: now.prices.or(self.prices),
            until: now.until,
            fail_fast: now.fail_fast || self.fail_fast,
            no_reuse: now.no_reuse || self.no_reuse,
            keep_workspaces: now.keep_workspaces || self.keep_workspaces,
            ..self
        }
    }

    /// Replaces every path.
    #[must_use]
    pub fn map_paths(mut self, change: impl Fn(&Path) -> PathBuf) -> Self {
        let inputs = &mut self.inputs;
        let lists = [&mut inputs.paths, &mut inputs.with_skills, &mut inputs.plugins];
        let single = [
            &mut inputs.evals,
            &mut inputs.skill,
            &mut inputs.script,
            &mut inputs.record,
            &mut inputs.replay,
            &mut self.prices,
            &mut self.selection.durations,
        ];
        for path in lists.into_iter().flatten().chain(single.into_iter().flatten()) {
            *path = change(path);
        }
        for report in &mut self.reports {
            if let Some((format, path)) = report.split_once('=').filter(|(_, path)| *path != "-") {
                *report = format!("{format}={}", change(Path::new(path)).display());
            }
        }
        self
    }

    /// Makes the options independent of the working directory: paths that exist below `folder` become absolute.
    /// Other text, such as the name of a skill, stays.
    #[must_use]
    pub fn made_absolute(self, folder: &Path) -> Self {
        let reports = self.reports.clone();
        let made = self.map_paths(|path| {
            let whole = folder.join(path);
            if whole.exists() { whole } else { path.to_owned() }
        });
        // A report need not exist yet.
        let reports = reports.into_iter().map(|report| match report.split_once('=') {
            Some((format, path)) if path != "-" => format!("{format}={}", folder.join(path).display()),
            _ => report,
        });
        Self { reports: reports.collect(), ..made }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(settings: &[(&str, &str)]) -> RunOptions {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RunOptions { settings: settings.collect(), ..RunOptions::default() }
    }

    #[test]
    fn a_resumed_run_keeps_what_decides_results_and_takes_new_limits() {
        let begun = options(&[("repeat", "3"), ("jobs", "1"), ("max-cost", "1")]);
        let now = options(&[("repeat", "9"), ("jobs", "4")]);
        let resumed = begun.resumed_with(now);
        let expected = options(&[("repeat", "3"), ("jobs", "4"), ("max-cost", "1")]);
        assert_eq!(resumed.settings, expected.settings);
    }

    #[test]
    fn stored_options_are_read_again_as_they_were() {
        let stored = RunOptions {
            selection: CaseSelection {
                cases: vec!["a*".to_owned()],
                shard: Some((1, 3)),
                ..Default::default()
            },
            allow_unscored: Ratio::ONE,
            ..options(&[("agent", "claude")])
        };
        let text = serde_json::to_string(&stored).expect("serialises");
        assert_eq!(serde_json::from_str::<RunOptions>(&text).expect("reads"), stored);
    }
}
