//! Accounts that reached a rate limit: all workers with the same login pause until the limit resets.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

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
}

impl PauseBoard {
    /// Opens the board, and keeps it up to date in the background.
    pub async fn open(server: &NatsServer) -> Result<Self, WorkersError> {
        let board = Self { bucket: server.pauses().await?, until: Arc::default() };
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
        // An old entry has lasted for some time already. One that arrives later than the old ones has just been stored,
        // whatever the clocks say.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let stored = u64::try_from(entry.created.unix_timestamp()).unwrap_or_default();
        let age = Duration::from_secs(now.as_secs().saturating_sub(stored));
        let left = Duration::from_secs(pause.seconds).min(LONGEST_PAUSE);
        let left = if may_be_old { left.saturating_sub(age) } else { left };
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.insert(entry.key.clone(), Instant::now() + left);
    }

    /// Says whether an account must pause now.
    pub fn is_paused(&self, account: &str) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(account).is_some_and(|until| Instant::now() < *until)
    }

    /// Lets all workers with an account pause.
    pub async fn announce(&self, account: &str, pause: Duration) -> Result<(), WorkersError> {
        let pause = AccountPause { seconds: pause.as_secs().max(1) };
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
