use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Check, CheckKind, Ratio, RelPath};

/// One question of the exam.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub id: String,
    pub group: Option<String>,
    /// Why this case exists, for people.
    pub note: Option<String>,
    pub prompt: CasePrompt,
    pub workspace: WorkspaceSpec,
    pub checks: Vec<Check>,
    /// What the judge may read but does not score.
    pub context: Option<String>,
    pub timeout: Option<Duration>,
    pub repeat: Option<u32>,
    pub pass_rule: PassRule,
    /// A file with an output known to be good.
    pub known_good_output: Option<PathBuf>,
    pub meta: BTreeMap<String, Value>,
}

impl Case {
    /// The code that comes with the case, each with what it is there for: its scripts, and checks that run
    /// commands.
    pub fn scripts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let around = [("setup", &self.workspace.setup), ("teardown", &self.workspace.teardown)];
        let around = around.into_iter().filter_map(|(what, script)| Some((what, script.clone()?)));
        let checks = self.checks.iter().filter_map(|check| match &check.kind {
            CheckKind::Rule(rule) if rule.runs_code() => Some(("check", rule.value().to_string())),
            CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => {
                None
            }
        });
        around.chain(checks)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CasePrompt {
    /// User messages, sent one after another in one session. Never empty.
    Turns(Vec<String>),
    /// The skill invoked by name, as its own command.
    SkillCommand { args: String },
}

/// What the agent finds when it opens its eyes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSpec {
    pub base: WorkspaceBase,
    /// Folders laid over the base, in order; later ones win.
    pub overlays: Vec<PathBuf>,
    pub skill_name: StagedSkillName,
    pub files: Vec<Fixture>,
    /// Shell scripts run before and after the agent, in its home and workspace.
    pub setup: Option<String>,
    pub teardown: Option<String>,
}

impl Default for WorkspaceSpec {
    fn default() -> Self {
        Self {
            base: WorkspaceBase::Empty,
            overlays: Vec::new(),
            skill_name: StagedSkillName::Own,
            files: Vec::new(),
            setup: None,
            teardown: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceBase {
    /// A copy of the project, without its evals, its dependencies and what git ignores.
    Project,
    Empty,
}

/// Under which name the skill is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StagedSkillName {
    Own,
    /// A name that occurs nowhere else, so that only the description can have fired it.
    Alias,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    pub source: PathBuf,
    pub destination: RelPath,
    pub access: FixtureAccess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixtureAccess {
    ReadOnly,
    Mutable,
}

/// When a case passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PassRule {
    EveryRequiredCheck,
    /// The share of runs in which the skill fired, against a threshold. `None` leaves the
    /// threshold to the settings.
    ActivationRate(Option<Ratio>),
    /// Every required check holds, and of the judged ones this share passes with this mean score.
    JudgedThresholds {
        pass_rate: Ratio,
        mean_score: Ratio,
    },
    /// The case only counts towards rates; it has no pass of its own.
    CountOnly,
}
