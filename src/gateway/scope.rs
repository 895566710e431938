//! Who asks: one trial or judge, its address, and the account of what it asked.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use uuid::Uuid;

use crate::llm::Api;
use crate::model::Usage;

/// A run that says more than this says the same again and again.
const MOST_NOTES: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    Agent,
    Judge,
}

/// What one trial asked, and what is known about it. Shared by its requests.
pub struct TrialScope {
    pub name: String,
    pub kind: ScopeKind,
    /// What `{{name}}` stands for.
    pub vars: BTreeMap<String, String>,
    tally: Mutex<Tally>,
    closed: watch::Sender<bool>,
}

#[derive(Default)]
struct Tally {
    requests: u64,
    open: usize,
    usage: Usage,
    notes: Vec<String>,
    served: HashMap<(usize, usize), u32>,
}

impl TrialScope {
    pub(super) fn new(name: &str, kind: ScopeKind, vars: BTreeMap<String, String>) -> Self {
        let (closed, _) = watch::channel(false);
        Self { name: name.to_owned(), kind, vars, tally: Mutex::default(), closed }
    }

    /// A panic elsewhere leaves the counts as they were; they are still the best there is.
    fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something the reader of a result should know, once.
    pub fn note(&self, text: impl Into<String>) {
        let text = text.into();
        let mut tally = self.tally();
        if tally.notes.len() < MOST_NOTES && !tally.notes.contains(&text) {
            tally.notes.push(text);
        }
    }

    /// Whether something that is to happen only so many times may happen now. Asking counts.
    pub fn once_more(&self, what: (usize, usize), times: u32) -> bool {
        let mut tally = self.tally();
        let served = tally.served.entry(what).or_default();
        let may = *served < times;
        *served = served.saturating_add(u32::from(may));
        may
    }

    pub(super) fn add_usage(&self, usage: Usage) {
        self.tally().usage.add(usage);
    }

    /// Counts a request and gives its number.
    pub(super) fn count_request(&self) -> u64 {
        let mut tally = self.tally();
        tally.requests += 1;
        tally.requests
    }

    /// Ends when the scope is dropped or the gateway stops.
    pub(super) async fn until_closed(&self) {
        let mut closed = self.closed.subscribe();
        // The sender lives in `self`, so this cannot fail before it is true.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// A request that is being answered, until it is dropped.
pub(super) struct Open(Arc<TrialScope>);

impl Open {
    pub fn new(scope: &Arc<TrialScope>) -> Self {
        scope.tally().open += 1;
        Self(Arc::clone(scope))
    }

    pub fn scope(&self) -> &TrialScope {
        &self.0
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.tally().open -= 1;
    }
}

/// The scopes that exist, by the token in their address.
#[derive(Default)]
pub(super) struct Registry {
    scopes: Mutex<HashMap<String, Arc<TrialScope>>>,
}

impl Registry {
    fn scopes(&self) -> MutexGuard<'_, HashMap<String, Arc<TrialScope>>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn find(&self, token: &str) -> Option<Arc<TrialScope>> {
        self.scopes().get(token).cloned()
    }

    pub fn close_all(&self) {
        self.scopes().values().for_each(|scope| scope.close());
    }
}

/// The right to ask the gateway, and the account of what was asked.
pub struct Scope {
    shared: Arc<TrialScope>,
    token: String,
    base_url: String,
    registry: Arc<Registry>,
}

impl Scope {
    pub(super) fn register(registry: &Arc<Registry>, address: SocketAddr, scope: TrialScope) -> Self {
        // Not to be guessed by other programs on this machine.
        let token = Uuid::new_v4().simple().to_string();
        let shared = Arc::new(scope);
        registry.scopes().insert(token.clone(), Arc::clone(&shared));
        let base_url = format!("http://{address}/t/{token}");
        Self { shared, token, base_url, registry: Arc::clone(registry) }
    }

    /// For `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// As the API's own variable has it: OpenAI's ends with `/v1`.
    pub fn base_url_for(&self, api: Api) -> String {
        match api {
            Api::AnthropicMessages => self.base_url.clone(),
            Api::OpenAiResponses | Api::OpenAiChat => format!("{}/v1", self.base_url),
        }
    }

    /// Model requests so far, failed ones included.
    pub fn requests(&self) -> u64 {
        self.shared.tally().requests
    }

    /// Requests that are being answered now.
    pub fn open_requests(&self) -> usize {
        self.shared.tally().open
    }

    /// Tokens of the replies that were sent whole.
    pub fn usage(&self) -> Usage {
        self.shared.tally().usage
    }

    pub fn notes(&self) -> Vec<String> {
        self.shared.tally().notes.clone()
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.registry.scopes().remove(&self.token);
        self.shared.close();
    }
}
