//! A shared run on a worker: its files, its plan, and whether it still goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv;
use async_nats::jetstream::object_store::ObjectStore;
use futures_util::StreamExt;
use practicum_core::model::SandboxMode;
use practicum_engine::pipeline::{StopSignal, TrialRunner};
use tokio::sync::watch;

use crate::WorkersError;
use crate::bundle::unpack_bundle;
use crate::messages::{RunPermission, RunState, STATE_KEY, run_bucket};
use crate::objects::fetch_object;
use crate::server::NatsServer;

/// A shared run on a worker. Dropping it removes its files and workspaces.
pub struct OpenRun {
    /// The id of the run.
    pub id: String,
    /// The plan of the run, of which single trials can be run.
    pub runner: TrialRunner,
    /// The bucket with the state, the budget and the results.
    pub bucket: kv::Store,
    /// The store of the archives of results.
    pub objects: ObjectStore,
    permission: watch::Receiver<RunPermission>,
    watcher: tokio::task::JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl OpenRun {
    /// Fetches the files of a run and plans it. `None` if the run is over or stopped.
    pub async fn open(
        server: &NatsServer,
        run: &str,
        bundle: &str,
        environment: BTreeMap<String, String>,
        weakest_sandbox: SandboxMode,
    ) -> Result<Option<Self>, WorkersError> {
        let Some(bucket) = server.run_bucket(run).await? else { return Ok(None) };
        let state = bucket.get(STATE_KEY).await.map_err(WorkersError::request("read the state of a run"))?;
        let state = state.and_then(|bytes| serde_json::from_slice::<RunState>(&bytes).ok());
        // A run that was stopped needs no plan.
        let Some(RunState { phase: RunPermission::Running, .. }) = state else { return Ok(None) };
        let objects = server.object_store(&run_bucket(run)).await?;
        let file = fetch_object(server, &server.bundles().await?, bundle, bundle).await?;
        let folder = tempfile::Builder::new().prefix("practicum-worker-").tempdir().map_err(told)?;
        // On some systems the temporary folder is behind a link, and the plan has real paths.
        let place = folder.path().canonicalize().map_err(told)?;
        // Planning reads many files, so it has a thread of its own.
        let planned = tokio::task::spawn_blocking(move || {
            let description = unpack_bundle(file, &place)?;
            let runner = description.prepare_trials(environment, weakest_sandbox);
            let runner = tokio::runtime::Handle::current().block_on(runner);
            runner.map_err(|error| WorkersError::Bundle(error.to_string()))
        });
        let runner = planned.await.map_err(|error| WorkersError::Bundle(error.to_string()))??;
        let (sender, permission) = watch::channel(RunPermission::Running);
        let watcher = StateWatcher {
            server: server.clone(),
            run: run.to_owned(),
            bucket: bucket.clone(),
            stop: runner.stop().clone(),
            permission: Arc::new(sender),
        };
        let watcher = tokio::spawn(watcher.watch());
        Ok(Some(Self { id: run.to_owned(), runner, bucket, objects, permission, watcher, _folder: folder }))
    }

    /// Gives what workers may do for the run now.
    pub fn permission(&self) -> RunPermission {
        *self.permission.borrow()
    }
}

/// Watches the state of a run, and ends its trials when it is cancelled or removed.
struct StateWatcher {
    server: NatsServer,
    run: String,
    bucket: kv::Store,
    stop: StopSignal,
    permission: Arc<watch::Sender<RunPermission>>,
}

impl StateWatcher {
    async fn watch(self) {
        let mut connections = self.server.connections.clone();
        loop {
            connections.borrow_and_update();
            if let Ok(mut entries) = self.bucket.watch_with_history(STATE_KEY).await {
                loop {
                    tokio::select! {
                        entry = entries.next() => match entry {
                            Some(Ok(entry)) => self.note(&entry.value),
                            Some(Err(_)) | None => break,
                        },
                        changed = connections.changed() => match changed {
                            Ok(()) => break,
                            Err(_) => return,
                        },
                        () = tokio::time::sleep(Duration::from_secs(20)) => break,
                    }
                }
            }
            // A watch ends also when the bucket was removed, because the run is over.
            if let Ok(None) = self.server.run_bucket(&self.run).await {
                self.permit(RunPermission::Cancelled);
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn note(&self, value: &[u8]) {
        if let Ok(state) = serde_json::from_slice::<RunState>(value) {
            self.permit(state.phase);
        }
    }

    /// Notes what workers may do. A run that was cancelled stays so, because its agents are ended: whoever continues it
    /// opens it anew.
    fn permit(&self, permission: RunPermission) {
        if *self.permission.borrow() == RunPermission::Cancelled {
            return;
        }
        self.permission.send_replace(permission);
        if permission == RunPermission::Cancelled {
            self.stop.stop_now();
        }
    }
}

fn told(error: std::io::Error) -> WorkersError {
    WorkersError::Bundle(error.to_string())
}
