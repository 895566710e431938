//! What a worker runs, and the events that it reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use practicum_core::model::SandboxMode;

/// What a worker runs, and how.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The name of the worker, for people.
    pub name: String,
    /// How many trials run at once.
    pub jobs: usize,
    /// The agents whose trials are run; empty for all known ones that are installed.
    pub agents: BTreeSet<String>,
    /// The labels of the worker. It also has those of its operating system and processor.
    pub labels: BTreeSet<String>,
    /// The weakest sandbox that is used, whatever a run asks for.
    pub weakest_sandbox: SandboxMode,
    /// The worker ends when it had nothing to do for so long; `None` for never.
    pub idle_exit: Option<Duration>,
    /// The environment of the worker, with the logins of agents.
    pub environment: BTreeMap<String, String>,
}

/// Something that happens to a worker.
#[derive(Debug, Clone)]
pub enum WorkerEvent {
    /// The worker is connected and takes trials of these agents.
    Ready {
        /// The names of the agents.
        agents: Vec<String>,
    },
    /// A trial ended, in words.
    TrialEnded {
        /// The trial and how it ended.
        text: String,
    },
    /// A message for people.
    Notice(String),
}

/// A function that gets the events of a worker.
pub type OnWorkerEvent = Arc<dyn Fn(WorkerEvent) + Send + Sync>;
