//! Every choice of a run, resolved once, each with where it came from.
//!
//! In: flags, environment, a suite, project and user files. Out: `Settings`. Never: consulted
//! again later.

mod agents;
mod knobs;
mod layers;
mod schema;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use agents::own_agents;
pub use knobs::{JOBS, JUDGE_JOBS, KNOBS, Knob, MAX_COST, MAX_TOKENS, PROBE, RETRIES, RETRY_WAIT, SANDBOX};
pub use layers::{Layers, Projects, SettingsError, project_root};
pub use schema::schema as project_schema;

use practicum_core::model::{Arm, Base, Mode, Provider, Ratio, Suite, Transport, UnsupportedPass};

/// A value and who said it.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    pub value: T,
    pub from: From,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    Flag,
    Environment(String),
    EvalFile,
    Project(PathBuf),
    User(PathBuf),
    /// What the eval's format says where everyone is silent.
    Format(String),
    Default,
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            From::Flag => f.write_str("flag"),
            From::Environment(name) => write!(f, "environment {name}"),
            From::EvalFile => f.write_str("eval file"),
            From::Project(path) | From::User(path) => write!(f, "{}", path.display()),
            From::Format(name) => write!(f, "{name} format"),
            From::Default => f.write_str("default"),
        }
    }
}

/// How one suite is run and judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub agents: Setting<Vec<String>>,
    pub model: Setting<Option<String>>,
    pub repeat: Setting<u32>,
    pub timeout: Setting<Duration>,
    pub arms: Setting<Vec<Arm>>,
    pub mode: Setting<Mode>,
    pub trigger_threshold: Setting<Ratio>,
    pub sync_tasks: Setting<bool>,
    pub detect_questions: Setting<bool>,
    /// The only tools that the agent may use; `None` for all.
    pub tools: Setting<Option<Vec<String>>>,
    /// What workspaces begin as; `None` for what the eval file says.
    pub workspace: Setting<Option<Base>>,
    pub judge_model: Setting<Option<String>>,
    pub judge_provider: Setting<Provider>,
    pub judge_transport: Setting<Transport>,
    pub judge_votes: Setting<u32>,
    pub judge_unsupported: Setting<UnsupportedPass>,
}

impl Settings {
    pub fn resolve(layers: &Layers, suite: &Suite) -> Result<Self, SettingsError> {
        Ok(Self {
            agents: layers.pick(&knobs::AGENT, suite)?,
            model: layers.pick(&knobs::MODEL, suite)?,
            repeat: layers.pick(&knobs::REPEAT, suite)?,
            timeout: layers.pick(&knobs::TIMEOUT, suite)?,
            arms: layers.pick(&knobs::ARM, suite)?,
            mode: layers.pick(&knobs::MODE, suite)?,
            trigger_threshold: layers.pick(&knobs::TRIGGER_THRESHOLD, suite)?,
            sync_tasks: layers.pick(&knobs::SYNC_TASKS, suite)?,
            detect_questions: layers.pick(&knobs::DETECT_QUESTIONS, suite)?,
            tools: layers.pick(&knobs::TOOLS, suite)?,
            workspace: layers.pick(&knobs::WORKSPACE, suite)?,
            judge_model: layers.pick(&knobs::JUDGE_MODEL, suite)?,
            judge_provider: layers.pick(&knobs::JUDGE_PROVIDER, suite)?,
            judge_transport: layers.pick(&knobs::JUDGE_TRANSPORT, suite)?,
            judge_votes: layers.pick(&knobs::JUDGE_VOTES, suite)?,
            judge_unsupported: layers.pick(&knobs::JUDGE_UNSUPPORTED, suite)?,
        })
    }

    /// Every value with its source, for `--explain` and for the record.
    pub fn explain(&self) -> Vec<(&'static str, String, From)> {
        fn row<T>(
            name: &'static str,
            setting: &Setting<T>,
            shown: impl Fn(&T) -> String,
        ) -> (&'static str, String, From) {
            (name, shown(&setting.value), setting.from.clone())
        }
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "(the agent's own)".to_owned());
        vec![
            row("agent", &self.agents, |agents| agents.join(", ")),
            row("model", &self.model, text),
            row("repeat", &self.repeat, u32::to_string),
            row("timeout", &self.timeout, |timeout| practicum_core::model::format_duration(*timeout)),
            row("arm", &self.arms, |arms| arms.iter().map(|arm| arm.name()).collect::<Vec<_>>().join(", ")),
            row("mode", &self.mode, |mode| mode.name().to_owned()),
            row("trigger-threshold", &self.trigger_threshold, |ratio| ratio.get().to_string()),
            row("sync-tasks", &self.sync_tasks, bool::to_string),
            row("detect-questions", &self.detect_questions, bool::to_string),
            row("tools", &self.tools, |tools| {
                tools.as_ref().map_or_else(|| "(all)".to_owned(), |tools| tools.join(", "))
            }),
            row("workspace", &self.workspace, |base| match base {
                Some(Base::Empty) => "empty".to_owned(),
                Some(Base::Project) => "project".to_owned(),
                None => "(as each case says)".to_owned(),
            }),
            row("judge.model", &self.judge_model, |model| {
                model.clone().unwrap_or_else(|| "(the provider's default)".to_owned())
            }),
            row("judge.provider", &self.judge_provider, |provider| provider.name().to_owned()),
            row("judge.transport", &self.judge_transport, |transport| transport.name().to_owned()),
            row("judge.votes", &self.judge_votes, u32::to_string),
            row("judge.unsupported", &self.judge_unsupported, |pass| pass.name().to_owned()),
        ]
    }
}
