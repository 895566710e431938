//! The settings of a run. Each is resolved once and keeps its source.
//!
//! In: flags, environment, a suite, project and user files. Out: `Settings`. Never: read again later.

mod agents;
mod definitions;
mod layers;
mod limits;
mod portable;
mod schema;
mod weakening;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use agents::own_agents;
pub use definitions::{
    JOBS, JUDGE_JOBS, MAX_COST, MAX_TOKENS, PROBE, REPEAT, RETRIES, RETRY_WAIT, SANDBOX,
    SETTING_DESCRIPTIONS, SettingDefinition,
};
pub use layers::{
    PROJECT_FILE, ProjectRoots, SettingLayers, SettingsError, project_root, user_config_folder,
};
pub use limits::{LIMIT_NAMES, LIMITS_PREFIX, explain_limits, resource_limits};
pub use portable::PortableSettings;
pub use schema::schema as project_schema;
pub(crate) use weakening::weakens;

use practicum_core::model::{
    Arm, JudgeTransportChoice, Provider, Ratio, SkillUseMode, Suite, UnsupportedPassPolicy, WorkspaceBase,
};

/// A value, and the source it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub source: SettingSource,
}

/// The source of a setting's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingSource {
    Flag,
    Environment(String),
    EvalFile,
    Project(PathBuf),
    User(PathBuf),
    /// The default of the eval's format, if no other source has a value.
    Format(String),
    Default,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Flag => f.write_str("flag"),
            SettingSource::Environment(name) => write!(f, "environment {name}"),
            SettingSource::EvalFile => f.write_str("eval file"),
            SettingSource::Project(path) | SettingSource::User(path) => write!(f, "{}", path.display()),
            SettingSource::Format(name) => write!(f, "{name} format"),
            SettingSource::Default => f.write_str("default"),
        }
    }
}

/// The settings with which one suite is run and judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub agents: Setting<Vec<String>>,
    pub model: Setting<Option<String>>,
    pub repeat: Setting<u32>,
    pub timeout: Setting<Duration>,
    pub arms: Setting<Vec<Arm>>,
    pub mode: Setting<SkillUseMode>,
    pub trigger_threshold: Setting<Ratio>,
    pub sync_tasks: Setting<bool>,
    pub detect_questions: Setting<bool>,
    /// The only tools that the agent may use; `None` for all.
    pub tools: Setting<Option<Vec<String>>>,
    /// The base of workspaces; `None` for what the eval file says.
    pub workspace: Setting<Option<WorkspaceBase>>,
    pub judge_model: Setting<Option<String>>,
    pub judge_provider: Setting<Provider>,
    pub judge_transport: Setting<JudgeTransportChoice>,
    pub judge_votes: Setting<u32>,
    pub judge_unsupported: Setting<UnsupportedPassPolicy>,
}

impl Settings {
    pub fn resolve(layers: &SettingLayers, suite: &Suite) -> Result<Self, SettingsError> {
        Ok(Self {
            agents: layers.resolve(&definitions::AGENT, suite)?,
            model: layers.resolve(&definitions::MODEL, suite)?,
            repeat: layers.resolve(&definitions::REPEAT, suite)?,
            timeout: layers.resolve(&definitions::TIMEOUT, suite)?,
            arms: layers.resolve(&definitions::ARM, suite)?,
            mode: layers.resolve(&definitions::MODE, suite)?,
            trigger_threshold: layers.resolve(&definitions::TRIGGER_THRESHOLD, suite)?,
            sync_tasks: layers.resolve(&definitions::SYNC_TASKS, suite)?,
            detect_questions: layers.resolve(&definitions::DETECT_QUESTIONS, suite)?,
            tools: layers.resolve(&definitions::TOOLS, suite)?,
            workspace: layers.resolve(&definitions::WORKSPACE, suite)?,
            judge_model: layers.resolve(&definitions::JUDGE_MODEL, suite)?,
            judge_provider: layers.resolve(&definitions::JUDGE_PROVIDER, suite)?,
            judge_transport: layers.resolve(&definitions::JUDGE_TRANSPORT, suite)?,
            judge_votes: layers.resolve(&definitions::JUDGE_VOTES, suite)?,
            judge_unsupported: layers.resolve(&definitions::JUDGE_UNSUPPORTED, suite)?,
        })
    }

    /// Lists every value with its source, for `--explain` and for the record.
    pub fn explain(&self) -> Vec<(&'static str, String, SettingSource)> {
        fn explain_row<T>(
            name: &'static str,
            setting: &Setting<T>,
            shown: impl Fn(&T) -> String,
        ) -> (&'static str, String, SettingSource) {
            (name, shown(&setting.value), setting.source.clone())
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(the agent's own)".to_owned());
        vec![
            explain_row("agent", &self.agents, |agents| agents.join(", ")),
            explain_row("model", &self.model, text),
            explain_row("repeat", &self.repeat, u32::to_string),
            explain_row("timeout", &self.timeout, |timeout| practicum_core::model::format_duration(*timeout)),
            explain_row("arm", &self.arms, |arms| {
                arms.iter().map(|arm| arm.name()).collect::<Vec<_>>().join(", ")
            }),
            explain_row("mode", &self.mode, |mode| mode.name().to_owned()),
            explain_row("trigger-threshold", &self.trigger_threshold, |ratio| ratio.get().to_string()),
            explain_row("sync-tasks", &self.sync_tasks, bool::to_string),
            explain_row("detect-questions", &self.detect_questions, bool::to_string),
            explain_row("tools", &self.tools, |tools| {
                tools.as_ref().map_or_else(|| "(all)".to_owned(), |tools| tools.join(", "))
            }),
            explain_row("workspace", &self.workspace, |base| match base {
                Some(WorkspaceBase::Empty) => "empty".to_owned(),
                Some(WorkspaceBase::Project) => "project".to_owned(),
                None => "(as each case says)".to_owned(),
            }),
            explain_row("judge.model", &self.judge_model, |model| {
                model.clone().unwrap_or_else(|| "(the provider's default)".to_owned())
            }),
            explain_row("judge.provider", &self.judge_provider, |provider| provider.name().to_owned()),
            explain_row("judge.transport", &self.judge_transport, |transport| transport.name().to_owned()),
            explain_row("judge.votes", &self.judge_votes, u32::to_string),
            explain_row("judge.unsupported", &self.judge_unsupported, |pass| pass.name().to_owned()),
        ]
    }
}
