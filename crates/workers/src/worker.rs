//! A worker: takes trials from the server, as many as it has free slots for, and runs them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::stream::Stream;
use futures_util::{StreamExt, TryStreamExt};
use practicum_agents::agents::AgentRegistry;
use practicum_engine::store::RecordKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::WorkersError;
use crate::messages::{AGENT_METADATA, LABELS_METADATA, LabelSet, queue_of};
use crate::pauses::{PauseBoard, account_of};
use crate::server::{NatsAccess, NatsServer};
use crate::task::TaskRunner;
use crate::worker_options::{OnWorkerEvent, WorkerEvent, WorkerOptions};

/// How long one request for trials waits at the server.
const LONGEST_PULL: Duration = Duration::from_secs(2);
/// How often the worker looks for new kinds of trials.
const LOOK_FOR_CONSUMERS: Duration = Duration::from_secs(2);

/// How a worker is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStop {
    /// The worker goes on.
    No,
    /// The worker takes no more trials, and ends after those that run.
    AfterRunning,
    /// The worker ends now, and gives its trials back.
    Now,
}

/// A worker that is connected to a server.
pub struct Worker {
    options: WorkerOptions,
    key: RecordKey,
    trials: Stream,
    pauses: PauseBoard,
    runner: Arc<TaskRunner>,
    /// The agents whose trials are run, each with the name of its account.
    accounts: BTreeMap<String, String>,
    on_event: OnWorkerEvent,
}

impl Worker {
    /// Connects a worker. Only trials that were signed with the key are run.
    pub async fn connect(
        access: &NatsAccess,
        options: WorkerOptions,
        key: RecordKey,
        on_event: OnWorkerEvent,
    ) -> Result<Self, WorkersError> {
        let server: NatsServer = access.connect(&format!("practicum worker {}", options.name)).await?;
        let trials = server.trials().await?;
        let pauses = PauseBoard::open(&server).await?;
        let accounts = accounts(&options, &key);
        if accounts.is_empty() {
            let why = "no agent is installed here, so this worker could run nothing; practicum doctor shows which are";
            return Err(WorkersError::Server(why.to_owned()));
        }
        let runner =
            TaskRunner::new(server, options.clone(), key.clone(), pauses.clone(), Arc::clone(&on_event));
        Ok(Self { options, key, trials, pauses, runner: Arc::new(runner), accounts, on_event })
    }

    /// Takes and runs trials until the worker is asked to end, or had nothing to do for too long.
    pub async fn run(&self, mut stop: watch::Receiver<WorkerStop>) {
        (self.on_event)(WorkerEvent::Ready { agents: self.accounts.keys().cloned().collect() });
        let slots = Arc::new(Semaphore::new(self.options.jobs.max(1)));
        let mut running = JoinSet::new();
        let mut consumers = Vec::new();
        let mut looked = None;
        let mut last_work = Instant::now();
        let mut turn = 0_usize;
        while *stop.borrow_and_update() == WorkerStop::No {
            while running.try_join_next().is_some() {
                last_work = Instant::now();
            }
            if self.options.idle_exit.is_some_and(|idle| running.is_empty() && last_work.elapsed() > idle) {
                break;
            }
            if looked.is_none_or(|at: Instant| at.elapsed() > LOOK_FOR_CONSUMERS) {
                looked = Some(Instant::now());
                self.runner.forget_ended_runs();
                match self.fitting_consumers().await {
                    Ok(found) => consumers = found,
                    Err(error) => (self.on_event)(WorkerEvent::Notice(error.to_string())),
                }
            }
            let ready: Vec<&(LabelSet, Consumer<pull::Config>)> =
                consumers.iter().filter(|(set, _)| !self.must_pause(&set.agent)).collect();
            turn = turn.wrapping_add(1);
            let Some((_, consumer)) = ready.get(turn % ready.len().max(1)).copied() else {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(300)) => {}
                    _ = stop.changed() => {}
                }
                continue;
            };
            let permit = tokio::select! {
                permit = Arc::clone(&slots).acquire_owned() => permit,
                _ = stop.changed() => continue,
            };
            let Ok(permit) = permit else { break };
            let mut permits = vec![permit];
            permits.extend(std::iter::from_fn(|| Arc::clone(&slots).try_acquire_owned().ok()));
            // A long wait for one kind of trials would keep the others waiting.
            let wait = if ready.len() == 1 { LONGEST_PULL } else { Duration::from_millis(100) };
            tokio::select! {
                taken = self.take_trials(consumer, permits, wait, &mut running) => match taken {
                    Ok(0) => {}
                    Ok(_) => last_work = Instant::now(),
                    Err(error) => {
                        (self.on_event)(WorkerEvent::Notice(error.to_string()));
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                },
                _ = stop.changed() => {}
            }
        }
        while !running.is_empty() {
            tokio::select! {
                _ = running.join_next() => {}
                () = until_now(&mut stop) => {
                    self.runner.give_back();
                    // Agents get a moment to end; the trials are then delivered to others.
                    let _ = tokio::time::timeout(Duration::from_secs(10), running.join_next()).await;
                }
            }
        }
    }

    /// Asks the server for as many trials as there are permits, and starts each.
    async fn take_trials(
        &self,
        consumer: &Consumer<pull::Config>,
        mut permits: Vec<OwnedSemaphorePermit>,
        wait: Duration,
        running: &mut JoinSet<()>,
    ) -> Result<usize, WorkersError> {
        const DELIVER: &str = "deliver trials";
        let batch = consumer.batch().max_messages(permits.len()).expires(wait).messages().await;
        let mut batch = batch.map_err(WorkersError::request(DELIVER))?;
        let mut taken = 0;
        // When a slot becomes free while others wait for trials, those that wait are asked for anew, with one more.
        while let Some(message) = batch.next().await {
            let message: Message = message.map_err(WorkersError::request(DELIVER))?;
            let Some(permit) = permits.pop() else { break };
            let runner = Arc::clone(&self.runner);
            running.spawn(async move {
                runner.run_message(message).await;
                drop(permit);
            });
            taken += 1;
        }
        Ok(taken)
    }

    fn must_pause(&self, agent: &str) -> bool {
        self.accounts.get(agent).is_some_and(|account| self.pauses.is_paused(account))
    }

    /// Finds the consumers of trials that this worker can run.
    async fn fitting_consumers(&self) -> Result<Vec<(LabelSet, Consumer<pull::Config>)>, WorkersError> {
        const LIST: &str = "list the kinds of trials";
        let infos = self.trials.consumers().try_collect::<Vec<_>>().await;
        let infos = infos.map_err(WorkersError::request(LIST))?;
        let own = own_labels(&self.options.labels);
        let queue = format!("{}-", queue_of(&self.key));
        let mut found = Vec::new();
        for info in infos.into_iter().filter(|info| info.name.starts_with(&queue)) {
            let named = |name: &str| info.config.metadata.get(name).cloned().unwrap_or_default();
            let labels = named(LABELS_METADATA);
            let labels = labels.split(',').filter(|label| !label.is_empty()).map(str::to_owned).collect();
            let set = LabelSet { agent: named(AGENT_METADATA), labels };
            // The metadata could be anything; the name says what it was made for.
            if !set.labels.is_subset(&own)
                || !self.accounts.contains_key(&set.agent)
                || set.consumer(&self.key) != info.name
            {
                continue;
            }
            let consumer = self.trials.get_consumer(&info.name).await;
            found.push((set, consumer.map_err(WorkersError::request(LIST))?));
        }
        Ok(found)
    }
}

async fn until_now(stop: &mut watch::Receiver<WorkerStop>) {
    let _ = stop.wait_for(|stop| *stop == WorkerStop::Now).await;
}

/// Gives the labels of a worker: its own, and those of its operating system and processor.
fn own_labels(labels: &BTreeSet<String>) -> BTreeSet<String> {
    let machine = [format!("os={}", std::env::consts::OS), format!("arch={}", std::env::consts::ARCH)];
    labels.iter().cloned().chain(machine).collect()
}

/// Gives the agents whose trials a worker runs, each with the name of its account.
fn accounts(options: &WorkerOptions, key: &RecordKey) -> BTreeMap<String, String> {
    let registry = AgentRegistry::default();
    let known: HashMap<&str, _> =
        registry.agents().iter().map(|agent| (agent.name.as_str(), agent)).collect();
    let account = |name: &str| {
        known.get(name).map_or_else(|| name.to_owned(), |agent| account_of(agent, &options.environment, key))
    };
    let installed = known.values().filter(|agent| agent.installed_path(&options.environment).is_ok());
    let names: BTreeSet<String> = match options.agents.is_empty() {
        true => installed.map(|agent| agent.name.clone()).collect(),
        // An agent of a project's settings is known only where its run is.
        false => options.agents.clone(),
    };
    names.into_iter().map(|name| (name.clone(), account(&name))).collect()
}
