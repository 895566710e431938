//! One trial on a worker, from its message to its result in the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::kv;
use async_nats::jetstream::message::AckKind;
use practicum_agents::agents::AgentRegistry;
use practicum_core::model::{AgentEnding, TrialRecord};
use practicum_engine::pipeline::TrialOutput;
use practicum_engine::store::{MarkKind, RecordKey};
use tokio::sync::OnceCell;

use crate::WorkersError;
use crate::budget::{Amount, Reservation, change_account};
use crate::messages::{
    MOST_DELIVERIES, Marked, RunPermission, TrialDone, TrialEnd, TrialTask, WorkerNews, news_subject,
    run_bucket,
};
use crate::open_run::OpenRun;
use crate::pauses::{PauseBoard, account_of};
use crate::server::{NatsServer, with_retries};
use crate::shared_trial::pack_result;
use crate::worker_options::{OnWorkerEvent, WorkerEvent, WorkerOptions};

/// How long a worker tries to store a result at a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long an account pauses if its rate limit says not when it resets.
const USUAL_PAUSE: Duration = Duration::from_secs(20);
/// How long a message waits that this worker could not use, so that another can.
const REFUSED_DELAY: Duration = Duration::from_secs(5);

/// A run that is opened once, by the first of its trials; `None` inside if it is refused.
type RunBeingOpened = Arc<OnceCell<Option<Arc<OpenRun>>>>;

/// Runs the trials that a worker takes.
pub struct TaskRunner {
    server: NatsServer,
    options: WorkerOptions,
    key: RecordKey,
    pauses: PauseBoard,
    runs: Mutex<HashMap<String, RunBeingOpened>>,
    /// Whether running trials are ended and given back, because the worker ends.
    gives_back: AtomicBool,
    on_event: OnWorkerEvent,
}

/// What a worker does with a message after it dealt with it.
enum MessageEnd {
    /// The message is done with: there is a result, or nobody needs one.
    Done,
    /// Another worker should try.
    GiveBack(Duration),
    /// Nobody can use the message.
    Refused,
}

impl TaskRunner {
    pub fn new(
        server: NatsServer,
        options: WorkerOptions,
        key: RecordKey,
        pauses: PauseBoard,
        on_event: OnWorkerEvent,
    ) -> Self {
        let (runs, gives_back) = (Mutex::default(), AtomicBool::new(false));
        Self { server, options, key, pauses, runs, gives_back, on_event }
    }

    /// Ends all running trials, so that others get them.
    pub fn give_back(&self) {
        self.gives_back.store(true, Ordering::SeqCst);
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for run in runs.values().filter_map(|run| run.get().cloned().flatten()) {
            run.runner.stop().stop_now();
        }
    }

    /// Runs the trial of a message and acknowledges the message when the result is stored.
    pub async fn run_message(&self, message: Message) {
        let message = Arc::new(message);
        let marked = serde_json::from_slice::<Marked<TrialTask>>(&message.payload).ok();
        let task = marked.and_then(|marked| marked.verified(&self.key, MarkKind::WorkerTask));
        let end = match task {
            None => {
                self.tell("a trial without a valid mark of this project's key was refused".to_owned());
                MessageEnd::Refused
            }
            Some(task) => {
                let beats = tokio::spawn(send_heartbeats(Arc::clone(&message), task.lease_ms));
                let end = self.run_task(&task, &message).await;
                beats.abort();
                match end {
                    Ok(end) => end,
                    Err(error) => {
                        self.tell(format!("{}: {error}", task.trial.as_str()));
                        self.give_back_or_up(&task, &message, &error).await
                    }
                }
            }
        };
        let kind = match end {
            MessageEnd::Done => AckKind::Ack,
            MessageEnd::GiveBack(delay) => AckKind::Nak(Some(delay)),
            MessageEnd::Refused => AckKind::Term,
        };
        // If this does not arrive, the message is delivered again, and the next worker finds the result.
        let _ = message.double_ack_with(kind).await;
    }

    async fn run_task(&self, task: &TrialTask, message: &Message) -> Result<MessageEnd, WorkersError> {
        let done_key = task.done_key();
        let mut opened = self.open_run(task).await?;
        if opened.as_ref().is_some_and(|run| run.permission() != RunPermission::Running) {
            // The run may have been continued since, and this worker may hear of that only after it got the trial.
            self.forget(&task.run);
            opened = self.open_run(task).await?;
        }
        let Some(run) = opened.filter(|run| run.permission() == RunPermission::Running) else {
            return Ok(MessageEnd::Done);
        };
        // Also a message that is delivered for the first time may have been sent twice.
        if self.stored_result(&run.bucket, &done_key).await?.is_some() {
            return Ok(MessageEnd::Done);
        }
        if deliveries(message) > MOST_DELIVERIES {
            let why = format!("{MOST_DELIVERIES} workers took it, and none of them finished it");
            self.store_done(&run, task, String::new(), TrialEnd::Lost { why }).await?;
            return Ok(MessageEnd::Done);
        }
        if let Some(end) = self.reserve_budget(&run, &done_key).await? {
            return Ok(end);
        }
        let began = WorkerNews::Began { done_key: done_key.clone(), worker: self.options.name.clone() };
        send_news(&self.server, &self.key, &task.run, began).await;
        let Some(output) = run.runner.run(&task.trial, task.is_probe).await else {
            self.tell(format!("{} is not in the plan of its run", task.trial.as_str()));
            return Ok(MessageEnd::GiveBack(REFUSED_DELAY));
        };
        self.settle_budget(&run, &done_key, Amount::of_record(&output.record)).await?;
        if output.record.ended == AgentEnding::Cancelled {
            let gives_back = self.gives_back.load(Ordering::SeqCst);
            return Ok(if gives_back { MessageEnd::GiveBack(Duration::ZERO) } else { MessageEnd::Done });
        }
        self.announce_limit(task, &output.record).await;
        self.store_result(&run, task, output).await
    }

    /// Lets another worker try a trial that could not be run here. When enough have tried, the trial is lost.
    async fn give_back_or_up(&self, task: &TrialTask, message: &Message, error: &WorkersError) -> MessageEnd {
        if deliveries(message) < MOST_DELIVERIES {
            return MessageEnd::GiveBack(REFUSED_DELAY);
        }
        let end = TrialEnd::Lost { why: format!("no worker could run it: {error}") };
        let given_up = async {
            let Some(bucket) = self.server.run_bucket(&task.run).await? else { return Ok(()) };
            let record = self.done_record(task, String::new(), end)?;
            self.write_done(&bucket, &task.done_key(), &record).await.map(drop)
        };
        let given_up: Result<(), WorkersError> = given_up.await;
        given_up.map_or(MessageEnd::GiveBack(REFUSED_DELAY), |()| MessageEnd::Done)
    }

    /// Gives the run of a trial, which is fetched and planned once. `None` if the run is over.
    async fn open_run(&self, task: &TrialTask) -> Result<Option<Arc<OpenRun>>, WorkersError> {
        // A run that is continued with other options has another bundle.
        let name = format!("{}/{}", task.run, task.bundle);
        let cell = {
            let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(runs.entry(name).or_default())
        };
        let opened = cell
            .get_or_try_init(|| async {
                let environment = self.options.environment.clone();
                let sandbox = self.options.weakest_sandbox;
                let run = OpenRun::open(&self.server, &task.run, &task.bundle, environment, sandbox).await?;
                Ok::<_, WorkersError>(run.map(Arc::new))
            })
            .await?;
        if opened.is_none() {
            self.forget(&task.run);
        }
        Ok(opened.clone())
    }

    /// Forgets the runs that are over or were cancelled.
    pub fn forget_ended_runs(&self) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, run| match run.get() {
            Some(Some(run)) => run.permission() != RunPermission::Cancelled,
            Some(None) => false,
            None => true,
        });
    }

    /// Forgets a run that is over. Its files are removed when its last trial has ended here.
    fn forget(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|name, _| !name.starts_with(&format!("{run}/")));
    }

    /// Reserves a part of the budget. Gives what becomes of the message if the trial cannot start.
    async fn reserve_budget(
        &self,
        run: &OpenRun,
        done_key: &str,
    ) -> Result<Option<MessageEnd>, WorkersError> {
        loop {
            let reserved =
                self.insist(run, || change_account(&run.bucket, |account| account.reserve(done_key)));
            match reserved.await? {
                Some(None | Some(Reservation::Granted)) => return Ok(None),
                // The coordinator sees that everything is spent as well, and takes the trials back.
                None | Some(Some(Reservation::Wait | Reservation::UsedUp)) => {}
            }
            if run.permission() != RunPermission::Running {
                return Ok(Some(MessageEnd::Done));
            }
            if self.gives_back.load(Ordering::SeqCst) {
                return Ok(Some(MessageEnd::GiveBack(Duration::ZERO)));
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }

    async fn settle_budget(&self, run: &OpenRun, done_key: &str, amount: Amount) -> Result<(), WorkersError> {
        let settled =
            self.insist(run, || change_account(&run.bucket, |account| account.settle(done_key, amount)));
        settled.await.map(drop)
    }

    /// Lets all workers with the same login pause if the trial reached a rate limit.
    async fn announce_limit(&self, task: &TrialTask, record: &TrialRecord) {
        if record.ended != AgentEnding::RateLimited {
            return;
        }
        // A limit that has reset already cannot have ended the trial just now, so a clock must be wrong.
        let now = u64::try_from(self.pauses.now()).unwrap_or_default();
        let left = record.limit_resets_at.and_then(|at| at.checked_sub(now)).filter(|left| *left > 0);
        let pause = left.map_or(USUAL_PAUSE, Duration::from_secs);
        let registry = AgentRegistry::default();
        let agent = registry.agents().iter().find(|agent| agent.name == task.agent);
        let account = agent.map_or_else(
            || task.agent.clone(),
            |agent| account_of(agent, &self.options.environment, &self.key),
        );
        if let Err(error) = self.pauses.announce(&account, pause).await {
            self.tell(error.to_string());
        }
    }

    /// Uploads the result and writes the record of it. If another worker was faster, the upload is removed.
    async fn store_result(
        &self,
        run: &OpenRun,
        task: &TrialTask,
        output: TrialOutput,
    ) -> Result<MessageEnd, WorkersError> {
        let text = format!("{}: {}", task.trial.as_str(), output.record.verdict.name());
        let packed = tokio::task::spawn_blocking(move || pack_result(output)).await;
        let packed = packed.map_err(|error| WorkersError::Bundle(error.to_string()))?;
        let packed = packed.map_err(|error| WorkersError::Bundle(error.to_string()))?;
        let object = format!("{}.{}", task.done_key(), uuid::Uuid::new_v4().simple());
        let stored = self.insist(run, || async {
            let file = packed.file.reopen().map_err(WorkersError::request("store a result"))?;
            let stored = run.objects.put(object.as_str(), &mut tokio::fs::File::from_std(file)).await;
            stored.map_err(WorkersError::request("store a result"))
        });
        if stored.await?.is_none() {
            return Ok(MessageEnd::Done);
        }
        let end = TrialEnd::Finished { digest: packed.digest.clone() };
        let is_first = self.store_done(run, task, object.clone(), end).await?;
        if !is_first {
            let _ = run.objects.delete(&object).await;
        }
        (self.on_event)(WorkerEvent::TrialEnded { text });
        Ok(MessageEnd::Done)
    }

    /// Writes the record of a result, if there is none yet. Says whether this one counts.
    async fn store_done(
        &self,
        run: &OpenRun,
        task: &TrialTask,
        object: String,
        end: TrialEnd,
    ) -> Result<bool, WorkersError> {
        let (done_key, record) = (task.done_key(), self.done_record(task, object, end)?);
        let stored = self.insist(run, || self.write_done(&run.bucket, &done_key, &record));
        Ok(stored.await?.unwrap_or(false))
    }

    fn done_record(&self, task: &TrialTask, object: String, end: TrialEnd) -> Result<Vec<u8>, WorkersError> {
        let (done_key, worker) = (task.done_key(), self.options.name.clone());
        let done = TrialDone { run: task.run.clone(), done_key, worker, object, end };
        let marked = Marked::new(done, &self.key, MarkKind::WorkerResult);
        serde_json::to_vec(&marked).map_err(WorkersError::request("store a result"))
    }

    /// Writes a record, if there is none yet. Says whether this one counts.
    async fn write_done(
        &self,
        bucket: &kv::Store,
        done_key: &str,
        record: &[u8],
    ) -> Result<bool, WorkersError> {
        match bucket.create(done_key, record.to_vec().into()).await {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == kv::CreateErrorKind::AlreadyExists => {}
            Err(error) => return Err(WorkersError::request("store a result")(error)),
        }
        if let Some(stored) = self.stored_result(bucket, done_key).await? {
            // It may be this very record, if the answer to an earlier try was lost.
            return Ok(stored == record);
        }
        // What is there was not written with the key of this project, so it is replaced.
        let there = bucket.entry(done_key).await.map_err(WorkersError::request("read a result"))?;
        let revision = there.map_or(0, |entry| entry.revision);
        let replaced = bucket.update(done_key, record.to_vec().into(), revision).await;
        replaced.map(|_| true).map_err(WorkersError::request("store a result"))
    }

    /// Gives the stored record of a trial's result, if there is one with a valid mark.
    async fn stored_result(
        &self,
        bucket: &kv::Store,
        done_key: &str,
    ) -> Result<Option<Vec<u8>>, WorkersError> {
        let stored = bucket.get(done_key).await.map_err(WorkersError::request("read a result"))?;
        let is_valid = |bytes: &[u8]| {
            let marked = serde_json::from_slice::<Marked<TrialDone>>(bytes).ok();
            let done = marked.and_then(|marked| marked.verified(&self.key, MarkKind::WorkerResult));
            done.is_some_and(|done| done.done_key == done_key && run_bucket(&done.run) == bucket.name)
        };
        Ok(stored.map(|bytes| bytes.to_vec()).filter(|bytes| is_valid(bytes)))
    }

    /// Repeats a request for a run until it succeeds. `None` if the run ends meanwhile, and then nobody needs the answer.
    async fn insist<T, F: Future<Output = Result<T, WorkersError>>>(
        &self,
        run: &OpenRun,
        mut request: impl FnMut() -> F,
    ) -> Result<Option<T>, WorkersError> {
        let tell = |error: &WorkersError| {
            self.tell(error.to_string());
            let trouble = WorkerNews::Trouble { worker: self.options.name.clone(), why: error.to_string() };
            let (server, key, id) = (self.server.clone(), self.key.clone(), run.id.clone());
            tokio::spawn(async move { send_news(&server, &key, &id, trouble).await });
        };
        let repeated = with_retries(PATIENCE, tell, || {
            let asked = request();
            async move {
                match asked.await {
                    Err(_) if run.permission() == RunPermission::Cancelled => Ok(None),
                    answer => answer.map(Some),
                }
            }
        });
        repeated.await
    }

    fn tell(&self, text: String) {
        (self.on_event)(WorkerEvent::Notice(text));
    }
}

/// Tells the coordinator something for people. It does no harm if that gets lost.
async fn send_news(server: &NatsServer, key: &RecordKey, run: &str, news: WorkerNews) {
    if let Ok(bytes) = serde_json::to_vec(&Marked::new(news, key, MarkKind::WorkerNews)) {
        let _ = server.client.publish(news_subject(run), bytes.into()).await;
    }
}

/// Counts how often a message was given to a worker.
fn deliveries(message: &Message) -> i64 {
    message.info().map_or(1, |info| info.delivered)
}

/// Tells the server that the trial is still running, so that no other worker gets it.
async fn send_heartbeats(message: Arc<Message>, lease_ms: u64) {
    let pause = Duration::from_millis((lease_ms / 3).max(100));
    loop {
        tokio::time::sleep(pause).await;
        let _ = message.ack_with(AckKind::Progress).await;
    }
}
