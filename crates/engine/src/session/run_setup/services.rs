//! Opens the gateways that replace or record the model, and connects the judges.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::RunSetupError;
use super::judges::JudgePool;
use crate::grade::judge::Judge;
use crate::grade::{GatewayRole, SuiteServices};
use crate::plan::PlannedSuite;
use crate::plan::options::RunInputs;
use crate::plan::settings::Settings;
use practicum_agents::gateway::{
    Cassette, CassetteRecorder, CassetteReplay, Gateway, GatewayOptions, ModelScript, Passthrough, Responder,
    SecretScrubber, SpendingLedger, Upstream,
};
use practicum_core::model::{Check, Diagnostics};

/// The ledger, scrubber and judges that the gateways of a run share.
pub struct SharedServices {
    pub ledger: Arc<SpendingLedger>,
    /// Removes secrets from recordings.
    pub scrub: SecretScrubber,
    pub judges: JudgePool,
}

/// Opens gateways and judges for the planned suites, in their order.
pub async fn connect_services(
    planned: &[PlannedSuite],
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &SharedServices,
) -> Result<Vec<SuiteServices>, RunSetupError> {
    let mut gateways: BTreeMap<Option<&Path>, (Arc<Gateway>, GatewayRole)> = BTreeMap::new();
    let mut all = Vec::new();
    for suite in planned {
        // Suites without a script of their own share one gateway, if they have any.
        let script = suite.script.as_deref();
        let gateway = match gateways.get(&script) {
            Some((gateway, stand)) => Some((Arc::clone(gateway), *stand)),
            None => {
                let opened = open_gateway(script, ask, env, shared).await?;
                if let Some((gateway, stand)) = &opened {
                    gateways.insert(script, (Arc::clone(gateway), *stand));
                }
                opened
            }
        };
        let mut checks = suite.suite.cases.iter().flat_map(|case| &case.checks);
        let needs_pictures = checks.any(Check::needs_pictures);
        let judge = connect_suite_judge(gateway.as_ref(), &suite.settings, needs_pictures, ask, env, shared);
        all.push(SuiteServices { gateway, judge });
    }
    Ok(all)
}

/// Connects a model for questions outside of any suite, with these settings, and with a script if one is to
/// answer.
pub async fn connect_adviser(
    settings: &Settings,
    script: Option<&Path>,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &SharedServices,
) -> Result<SuiteServices, RunSetupError> {
    let gateway = open_gateway(script, ask, env, shared).await?;
    let judge = connect_suite_judge(gateway.as_ref(), settings, false, ask, env, shared);
    Ok(SuiteServices { gateway, judge })
}

async fn open_gateway(
    script: Option<&Path>,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &SharedServices,
) -> Result<Option<(Arc<Gateway>, GatewayRole)>, RunSetupError> {
    let Some((answer, stand)) = choose_stand_in(script, ask, env, shared)? else { return Ok(None) };
    let setup = GatewayOptions { responder: answer, ledger: Arc::clone(&shared.ledger), port: 0, log: None };
    let gateway = Gateway::start_with(setup).await.map_err(RunSetupError::Gateway)?;
    Ok(Some((Arc::new(gateway), stand)))
}

fn connect_suite_judge(
    gateway: Option<&(Arc<Gateway>, GatewayRole)>,
    settings: &Settings,
    needs_pictures: bool,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &SharedServices,
) -> Result<Arc<Judge>, String> {
    if ask.no_judge {
        return Err("--no-judge was given".to_owned());
    }
    let (gateway, stand) = gateway.map(|(gateway, stand)| (gateway.as_ref(), *stand)).unzip();
    shared.judges.connect_judge(settings, needs_pictures, gateway, stand, env).map(Arc::new)
}

type ModelStandIn = (Arc<dyn Responder>, GatewayRole);

/// Chooses what replaces or records the model, if anything does.
fn choose_stand_in(
    script: Option<&Path>,
    ask: &RunInputs,
    env: &BTreeMap<String, String>,
    shared: &SharedServices,
) -> Result<Option<ModelStandIn>, RunSetupError> {
    if let Some(path) = script {
        return Ok(Some((Arc::new(read_script(path)?), GatewayRole::Script)));
    }
    if let Some(path) = &ask.replay {
        let replay = CassetteReplay::new(Cassette::read(path)?, Arc::clone(&shared.scrub));
        return Ok(Some((Arc::new(replay), GatewayRole::Replay)));
    }
    if let Some(path) = &ask.record {
        let record = CassetteRecorder::create(path, Upstream::from_env(env), Arc::clone(&shared.scrub))?;
        return Ok(Some((Arc::new(record), GatewayRole::Record)));
    }
    if shared.ledger.has_budget() {
        return Ok(Some((Arc::new(Passthrough::new(Upstream::from_env(env))), GatewayRole::Meter)));
    }
    Ok(None)
}

/// Reads a script. Any error in it is returned.
pub fn read_script(path: &Path) -> Result<ModelScript, RunSetupError> {
    let mut diagnostics = Diagnostics::default();
    let (text, script) = ModelScript::read(path, &mut diagnostics);
    match script {
        Some(script) if !diagnostics.has_errors() => Ok(script),
        _ => Err(RunSetupError::Script { path: path.to_owned(), text, diagnostics }),
    }
}
