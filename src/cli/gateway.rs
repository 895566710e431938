use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;

use super::{complain, environment, interrupts, print, runtime};
use crate::gateway::{
    Answer, Cassette, Gateway, Ledger, Meter, Prices, Record, Replay, ScopeKind, Setup, Upstream,
};
use crate::intake::{self, IntakeError};
use crate::llm::Api;
use crate::report::safe;
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
pub struct Args {
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
    /// Where the model is, instead of where the vendors' variables say
    #[arg(long, value_name = "URL", conflicts_with_all = ["script", "replay"])]
    upstream: Option<String>,
    /// The port to serve on; any free one if not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Prices of models, before those that are known (TOML)
    #[arg(long, value_name = "FILE", env = "PRACTICUM_PRICES")]
    prices: Option<PathBuf>,
}

pub fn main(args: &Args) -> u8 {
    run(args).map_or_else(|error| complain(&error), |()| 0)
}

/// The name under which a gateway that serves alone records.
const ALONE: &str = "gateway";

fn run(args: &Args) -> anyhow::Result<()> {
    let environment = environment();
    let prices = args.prices.as_deref().map_or_else(|| Ok(Prices::default()), Prices::with_file)?;
    let ledger = Arc::new(Ledger::new(Default::default(), prices));
    let (answer, scopes) = answer(args, &environment)?;
    runtime().context("cannot start")?.block_on(async {
        let log = Some(Arc::new(|line: &str| say!("{}", safe(line))) as Arc<_>);
        let setup = Setup { answer, ledger, port: args.port, log };
        let gateway = Gateway::set_up(setup).await.map_err(IntakeError::Gateway)?;
        let open: Vec<_> = scopes
            .iter()
            .map(|(kind, name)| (kind, gateway.register(name, *kind, BTreeMap::new())))
            .collect();
        for ((kind, scope), (_, name)) in open.iter().zip(&scopes) {
            for api in Api::ALL {
                let line = serde_json::json!({
                    "base_url": scope.base_url_for(api),
                    "api": api.name(),
                    "trial": name,
                    "kind": kind,
                });
                print(&format!("{line}\n"))?;
            }
        }
        interrupts::any().await.context("cannot wait for an interrupt")?;
        for (_, scope) in &open {
            scope.finish().iter().for_each(|note| say!("note: {}", safe(note)));
        }
        gateway.stop().await;
        Ok(())
    })
}

type Scopes = Vec<(ScopeKind, String)>;

/// Who answers, and for whom.
fn answer(args: &Args, env: &BTreeMap<String, String>) -> anyhow::Result<(Arc<dyn Answer>, Scopes)> {
    let alone = vec![(ScopeKind::Agent, ALONE.to_owned())];
    let scrubber = Scrubber::new(env);
    let scrub = Arc::new(move |text: &str| scrubber.text(text));
    let upstream = || match &args.upstream {
        Some(url) => Upstream::at(url, env),
        None => Upstream::from_env(env),
    };
    if let Some(path) = &args.script {
        return Ok((Arc::new(intake::scripted(path)?), alone));
    }
    if let Some(path) = &args.replay {
        let cassette = Cassette::read(path).map_err(IntakeError::from)?;
        let scopes = cassette.scopes();
        return Ok((Arc::new(Replay::new(cassette, scrub)), scopes));
    }
    if let Some(path) = &args.record {
        let record = Record::create(path, upstream(), scrub).map_err(IntakeError::from)?;
        return Ok((Arc::new(record), alone));
    }
    Ok((Arc::new(Meter::new(upstream())), alone))
}
