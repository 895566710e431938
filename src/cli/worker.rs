//! The command `practicum worker`: runs trials of runs that other machines plan.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use practicum_workers::{NatsAccess, Worker, WorkerEvent, WorkerOptions, WorkerStop};
use tokio::sync::watch;

use super::interrupts::next_worker_stop;
use super::run::parse_label;
use super::{environment, report_error, runtime};
use crate::model::{Outcome, SandboxMode, parse_duration};
use crate::plan::settings::{SANDBOX, SettingLayers};
use crate::report::terminal_safe;
use crate::store::RecordKey;

#[derive(clap::Args)]
#[command(after_help = "\
A worker takes trials from a NATS server (2.10 or newer, with JetStream), as many as it has free slots for, and runs \
them as practicum run would. It only runs what was signed with its own key: the key in your settings folder, or \
PRACTICUM_RECORD_KEY, which must be the same where the run is planned. Logins of agents and keys of judges are those \
of this machine. Ctrl-C lets running trials finish; once more gives them back to the others.

Examples:
  practicum worker nats://queue:4222        all agents that are installed here
  practicum worker nats://queue:4222 -j 8 --agent claude
  practicum worker nats://queue:4222 --idle-exit 5m   for a job of a cluster")]
pub struct WorkerArgs {
    /// The address of the NATS server; tls:// for an encrypted connection
    #[arg(value_name = "URL", env = "PRACTICUM_WORKERS")]
    url: String,
    /// How many trials to run at once
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: u16,
    /// Only trials of this agent (repeatable) [default: every known agent that is installed here]
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// A label of this worker, for run --worker-label (repeatable); os= and arch= labels are always there
    #[arg(long, value_name = "LABEL", value_parser = parse_label)]
    label: Vec<String>,
    /// The weakest sandbox that is used, even if a run asks for less [default: that of your settings]
    #[arg(long, value_name = "auto|off|strict", value_parser = parse_sandbox)]
    sandbox: Option<SandboxMode>,
    /// The name of this worker in messages [default: the name of the machine and the number of the process]
    #[arg(long)]
    name: Option<String>,
    /// End when there was nothing to do for this time, such as 5m
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    idle_exit: Option<Duration>,
}

fn parse_sandbox(text: &str) -> Result<SandboxMode, String> {
    SandboxMode::parse(text).ok_or_else(|| format!("it must be one of {}", SandboxMode::NAMES.join(", ")))
}

fn parse_time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "it must be a time such as 5m".to_owned())
}

pub fn main(args: &WorkerArgs) -> Outcome {
    work(args).unwrap_or_else(|error| report_error(&error))
}

fn work(args: &WorkerArgs) -> anyhow::Result<Outcome> {
    let environment = environment();
    let key = RecordKey::of_user(&environment).map_err(|why| anyhow!(why))?;
    let access = NatsAccess::new(&args.url, &environment);
    let weakest_sandbox = match args.sandbox {
        Some(mode) => mode,
        // A worker belongs to no project, so only the settings of the user and the environment count.
        None => {
            let layers = SettingLayers::without_flags(environment.clone(), Path::new("/nonexistent"))?;
            layers.resolve_global(&SANDBOX)?.value
        }
    };
    let options = WorkerOptions {
        name: args.name.clone().unwrap_or_else(machine_and_process),
        jobs: args.jobs.into(),
        agents: args.agent.iter().cloned().collect(),
        labels: args.label.iter().cloned().collect(),
        weakest_sandbox,
        idle_exit: args.idle_exit,
        environment,
    };
    runtime()?.block_on(async {
        let worker = Worker::connect(&access, options, key, Arc::new(show_event)).await?;
        let (stop, stopped) = watch::channel(WorkerStop::No);
        let requests = next_worker_stop(stop);
        tokio::select! {
            () = worker.run(stopped) => {}
            () = requests => {}
        }
        Ok(Outcome::Passed)
    })
}

fn show_event(event: WorkerEvent) {
    match event {
        WorkerEvent::Ready { agents } => say!("ready for trials of {}", agents.join(", ")),
        WorkerEvent::TrialEnded { text } | WorkerEvent::Notice(text) => say!("{}", terminal_safe(&text)),
    }
}

fn machine_and_process() -> String {
    let machine = rustix::system::uname();
    format!("{}/{}", machine.nodename().to_string_lossy(), std::process::id())
}
