//! Accounts that reached a rate limit: all workers with the same login pause until the limit resets.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_nats::jetstream::kv;
use futures_util::StreamExt;
use practicum_agents::agents::{AgentCli, AgentLogin};
use practicum_core::tree::read_regular;
use practicum_engine::store::{MarkKind, RecordKey};
use serde::{Deserialize, Serialize};

use crate::WorkersError;
use crate::server::NatsServer;

/// The time within which the server has sent the pauses that it knew before.
const REPLAY: Duration = Duration::from_secs(3);
/// The longest pause that is believed.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);

/// A pause of an account. It begins when the server stores it, so that clocks need not agree.
#[derive(Debug, Serialize, Deserialize)]
struct AccountPause {
    seconds: u64,
}

/// The pauses of all accounts, as the server knows them.
#[derive(Clone)]
pub struct PauseBoard {
    bucket: kv::Store,
    until: Arc<Mutex<HashMap<String, Instant>>>,
    /// What the clock of the server said at a moment, in seconds since 1970.
    clock: Arc<Mutex<Option<(i64, Instant)>>>,
}

impl PauseBoard {
    /// Opens the board, and keeps it up to date in the background.
    pub async fn open(server: &NatsServer) -> Result<Self, WorkersError> {
        let board = Self { bucket: server.pauses().await?, until: Arc::default(), clock: Arc::default() };
        board.read_clock().await;
        let (watched, mut connections) = (board.clone(), server.connections.clone());
        tokio::spawn(async move {
            loop {
                connections.borrow_and_update();
                if let Ok(mut entries) = watched.bucket.watch_with_history(">").await {
                    let opened = Instant::now();
                    loop {
                        tokio::select! {
                            entry = entries.next() => match entry {
                                Some(Ok(entry)) => watched.note(&entry, opened.elapsed() < REPLAY),
                                Some(Err(_)) | None => break,
                            },
                            changed = connections.changed() => match changed {
                                Ok(()) => break,
                                Err(_) => return,
                            },
                        }
                    }
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        });
        Ok(board)
    }

    fn note(&self, entry: &kv::Entry, may_be_old: bool) {
        let Ok(pause) = serde_json::from_slice::<AccountPause>(&entry.value) else { return };
        // An old entry has lasted for some time already. One that arrives later than the old ones has just been stored.
        let age = self.now().saturating_sub(entry.created.unix_timestamp());
        let age = Duration::from_secs(u64::try_from(age).unwrap_or_default());
        let left = Duration::from_secs(pause.seconds).min(LONGEST_PAUSE);
        let left = if may_be_old { left.saturating_sub(age) } else { left };
        self.pause(&entry.key, left);
    }

    fn pause(&self, account: &str, left: Duration) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.insert(account.to_owned(), Instant::now() + left);
    }

    /// Asks the server what time it is, by storing something there. The clocks of machines differ.
    async fn read_clock(&self) {
        const CLOCK: &str = "clock";
        if self.bucket.put(CLOCK, "".into()).await.is_err() {
            return;
        }
        if let Ok(Some(entry)) = self.bucket.entry(CLOCK).await {
            let read = (entry.created.unix_timestamp(), Instant::now());
            *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(read);
        }
    }

    /// Gives the time of the server in seconds since 1970; that of this machine if the server did not say it.
    pub fn now(&self) -> i64 {
        let clock = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let (begin, passed) = match clock {
            Some((at_server, read)) => (at_server, read.elapsed()),
            None => (0, SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        };
        begin.saturating_add(i64::try_from(passed.as_secs()).unwrap_or_default())
    }

    /// Says whether an account must pause now.
    pub fn is_paused(&self, account: &str) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(account).is_some_and(|until| Instant::now() < *until)
    }

    /// Lets all workers with an account pause.
    pub async fn announce(&self, account: &str, pause: Duration) -> Result<(), WorkersError> {
        let pause = AccountPause { seconds: pause.as_secs().max(1) };
        // This worker itself must not wait for the server to hear of it.
        self.pause(account, Duration::from_secs(pause.seconds).min(LONGEST_PAUSE));
        let bytes = serde_json::to_vec(&pause).map_err(WorkersError::request("announce a rate limit"))?;
        let stored = self.bucket.put(account, bytes.into()).await;
        stored.map(drop).map_err(WorkersError::request("announce a rate limit"))
    }
}

/// Gives the name of the account that an agent uses here: a mark of its login, from which the login cannot be found.
pub fn account_of(agent: &AgentCli, environment: &BTreeMap<String, String>, key: &RecordKey) -> String {
    let login = match agent.credentials.find_login(environment) {
        Some(AgentLogin::Variable(name)) => environment.get(&name).map(|value| value.clone().into_bytes()),
        Some(AgentLogin::File(path)) => read_regular(path).ok(),
        None => None,
    };
    let parts = [agent.name.as_bytes(), login.as_deref().unwrap_or_default()];
    key.mark(MarkKind::Account, parts)
}
