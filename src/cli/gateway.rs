//! The command `practicum gateway`: serves a model gateway alone.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use super::{environment, interrupts, print, report_error, runtime};
use crate::gateway::{
    Cassette, CassetteRecorder, CassetteReplay, Gateway, GatewayOptions, Passthrough, PriceTable, Responder,
    ScopeKind, SpendingLedger, Upstream,
};
use crate::llm::ModelApi;
use crate::model::Outcome;
use crate::report::terminal_safe;
use crate::session::run_setup::{self, RunSetupError};
use crate::store::Scrubber;

#[derive(clap::Args)]
#[command(
    group(clap::ArgGroup::new("mode").required(true).args(["script", "replay", "record", "meter"])),
    after_help = "\
Prints a line of JSON with the base URL for each API, then serves until interrupted. Each request is \
a line on standard error. The credential for the upstream comes from the vendors' own variables \
(ANTHROPIC_API_KEY, OPENAI_API_KEY); clients of the gateway need none.

Examples:
  practicum gateway --script script.yaml               an agent without a model
  practicum gateway --record a.cassette.jsonl --port 8080"
)]
pub struct GatewayArgs {
    /// Play a script
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Answer from a cassette
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Pass on to the upstream, and write a new cassette
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Pass on to the upstream, and count
    #[arg(long)]
    meter: bool,
    /// The address of the model, in place of the one in the vendors' variables
    #[arg(long, value_name = "URL", conflicts_with_all = ["script", "replay"])]
    upstream: Option<String>,
    /// The port to serve on; any free one if not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Prices of models, before those that are known (TOML)
    #[arg(long, value_name = "FILE", env = "PRACTICUM_PRICES")]
    prices: Option<PathBuf>,
}

pub fn main(args: &GatewayArgs) -> Outcome {
    run(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

/// The scope name of a gateway that serves alone.
const STANDALONE_NAME: &str = "gateway";

fn run(args: &GatewayArgs) -> anyhow::Result<()> {
    let environment = environment();
    let prices =
        args.prices.as_deref().map_or_else(|| Ok(PriceTable::default()), PriceTable::with_user_file)?;
    let ledger = Arc::new(SpendingLedger::new(Default::default(), prices));
    let (answer, scopes) = choose_answerer(args, &environment)?;
    runtime().context("cannot start")?.block_on(async {
        let log = Some(Arc::new(|line: &str| say!("{}", terminal_safe(line))) as Arc<_>);
        let setup = GatewayOptions { responder: answer, ledger, port: args.port, log };
        let gateway = Gateway::start_with(setup).await.map_err(RunSetupError::Gateway)?;
        let open: Vec<_> = scopes
            .iter()
            .map(|(kind, name)| (kind, gateway.register(name, *kind, BTreeMap::new())))
            .collect();
        for ((kind, scope), (_, name)) in open.iter().zip(&scopes) {
            for api in ModelApi::ALL {
                let line = serde_json::json!({
                    "base_url": scope.base_url_for(api),
                    "api": api.name(),
                    "trial": name,
                    "kind": kind,
                });
                print(&format!("{line}\n"))?;
            }
        }
        interrupts::wait_for_stop_request().await.context("cannot wait for an interrupt")?;
        for (_, scope) in &open {
            scope.finish().iter().for_each(|note| say!("note: {}", terminal_safe(note)));
        }
        gateway.stop().await;
        Ok(())
    })
}

type GatewayScopes = Vec<(ScopeKind, String)>;

/// Chooses what answers the requests, and the scopes that it serves.
fn choose_answerer(
    args: &GatewayArgs,
    env: &BTreeMap<String, String>,
) -> anyhow::Result<(Arc<dyn Responder>, GatewayScopes)> {
    let alone = vec![(ScopeKind::Agent, STANDALONE_NAME.to_owned())];
    let scrubber = Scrubber::new(env);
    let scrub = Arc::new(move |text: &str| scrubber.scrub_text(text));
    let upstream = || match &args.upstream {
        Some(url) => Upstream::for_url(url, env),
        None => Upstream::from_env(env),
    };
    if let Some(path) = &args.script {
        return Ok((Arc::new(run_setup::read_script(path)?), alone));
    }
    if let Some(path) = &args.replay {
        let cassette = Cassette::read(path).map_err(RunSetupError::from)?;
        let scopes = cassette.recorded_scopes();
        return Ok((Arc::new(CassetteReplay::new(cassette, scrub)), scopes));
    }
    if let Some(path) = &args.record {
        let record = CassetteRecorder::create(path, upstream(), scrub).map_err(RunSetupError::from)?;
        return Ok((Arc::new(record), alone));
    }
    Ok((Arc::new(Passthrough::new(upstream())), alone))
}
