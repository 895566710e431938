//! Who answers in the model's place or listens to it, and who judges.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::IntakeError;
use super::judges::Bench;
use crate::judge::Judge;
use crate::options::RunInputs;
use crate::pipeline::{Stand, SuiteMeans};
use crate::plan::Planned;
use crate::settings::Settings;
use practicum_agents::gateway::{
    Answer, Cassette, Gateway, Ledger, Meter, Record, Replay, Script, Scrub, Setup, Upstream,
};
use practicum_core::model::Diagnostics;

/// What the gateways of a run share.
pub struct Shared {
    pub ledger: Arc<Ledger>,
    /// Takes secrets out of what is recorded.
    pub scrub: Scrub,
    pub bench: Bench,
}

/// Gateways and judges for the planned suites, in their order.
pub async fn means(
    planned: &[Planned],
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Vec<SuiteMeans>, IntakeError> {
    let mut gateways: BTreeMap<Option<&Path>, (Arc<Gateway>, Stand)> = BTreeMap::new();
    let mut all = Vec::new();
    for suite in planned {
        // Suites without a script of their own have one gateway together, if they have any.
        let script = suite.script.as_deref();
        let gateway = match gateways.get(&script) {
            Some((gateway, stand)) => Some((Arc::clone(gateway), *stand)),
            None => {
                let opened = open(script, ask, env, shared).await?;
                if let Some((gateway, stand)) = &opened {
                    gateways.insert(script, (Arc::clone(gateway), *stand));
                }
                opened
            }
        };
        let judge = judge_at(gateway.as_ref(), &suite.settings, ask, env, shared);
        all.push(SuiteMeans { gateway, judge });
    }
    Ok(all)
}

/// Who is asked where no suite is run: with these settings, and a script if one is to answer.
pub async fn adviser(
    settings: &Settings,
    script: Option<&Path>,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<SuiteMeans, IntakeError> {
    let gateway = open(script, ask, env, shared).await?;
    let judge = judge_at(gateway.as_ref(), settings, ask, env, shared);
    Ok(SuiteMeans { gateway, judge })
}

async fn open(
    script: Option<&Path>,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Option<(Arc<Gateway>, Stand)>, IntakeError> {
    let Some((answer, stand)) = stand_in(script, ask, env, shared)? else { return Ok(None) };
    let setup = Setup { answer, ledger: Arc::clone(&shared.ledger), port: 0, log: None };
    let gateway = Gateway::set_up(setup).await.map_err(IntakeError::Gateway)?;
    Ok(Some((Arc::new(gateway), stand)))
}

fn judge_at(
    gateway: Option<&(Arc<Gateway>, Stand)>,
    settings: &Settings,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Arc<Judge>, String> {
    if ask.no_judge {
        return Err("--no-judge was given".to_owned());
    }
    let (gateway, stand) = gateway.map(|(gateway, stand)| (gateway.as_ref(), *stand)).unzip();
    shared.bench.judge(settings, gateway, stand, env).map(Arc::new)
}

type StandIn = (Arc<dyn Answer>, Stand);

/// Who answers in the model's place or listens to it, if anyone does.
fn stand_in(
    script: Option<&Path>,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &Shared,
) -> Result<Option<StandIn>, IntakeError> {
    if let Some(path) = script {
        return Ok(Some((Arc::new(scripted(path)?), Stand::Script)));
    }
    if let Some(path) = &ask.replay {
        let replay = Replay::new(Cassette::read(path)?, Arc::clone(&shared.scrub));
        return Ok(Some((Arc::new(replay), Stand::Replay)));
    }
    if let Some(path) = &ask.record {
        let record = Record::create(path, Upstream::from_env(env), Arc::clone(&shared.scrub))?;
        return Ok(Some((Arc::new(record), Stand::Record)));
    }
    if shared.ledger.has_budget() {
        return Ok(Some((Arc::new(Meter::new(Upstream::from_env(env))), Stand::Meter)));
    }
    Ok(None)
}

/// Reads a script that must be usable.
pub fn scripted(path: &Path) -> Result<Script, IntakeError> {
    let mut diagnostics = Diagnostics::default();
    let (text, script) = Script::read(path, &mut diagnostics);
    match script {
        Some(script) if !diagnostics.has_errors() => Ok(script),
        _ => Err(IntakeError::Script { path: path.to_owned(), text, diagnostics }),
    }
}
