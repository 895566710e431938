//! The coordinator of a shared run: publishes its trials, and fetches their results.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::kv;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt;
use practicum_engine::pipeline::{BoxedFuture, ExecutorEvent, TrialExecutor, TrialOutcome, TrialRequest};
use practicum_engine::session::{SharedRun, WorkerPool};
use practicum_engine::store::{MarkKind, RecordKey};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::WorkersError;
use crate::budget::{BudgetAccount, change_account};
use crate::bundle::pack_bundle;
use crate::messages::{
    BUDGET_KEY, LabelSet, MOST_DELIVERIES, Marked, RunPermission, RunState, STATE_KEY, TRIALS_SUBJECT,
    TrialDone, TrialEnd, TrialTask, WorkerNews, news_subject, run_bucket,
};
use crate::objects::{fetch_object, store_bundle};
use crate::server::{NatsAccess, NatsServer, with_retries};
use crate::shared_trial::unpack_result;

/// How many trials wait or run at once. More than the slots of all workers together, so that none has to wait.
const TRIALS_AT_ONCE: usize = 1000;
/// How many results are fetched at once.
const DOWNLOADS_AT_ONCE: usize = 8;
/// How long the coordinator waits for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// After this time the user is told that no worker has begun a trial.
const NO_WORKER_NOTICE: Duration = Duration::from_secs(15);

/// Workers that are reached through a NATS server.
pub struct NatsWorkers {
    access: NatsAccess,
    labels: BTreeSet<String>,
    lease: Duration,
}

impl NatsWorkers {
    /// Names the server, the labels that a worker must have, and the time for which a worker may be silent before its
    /// trial is given to another.
    pub fn new(access: NatsAccess, labels: BTreeSet<String>, lease: Duration) -> Self {
        Self { access, labels, lease }
    }
}

impl WorkerPool for NatsWorkers {
    fn open(&self, run: SharedRun) -> BoxedFuture<'_, Result<Arc<dyn TrialExecutor>, String>> {
        Box::pin(async move {
            let coordinator = Coordinator::open(self, run).await.map_err(|error| error.to_string())?;
            Ok(Arc::new(coordinator) as Arc<dyn TrialExecutor>)
        })
    }
}

struct Coordinator {
    shared: Arc<CoordinatorState>,
    server: NatsServer,
    trials: Stream,
    results: ObjectStore,
    bundle: String,
    labels: BTreeSet<String>,
    lease: Duration,
    /// Whether an earlier process published trials of this run.
    is_resumed: bool,
    downloads: Semaphore,
    events: tokio::sync::Mutex<mpsc::UnboundedReceiver<ExecutorEvent>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// What the tasks of a coordinator share.
struct CoordinatorState {
    run: String,
    key: RecordKey,
    bucket: kv::Store,
    state: Mutex<RunState>,
    /// The trials without a result, by the key of their result.
    pending: Mutex<HashMap<String, PendingTrial>>,
    events: mpsc::UnboundedSender<ExecutorEvent>,
    any_began: AtomicBool,
}

struct PendingTrial {
    index: usize,
    is_probe: bool,
    began: bool,
    /// Only a record with a greater revision counts: an earlier one could not be used.
    after: u64,
    answer: oneshot::Sender<TrialAnswer>,
}

enum TrialAnswer {
    /// There is a result, whose record has this revision.
    Done(TrialDone, u64),
    NotBegun,
    Cancelled,
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Coordinator {
    async fn open(workers: &NatsWorkers, run: SharedRun) -> Result<Self, WorkersError> {
        let server = workers.access.connect(&format!("practicum run {}", run.id)).await?;
        let trials = server.trials().await?;
        for agent in &run.agents {
            let set = LabelSet { agent: agent.clone(), labels: workers.labels.clone() };
            server.make_consumer(&trials, &set, &run.key, workers.lease).await?;
        }
        let (bucket, is_resumed) = server.make_bucket(&run_bucket(&run.id)).await?;
        let results = server.object_store(&run_bucket(&run.id)).await?;
        let state = open_state(&bucket).await?;
        if let Some(account) = BudgetAccount::open(run.budget) {
            put_json(&bucket, BUDGET_KEY, &account).await?;
        }
        let SharedRun { id, key, .. } = &run;
        let (id, key) = (id.clone(), key.clone());
        let packed = tokio::task::spawn_blocking(move || pack_bundle(&run));
        let packed = packed.await.map_err(|error| WorkersError::Bundle(error.to_string()))??;
        store_bundle(&server.bundles().await?, &packed).await?;
        let (events, received) = mpsc::unbounded_channel();
        let shared = Arc::new(CoordinatorState {
            run: id,
            key,
            bucket,
            state: Mutex::new(state),
            pending: Mutex::default(),
            events,
            any_began: AtomicBool::new(false),
        });
        let news = server.client.subscribe(news_subject(&shared.run)).await;
        let news = news.map_err(WorkersError::request("listen to workers"))?;
        let tasks = vec![
            tokio::spawn(watch_results(server.clone(), Arc::clone(&shared))),
            tokio::spawn(watch_news(news, Arc::clone(&shared))),
        ];
        Ok(Self {
            shared,
            server,
            trials,
            results,
            bundle: packed.digest,
            labels: workers.labels.clone(),
            lease: workers.lease,
            is_resumed,
            downloads: Semaphore::new(DOWNLOADS_AT_ONCE),
            events: tokio::sync::Mutex::new(received),
            tasks,
        })
    }

    async fn run_trial(&self, request: TrialRequest) -> Result<TrialOutcome, WorkersError> {
        let shared = &self.shared;
        let task = TrialTask {
            run: shared.run.clone(),
            bundle: self.bundle.clone(),
            trial: request.trial,
            index: request.index,
            is_probe: request.is_probe,
            agent: request.agent,
            key: request.key,
            attempt: request.attempt,
            lease_ms: u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX),
        };
        let done_key = task.done_key();
        let (mut tries, mut after) = (0, 0);
        loop {
            let (done, revision) = match self.ask(&task, after).await? {
                TrialAnswer::NotBegun => return Ok(TrialOutcome::NotBegun),
                TrialAnswer::Cancelled => return Ok(TrialOutcome::Cancelled),
                TrialAnswer::Done(done, revision) => (done, revision),
            };
            let why = match &done.end {
                TrialEnd::Lost { why } => {
                    self.forget_result(&done_key).await?;
                    return Ok(TrialOutcome::Lost(why.clone()));
                }
                TrialEnd::Finished { digest } => {
                    match self.fetch(&done.object, digest, &request.folder).await {
                        Err(WorkersError::Damaged(why)) => why,
                        fetched => return fetched,
                    }
                }
            };
            let why = format!("the result of {} cannot be used: it {why}", done.worker);
            self.forget_result(&done_key).await?;
            tries += 1;
            if tries == MOST_DELIVERIES {
                return Ok(TrialOutcome::Lost(why));
            }
            shared.tell(format!("{}: {why}; the trial is run again", task.trial.as_str()));
            after = revision;
        }
    }

    /// Asks the workers to run a trial, and waits for the record of its result.
    async fn ask(&self, task: &TrialTask, after: u64) -> Result<TrialAnswer, WorkersError> {
        let (shared, done_key) = (&self.shared, task.done_key());
        let (answer, answered) = oneshot::channel();
        let pending =
            PendingTrial { index: task.index, is_probe: task.is_probe, began: false, after, answer };
        shared.lock_pending().insert(done_key.clone(), pending);
        if self.is_resumed
            && let Some(entry) = shared.bucket.entry(&done_key).await.ok().flatten()
        {
            // An earlier process published the trial, and its result is there already.
            shared.receive_result(&entry);
        }
        if shared.lock_pending().contains_key(&done_key) {
            self.publish(task).await?;
        }
        Ok(answered.await.unwrap_or(TrialAnswer::NotBegun))
    }

    /// Sends a trial to the workers. The server drops a message that it has got before.
    async fn publish(&self, task: &TrialTask) -> Result<(), WorkersError> {
        let shared = &self.shared;
        let state = *shared.lock_state();
        if state.phase != RunPermission::Running {
            shared.answer(&task.done_key(), TrialAnswer::NotBegun);
            return Ok(());
        }
        let set = LabelSet { agent: task.agent.clone(), labels: self.labels.clone() };
        let subject = set.subject(&shared.key, &shared.run);
        let marked = Marked::new(task.clone(), &shared.key, MarkKind::WorkerTask);
        let bytes = serde_json::to_vec(&marked).map_err(WorkersError::request("publish a trial"))?;
        let id = task.message_id(state.session);
        with_retries(
            PATIENCE,
            |error| self.tell(error),
            || async {
                let message = PublishMessage::build().payload(bytes.clone().into()).message_id(&id);
                let sent = self.server.jetstream.send_publish(subject.clone(), message).await;
                let sent = sent.map_err(WorkersError::request("publish a trial"))?;
                sent.await.map(drop).map_err(WorkersError::request("publish a trial"))
            },
        )
        .await
    }

    /// Fetches the archive of a result and unpacks it into a folder.
    async fn fetch(&self, object: &str, digest: &str, folder: &Path) -> Result<TrialOutcome, WorkersError> {
        let _permit = self.downloads.acquire().await;
        let fetched = with_retries(
            PATIENCE,
            |error| self.tell(error),
            || fetch_object(&self.server, &self.results, object, digest),
        );
        let (file, folder) = (fetched.await?, folder.to_owned());
        let unpacked = tokio::task::spawn_blocking(move || unpack_result(file, &folder));
        let unpacked = unpacked.await.map_err(|error| WorkersError::Bundle(error.to_string()))?;
        let (record, failure) = unpacked.map_err(told)?;
        Ok(TrialOutcome::Finished { record: Box::new(record), failure })
    }

    /// Forgets the result of a trial that cannot be used. The trial may be published again, so its messages get other ids.
    async fn forget_result(&self, done_key: &str) -> Result<(), WorkersError> {
        let state = {
            let mut state = self.shared.lock_state();
            state.session += 1;
            *state
        };
        let bucket = &self.shared.bucket;
        with_retries(PATIENCE, |error| self.tell(error), || put_json(bucket, STATE_KEY, &state)).await?;
        with_retries(
            PATIENCE,
            |error| self.tell(error),
            || change_account(bucket, |account| account.release(done_key)),
        )
        .await?;
        let removed = bucket.purge(done_key).await;
        removed.map_err(WorkersError::request("remove a result"))
    }

    /// Lets no trial begin any more, and takes back those that did not.
    async fn stop(&self, phase: RunPermission) -> Result<(), WorkersError> {
        let state = {
            let mut state = self.shared.lock_state();
            state.phase = phase;
            *state
        };
        // What workers must know at once is not retried for long: the user waits.
        let patience = Duration::from_secs(5);
        let stored =
            with_retries(patience, |_| (), || put_json(&self.shared.bucket, STATE_KEY, &state)).await;
        let purged = self.purge_trials().await;
        self.shared.answer_all(phase);
        stored.and(purged)
    }

    async fn purge_trials(&self) -> Result<(), WorkersError> {
        let subject = format!("{TRIALS_SUBJECT}.*.{}", self.shared.run);
        let purged = self.trials.purge().filter(subject).await;
        purged.map(drop).map_err(WorkersError::request("take back trials"))
    }

    fn tell(&self, error: &WorkersError) {
        self.shared.tell(error.to_string());
    }
}

impl TrialExecutor for Coordinator {
    fn execute(&self, request: TrialRequest) -> BoxedFuture<'_, TrialOutcome> {
        Box::pin(async move {
            let outcome = self.run_trial(request).await;
            outcome.unwrap_or_else(|error| TrialOutcome::Lost(error.to_string()))
        })
    }

    fn capacity(&self) -> usize {
        TRIALS_AT_ONCE
    }

    fn next_event(&self) -> BoxedFuture<'_, ExecutorEvent> {
        Box::pin(async move {
            match self.events.lock().await.recv().await {
                Some(event) => event,
                None => std::future::pending().await,
            }
        })
    }

    fn recall(&self) -> BoxedFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.stop(RunPermission::Recalled).await {
                self.tell(&error);
            }
        })
    }

    fn cancel(&self) -> BoxedFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.stop(RunPermission::Cancelled).await {
                self.tell(&error);
            }
        })
    }

    fn close(&self, completed: bool) -> BoxedFuture<'_, ()> {
        Box::pin(async move {
            self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
            if completed {
                // What is left behind is removed by its age.
                let _ = self.purge_trials().await;
                let bucket = run_bucket(&self.shared.run);
                let _ = self.server.jetstream.delete_key_value(&bucket).await;
                let _ = self.server.jetstream.delete_object_store(&bucket).await;
            } else if self.shared.lock_state().phase == RunPermission::Running {
                let _ = self.stop(RunPermission::Recalled).await;
            }
        })
    }
}

impl CoordinatorState {
    fn lock_state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pending(&self) -> MutexGuard<'_, HashMap<String, PendingTrial>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, text: String) {
        let _ = self.events.send(ExecutorEvent::Notice(text));
    }

    /// Answers whoever waits for a trial. A trial that was answered before is left alone.
    fn answer(&self, done_key: &str, answer: TrialAnswer) {
        if let Some(pending) = self.lock_pending().remove(done_key) {
            let _ = pending.answer.send(answer);
        }
    }

    /// Answers for the trials that get no result because the run ends. Running trials are only ended if the run is
    /// cancelled.
    fn answer_all(&self, phase: RunPermission) {
        let mut pending = self.lock_pending();
        let keys: Vec<String> = pending
            .iter()
            .filter(|(_, trial)| !trial.began || phase == RunPermission::Cancelled)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            if let Some(trial) = pending.remove(&key) {
                let answer = if trial.began { TrialAnswer::Cancelled } else { TrialAnswer::NotBegun };
                let _ = trial.answer.send(answer);
            }
        }
    }

    /// Takes a result that the bucket of the run has. Only one with the mark of this run's key counts.
    fn receive_result(&self, entry: &kv::Entry) {
        let is_expected =
            self.lock_pending().get(&entry.key).is_some_and(|trial| entry.revision > trial.after);
        if entry.operation != kv::Operation::Put || !is_expected {
            return;
        }
        let marked = serde_json::from_slice::<Marked<TrialDone>>(&entry.value).ok();
        let done = marked.and_then(|marked| marked.verified(&self.key, MarkKind::WorkerResult));
        match done.filter(|done| done.run == self.run && done.done_key == entry.key) {
            Some(done) => self.answer(&entry.key, TrialAnswer::Done(done, entry.revision)),
            // A worker replaces it by its own.
            None => self.tell("a result without a valid mark of this project's key was refused".to_owned()),
        }
    }
}

/// Watches the results of a run. Begins again after the connection was lost, because results may have been missed.
async fn watch_results(server: NatsServer, shared: Arc<CoordinatorState>) {
    let mut connections = server.connections.clone();
    loop {
        connections.borrow_and_update();
        if let Ok(mut entries) = shared.bucket.watch_with_history("done.>").await {
            loop {
                tokio::select! {
                    entry = entries.next() => match entry {
                        Some(Ok(entry)) => shared.receive_result(&entry),
                        Some(Err(_)) | None => break,
                    },
                    changed = connections.changed() => match changed {
                        Ok(()) => break,
                        Err(_) => return,
                    },
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Watches what workers do, and tells the user if none begins a trial.
async fn watch_news(mut news: async_nats::Subscriber, shared: Arc<CoordinatorState>) {
    let mut told_once = false;
    loop {
        let message = tokio::select! {
            message = news.next() => message,
            () = tokio::time::sleep(NO_WORKER_NOTICE), if !told_once => {
                if !shared.any_began.load(Ordering::Relaxed) {
                    let text = "no worker has begun a trial yet; practicum worker, with the same address and the same \
                                key, starts one";
                    shared.tell(text.to_owned());
                }
                told_once = true;
                continue;
            }
        };
        let Some(message) = message else { return };
        let marked = serde_json::from_slice::<Marked<WorkerNews>>(&message.payload).ok();
        match marked.and_then(|marked| marked.verified(&shared.key, MarkKind::WorkerNews)) {
            Some(WorkerNews::Began { done_key, worker }) => {
                shared.any_began.store(true, Ordering::Relaxed);
                let mut pending = shared.lock_pending();
                if let Some(trial) = pending.get_mut(&done_key) {
                    trial.began = true;
                    let (index, is_probe) = (trial.index, trial.is_probe);
                    let _ = shared.events.send(ExecutorEvent::Began { index, is_probe, worker });
                }
            }
            Some(WorkerNews::Trouble { worker, why }) => shared.tell(format!("{worker}: {why}")),
            None => {}
        }
    }
}

/// Reads the state of a run that is continued, or makes that of a new one. If messages of an earlier session were taken
/// back, the server must not recognise the new ones as the same.
async fn open_state(bucket: &kv::Store) -> Result<RunState, WorkersError> {
    let stored = bucket.get(STATE_KEY).await.map_err(WorkersError::request("read the state of the run"))?;
    let stored = stored.and_then(|bytes| serde_json::from_slice::<RunState>(&bytes).ok());
    let session = match stored {
        Some(RunState { phase: RunPermission::Running, session }) => session,
        Some(RunState { session, .. }) => session + 1,
        None => 1,
    };
    let state = RunState { phase: RunPermission::Running, session };
    put_json(bucket, STATE_KEY, &state).await?;
    Ok(state)
}

async fn put_json(bucket: &kv::Store, key: &str, value: &impl serde::Serialize) -> Result<(), WorkersError> {
    let bytes = serde_json::to_vec(value).map_err(WorkersError::request("store the state of the run"))?;
    let stored = bucket.put(key, bytes.into()).await;
    stored.map(drop).map_err(WorkersError::request("store the state of the run"))
}

fn told(error: std::io::Error) -> WorkersError {
    WorkersError::Bundle(error.to_string())
}
