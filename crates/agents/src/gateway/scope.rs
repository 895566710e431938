//! Who asks: one trial or judge, its address, and the account of what it asked.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

use super::Answer;
use crate::llm::Api;
use practicum_core::model::Usage;

/// A run that says more than this says the same again and again.
const MOST_NOTES: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    Agent,
    Judge,
    /// An agent that is told to use a skill, before anything is measured.
    Probe,
}

/// Why the gateway itself kept a trial from getting its answers, whatever its agent made of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    OverBudget(String),
    Unanswered(String),
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
    cost: f64,
    /// Some of the money is not in `cost`, because nobody knows it.
    cost_unknown: bool,
    halt: Option<Halt>,
    notes: Vec<String>,
    served: HashMap<(usize, usize), u32>,
    /// The first requests of a probe, as they came.
    asked: Vec<Vec<u8>>,
}

/// What a probe's model was told stands in its first requests, which are not long.
const MOST_KEPT: usize = 8;
const LONGEST_KEPT: usize = 4 * 1024 * 1024;

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

    pub(super) fn add_usage(&self, usage: Usage, cost: Option<f64>) {
        let mut tally = self.tally();
        tally.usage.add(usage);
        match cost {
            Some(cost) => tally.cost += cost,
            None => tally.cost_unknown = true,
        }
    }

    /// The first reason stays, and is noted.
    pub(super) fn halt(&self, why: Halt) {
        let (Halt::OverBudget(text) | Halt::Unanswered(text)) = &why;
        self.note(text);
        self.tally().halt.get_or_insert(why);
    }

    /// Counts a request and gives its number.
    pub(super) fn count_request(&self) -> u64 {
        let mut tally = self.tally();
        tally.requests += 1;
        tally.requests
    }

    /// Keeps what a probe asks: what its model is told of a skill is nowhere else to be seen.
    pub(super) fn keep(&self, raw: &[u8]) {
        let mut tally = self.tally();
        if self.kind == ScopeKind::Probe && tally.asked.len() < MOST_KEPT && raw.len() <= LONGEST_KEPT {
            tally.asked.push(raw.to_vec());
        }
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

    pub fn scope(&self) -> &Arc<TrialScope> {
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
    answer: Arc<dyn Answer>,
}

impl Scope {
    pub(super) fn register(
        registry: &Arc<Registry>,
        answer: &Arc<dyn Answer>,
        address: SocketAddr,
        scope: TrialScope,
    ) -> Self {
        // Not to be guessed by other programs on this machine.
        let token = Uuid::new_v4().simple().to_string();
        let shared = Arc::new(scope);
        registry.scopes().insert(token.clone(), Arc::clone(&shared));
        let base_url = format!("http://{address}/t/{token}");
        Self { shared, token, base_url, registry: Arc::clone(registry), answer: Arc::clone(answer) }
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

    /// Every text that a probe's model was told.
    pub fn told(&self) -> String {
        let asked = self.shared.tally().asked.clone();
        let mut out = String::new();
        for request in asked.iter().filter_map(|raw| serde_json::from_slice::<Value>(raw).ok()) {
            texts(&request, &mut |text| {
                out.push_str(text);
                out.push('\n');
            });
        }
        out
    }

    /// Requests that are being answered now.
    pub fn open_requests(&self) -> usize {
        self.shared.tally().open
    }

    /// Tokens of the replies that were sent, as far as they were told.
    pub fn usage(&self) -> Usage {
        self.shared.tally().usage
    }

    /// What they cost; `None` if that is not known of all of them.
    pub fn cost(&self) -> Option<f64> {
        let tally = self.shared.tally();
        (!tally.cost_unknown).then_some(tally.cost)
    }

    pub fn halted(&self) -> Option<Halt> {
        self.shared.tally().halt.clone()
    }

    pub fn notes(&self) -> Vec<String> {
        self.shared.tally().notes.clone()
    }

    /// Says that nothing more will be asked, and gives the notes.
    pub fn finish(&self) -> Vec<String> {
        if let Some(left) = self.answer.left_over(&self.shared) {
            self.shared.note(left);
        }
        self.notes()
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.registry.scopes().remove(&self.token);
        self.shared.close();
    }
}

fn texts(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, each)),
        Value::Object(fields) => fields.values().for_each(|item| texts(item, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
