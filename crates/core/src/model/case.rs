//! A case: one prompt with its workspace and its checks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Check, CheckKind, Ratio, RelPath};

/// One prompt for an agent, with the checks that grade the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    pub id: String,
    pub group: Option<String>,
    /// The reason why this case exists, for people.
    pub note: Option<String>,
    pub prompt: CasePrompt,
    pub workspace: WorkspaceSpec,
    pub checks: Vec<Check>,
    /// Background that the judge may read but does not grade.
    pub context: Option<String>,
    pub timeout: Option<Duration>,
    pub repeat: Option<u32>,
    pub pass_rule: PassRule,
    /// A file with an output known to be good.
    pub known_good_output: Option<PathBuf>,
    pub meta: BTreeMap<String, Value>,
}

impl Case {
    /// Gives the code that comes with the case, each piece with its purpose: the case's scripts, and checks that
    /// run commands.
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
    /// The skill's own command, with these arguments.
    SkillCommand { args: String },
}

/// The contents of the agent's workspace at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSpec {
    pub base: WorkspaceBase,
    /// Folders copied over the base, in order; later ones win.
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

/// The name under which the skill is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StagedSkillName {
    Own,
    /// A name that occurs nowhere else, so that only the description can make the agent activate the skill.
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

/// The rule that decides when a case passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PassRule {
    EveryRequiredCheck,
    /// The share of trials that activated the skill must reach a threshold. `None` leaves the threshold to the
    /// settings.
    ActivationRate(Option<Ratio>),
    /// Every required check passes; of the judged checks this share passes, with this mean score.
    JudgedThresholds {
        pass_rate: Ratio,
        mean_score: Ratio,
    },
    /// The case only counts towards rates; it does not pass or fail by itself.
    CountOnly,
}
