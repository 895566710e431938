//! A case: one prompt with its workspace and its checks.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Check, CheckKind, Mocks, Ratio, RelPath, SimulatedUser};

/// One prompt for an agent, with the checks that grade the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The id of the case, unique in its suite.
    pub id: String,
    /// The group that the case belongs to, for tables in reports.
    pub group: Option<String>,
    /// The reason why this case exists, for people.
    pub note: Option<String>,
    /// The user's messages, or the skill's own command.
    pub prompt: CasePrompt,
    /// Who answers the agent after these messages; `None` if nobody does.
    pub user: Option<SimulatedUser>,
    /// The workspace that the agent starts with.
    pub workspace: WorkspaceSpec,
    /// The servers and command-line tools that answer in place of the real ones.
    pub mocks: Mocks,
    /// The checks that grade the trials of the case.
    pub checks: Vec<Check>,
    /// Background that the judge may read but does not grade.
    pub context: Option<String>,
    /// The time limit of a trial, if the case has its own.
    pub timeout: Option<Duration>,
    /// The number of trials, if the case has its own.
    pub repeat: Option<u32>,
    /// The rule that decides when the case passes.
    pub pass_rule: PassRule,
    /// A file with an output known to be good.
    pub known_good_output: Option<PathBuf>,
    /// The reason why this version cannot run the case, if it cannot. Such a case is not started and not scored.
    pub unsupported: Option<String>,
    /// Values of the eval file that are kept and not used.
    pub meta: BTreeMap<String, Value>,
}

impl Case {
    /// Makes a case with one user message, in an empty workspace and without checks.
    pub fn new(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            group: None,
            note: None,
            prompt: CasePrompt::Turns(vec![prompt.into()]),
            user: None,
            workspace: WorkspaceSpec::default(),
            mocks: Mocks::default(),
            checks: Vec::new(),
            context: None,
            timeout: None,
            repeat: None,
            pass_rule: PassRule::EveryRequiredCheck,
            known_good_output: None,
            unsupported: None,
            meta: BTreeMap::new(),
        }
    }

    /// Says whether a model decides a check of the case, or plays its user or one of its servers.
    pub fn needs_model(&self) -> bool {
        self.checks.iter().any(Check::needs_model)
            || self.user.as_ref().is_some_and(SimulatedUser::needs_model)
            || self.mocks.need_model()
    }

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

/// The input of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CasePrompt {
    /// User messages, sent one after another in one session. Never empty.
    Turns(Vec<String>),
    /// The skill's own command, with these arguments.
    SkillCommand {
        /// The arguments of the command.
        args: String,
    },
}

/// The contents of the agent's workspace at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSpec {
    /// The content of the workspace before overlays and files are copied.
    pub base: WorkspaceBase,
    /// Folders copied over the base, in order; later ones win.
    pub overlays: Vec<PathBuf>,
    /// The name under which the skill is staged.
    pub skill_name: StagedSkillName,
    /// The files that are copied into the workspace.
    pub files: Vec<Fixture>,
    /// The files whose content the eval file itself gives.
    pub inline_files: Vec<InlineFile>,
    /// Shell scripts run before and after the agent, in its home and workspace.
    pub setup: Option<String>,
    /// A shell script that runs after the agent.
    pub teardown: Option<String>,
}

impl Default for WorkspaceSpec {
    fn default() -> Self {
        Self {
            base: WorkspaceBase::Empty,
            overlays: Vec::new(),
            skill_name: StagedSkillName::Own,
            files: Vec::new(),
            inline_files: Vec::new(),
            setup: None,
            teardown: None,
        }
    }
}

/// What a workspace contains before fixtures and overlays are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceBase {
    /// A copy of the project with the files that git ignores, but without evals, credentials, build folders and records.
    Project,
    /// An empty folder.
    Empty,
}

/// The name under which the skill is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StagedSkillName {
    /// The skill's own name.
    Own,
    /// A name that occurs nowhere else, so that only the description can make the agent activate the skill.
    Alias,
}

/// A file or folder that is copied into the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// The path of the original.
    pub source: PathBuf,
    /// The path of the copy in the workspace.
    pub destination: RelPath,
    /// Whether the agent may change the copy.
    pub access: FixtureAccess,
}

/// A file of the workspace whose content the eval file gives. A change of the file is reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InlineFile {
    /// The path of the file in the workspace.
    pub path: RelPath,
    /// The content of the file.
    pub content: String,
}

/// Whether the agent may change a fixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixtureAccess {
    /// A change of the file is reported.
    ReadOnly,
    /// The agent may change the file.
    Mutable,
}

/// The rule that decides when a case passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PassRule {
    /// The case passes if every required check passes.
    EveryRequiredCheck,
    /// The share of trials that activated the skill must reach a threshold. `None` leaves the threshold to the
    /// settings.
    ActivationRate(Option<Ratio>),
    /// Every required check passes; of the judged checks this share passes, with this mean score.
    JudgedThresholds {
        /// The share of the judged checks that must pass.
        pass_rate: Ratio,
        /// The mean score that the judged checks must reach.
        mean_score: Ratio,
    },
    /// Every required check passes, and the weighted mean of the scores of all checks reaches a threshold.
    Score(ScoreRule),
    /// The case only counts towards rates; it does not pass or fail by itself.
    CountOnly,
}

/// The score that a case must reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScoreRule {
    /// The lowest score that passes, between 0 and 1.
    #[schemars(with = "f64")]
    pub at_least: Ratio,
    /// What must reach it.
    pub of: ScoreOf,
}

/// What must reach a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreOf {
    /// Each trial by itself.
    EachTrial,
    /// The mean over the trials of the case.
    MeanOfTrials,
}
