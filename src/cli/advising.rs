//! Who is asked for an opinion, and how.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::purse::Purse;
use crate::improve::Adviser;
use crate::intake::{self, Ask, Bench, IntakeError, Shared};
use crate::judge::Scrub;
use crate::model::Suite;
use crate::run::Cancel;
use crate::settings::{Layers, Settings};
use crate::store::Scrubber;

/// For commands that ask a model and run nothing.
#[derive(Debug, Clone, clap::Args)]
pub struct Advising {
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

impl Advising {
    pub fn flags(&self) -> BTreeMap<&'static str, String> {
        let said = [("judge.model", &self.judge_model), ("judge.provider", &self.grading_provider)];
        said.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    pub fn asking(&self) -> Asking {
        let ask = Ask { script: self.script.clone(), ..Ask::default() };
        Asking { ask, prices: None, cached: true, purse: Purse::default() }
    }
}

/// What decides how a model is reached, whichever command asks.
pub struct Asking {
    pub ask: Ask,
    pub prices: Option<PathBuf>,
    /// Whether what was answered before need not be asked again.
    pub cached: bool,
    pub purse: Purse,
}

impl Asking {
    /// What those share who are asked in one run.
    pub fn shared(&self, layers: &Layers, project: &Path, scrubber: &Scrubber) -> anyhow::Result<Shared> {
        let cleaner = scrubber.clone();
        let scrub: Scrub = Arc::new(move |text| cleaner.text(text));
        let bench = Bench::of(project, layers, &scrub, !self.cached)?;
        Ok(Shared { ledger: self.purse.open(layers, self.prices.as_deref())?, scrub, bench })
    }

    /// Someone to ask where nothing is run. Without a script of the user's, that of the evals answers if
    /// they have one.
    pub async fn adviser(
        &self,
        layers: &Layers,
        project: &Path,
        suite: &Suite,
        script: Option<&Path>,
        cancel: Cancel,
    ) -> anyhow::Result<Adviser> {
        let environment = layers.environment();
        let shared = self.shared(layers, project, &Scrubber::new(environment))?;
        let settings = Settings::resolve(layers, suite).map_err(IntakeError::from)?;
        let script = self.ask.script.as_deref().or(script);
        let means = intake::adviser(&settings, script, &self.ask, environment, &shared).await?;
        let judge = means.judge.map_err(NoAdviser)?;
        Ok(Adviser::new(judge, means.gateway.map(|(gateway, _)| gateway), cancel))
    }
}

/// There is no model to be asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoAdviser(String);
