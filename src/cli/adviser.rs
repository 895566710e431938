//! The options and the connection of commands that ask a model for an opinion outside of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::improve::Adviser;
use crate::model::Suite;
use crate::plan::settings::{SettingLayers, Settings};
use crate::report::terminal_safe;
use crate::session::run_setup::{self, RunSetupError, SharedServices};
use crate::session::{RunInputs, RunLimits, RunOptions, SessionError, shared_services};
use crate::store::Scrubber;
use crate::workspace::run::CancelToken;

/// Arguments of commands that ask a model and run no agent.
#[derive(Debug, Clone, clap::Args)]
pub struct AdviserFlags {
    /// A script that answers in place of the model
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// The model that is asked
    #[arg(long, value_name = "MODEL")]
    judge_model: Option<String>,
    /// Whose model that is: anthropic, openai or auto
    #[arg(long, value_name = "PROVIDER")]
    grading_provider: Option<String>,
}

impl AdviserFlags {
    /// Gives the settings that the flags set, by name.
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let given = [("judge.model", &self.judge_model), ("judge.provider", &self.grading_provider)];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// Gives the access to the model.
    pub fn model_access(&self) -> ModelAccess {
        let inputs = RunInputs { script: self.script.clone(), ..RunInputs::default() };
        ModelAccess { options: RunOptions { inputs, ..RunOptions::default() }, limits: RunLimits::default() }
    }
}

/// The options and limits for asking a model outside of a run.
pub struct ModelAccess {
    pub options: RunOptions,
    pub limits: RunLimits,
}

impl ModelAccess {
    /// Gives the services that all questions of one command share.
    pub fn shared(
        &self,
        layers: &SettingLayers,
        project: &Path,
        scrubber: &Scrubber,
    ) -> Result<SharedServices, SessionError> {
        let mut tell = |text: &str| say!("note: {}", terminal_safe(text));
        shared_services(&self.options, &self.limits, layers, project, scrubber, &mut tell)
    }

    /// Connects an adviser. If the user gives no script and the evals have one, their script answers.
    pub async fn adviser(
        &self,
        layers: &SettingLayers,
        project: &Path,
        suite: &Suite,
        script: Option<&Path>,
        cancel: CancelToken,
    ) -> anyhow::Result<Adviser> {
        let environment = layers.environment();
        let shared = self.shared(layers, project, &Scrubber::new(environment))?;
        let settings = Settings::resolve(layers, suite).map_err(RunSetupError::from)?;
        let inputs = &self.options.inputs;
        let script = inputs.script.as_deref().or(script);
        let means = run_setup::connect_adviser(&settings, script, inputs, environment, &shared).await?;
        let judge = means.judge.map_err(NoAdviser)?;
        Ok(Adviser::new(judge, means.gateway.map(|(gateway, _)| gateway), cancel))
    }
}

/// An error: there is no model to ask.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoAdviser(String);
