//! Scopes of the gateway: one trial or judge with its address, and the account of its requests.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use uuid::Uuid;

use super::Responder;
use crate::agents::{SkillTextLines, SkillTextWatch, TextSource};
use crate::llm::{ContentBlock, ModelApi, ModelRequest};
use practicum_core::model::{SkillTextFinding, TokenUsage};

/// The greatest number of notes. A run with more only repeats itself.
const MOST_NOTES: usize = 100;

/// The largest request, and the memory for all requests of one trial that are being read or answered. Only conversations
/// with images come near it.
pub(super) const LARGEST_BODY: usize = 64 * 1024 * 1024;

/// Who sends requests to one address of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    Agent,
    Judge,
    /// A model that plays the user of a case.
    User,
    /// A model that plays a mocked server.
    Mock,
    /// A probe: an agent that is asked to use a skill before anything is measured.
    Probe,
}

/// The reason why the gateway itself kept a trial from getting answers, whatever its agent made of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayHalt {
    OverBudget(String),
    Unanswered(String),
}

/// The account of one trial's requests. All its requests share it.
pub struct ScopeAccount {
    pub name: String,
    pub kind: ScopeKind,
    /// The values that replace `{{name}}`.
    pub vars: BTreeMap<String, String>,
    tally: Mutex<ScopeTally>,
    /// The memory for the bodies of its requests, in KiB. A trial that fills it waits only for itself.
    body_memory: Arc<Semaphore>,
    closed: watch::Sender<bool>,
}

#[derive(Default)]
struct ScopeTally {
    requests: u64,
    open: usize,
    usage: TokenUsage,
    cost: f64,
    /// Whether `cost` lacks a part, because its price is unknown.
    cost_unknown: bool,
    halt: Option<GatewayHalt>,
    notes: Vec<String>,
    fault_counts: HashMap<(usize, usize), u32>,
    /// The first requests of a probe, as they came.
    probe_requests: Vec<Vec<u8>>,
    /// Whether the first requests are kept in which no tool has answered yet.
    keeps_first_requests: bool,
    /// These requests, as they came.
    first_requests: Vec<Vec<u8>>,
    /// The watch for the texts of skills in the requests.
    text_watch: Option<SkillTextWatch>,
}

/// The greatest number of requests of a probe that are kept. The first ones contain what the model received.
const MOST_PROBE_REQUESTS: usize = 8;
const LARGEST_PROBE_REQUEST: usize = 4 * 1024 * 1024;

impl ScopeAccount {
    pub(super) fn new(name: &str, kind: ScopeKind, vars: BTreeMap<String, String>) -> Self {
        let (closed, _) = watch::channel(false);
        let body_memory = Arc::new(Semaphore::new(LARGEST_BODY / 1024));
        Self { name: name.to_owned(), kind, vars, tally: Mutex::default(), body_memory, closed }
    }

    /// Locks the counts. After a panic elsewhere they are still the best available.
    fn lock_tally(&self) -> MutexGuard<'_, ScopeTally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note for the reader of a result, each text once.
    pub fn add_note(&self, text: impl Into<String>) {
        let text = text.into();
        let mut tally = self.lock_tally();
        if tally.notes.len() < MOST_NOTES && !tally.notes.contains(&text) {
            tally.notes.push(text);
        }
    }

    /// Says whether a fault that happens a limited number of times happens now. Each call counts.
    pub fn count_fault(&self, what: (usize, usize), times: u32) -> bool {
        let mut tally = self.lock_tally();
        let served = tally.fault_counts.entry(what).or_default();
        let may = *served < times;
        *served = served.saturating_add(u32::from(may));
        may
    }

    pub(super) fn add_usage(&self, usage: TokenUsage, cost: Option<f64>) {
        let mut tally = self.lock_tally();
        tally.usage.add(usage);
        match cost {
            Some(cost) => tally.cost += cost,
            None => tally.cost_unknown = true,
        }
    }

    /// Records a halt. The first reason stays, and is added to the notes.
    pub(super) fn record_halt(&self, why: GatewayHalt) {
        let (GatewayHalt::OverBudget(text) | GatewayHalt::Unanswered(text)) = &why;
        self.add_note(text);
        self.lock_tally().halt.get_or_insert(why);
    }

    /// Counts a request and gives its number.
    pub(super) fn count_request(&self) -> u64 {
        let mut tally = self.lock_tally();
        tally.requests += 1;
        tally.requests
    }

    /// Keeps a probe's request, which shows what the model received about a skill.
    pub(super) fn keep_probe_request(&self, raw: &[u8]) {
        let mut tally = self.lock_tally();
        if self.kind == ScopeKind::Probe
            && tally.probe_requests.len() < MOST_PROBE_REQUESTS
            && raw.len() <= LARGEST_PROBE_REQUEST
        {
            tally.probe_requests.push(raw.to_vec());
        }
    }

    /// Keeps a request in which no tool has answered yet, which shows what the agent tells its model at the start.
    pub(super) fn keep_first_request(&self, raw: &[u8], request: &ModelRequest) {
        let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult { .. });
        let mut tally = self.lock_tally();
        if tally.keeps_first_requests
            && tally.first_requests.len() < MOST_PROBE_REQUESTS
            && raw.len() <= LARGEST_PROBE_REQUEST
            && !request.messages.iter().flat_map(|message| &message.blocks).any(is_result)
        {
            tally.first_requests.push(raw.to_vec());
        }
    }

    /// Looks for the texts of skills in a request; `None` is a request that cannot be read.
    pub(super) fn watch_request(&self, request: Option<&ModelRequest>) {
        if let Some(watch) = &mut self.lock_tally().text_watch {
            match request {
                Some(request) => watch.read_request(request),
                None => watch.note_unreadable_request(),
            }
        }
    }

    /// Waits until there is room for a body of so many bytes. The room is free again when the permit is dropped.
    pub(super) async fn reserve_body(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let kibibytes = u32::try_from(bytes.min(LARGEST_BODY).div_ceil(1024)).ok()?;
        Arc::clone(&self.body_memory).acquire_many_owned(kibibytes).await.ok()
    }

    /// Waits until the scope is dropped or the gateway stops.
    pub(super) async fn wait_until_closed(&self) {
        let mut closed = self.closed.subscribe();
        // The sender lives in `self`, so this cannot fail before it is true.
        let _ = closed.wait_for(|closed| *closed).await;
    }

    pub(super) fn close(&self) {
        self.closed.send_replace(true);
    }
}

/// A request that is being answered, until it is dropped.
pub(super) struct OpenRequest(Arc<ScopeAccount>);

impl OpenRequest {
    pub fn new(scope: &Arc<ScopeAccount>) -> Self {
        scope.lock_tally().open += 1;
        Self(Arc::clone(scope))
    }

    pub fn account(&self) -> &Arc<ScopeAccount> {
        &self.0
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.lock_tally().open -= 1;
    }
}

/// The existing scopes, by the token in their address.
#[derive(Default)]
pub(super) struct ScopeRegistry {
    scopes: Mutex<HashMap<String, Arc<ScopeAccount>>>,
}

impl ScopeRegistry {
    fn lock_scopes(&self) -> MutexGuard<'_, HashMap<String, Arc<ScopeAccount>>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn find(&self, token: &str) -> Option<Arc<ScopeAccount>> {
        self.lock_scopes().get(token).cloned()
    }

    pub fn close_all(&self) {
        self.lock_scopes().values().for_each(|scope| scope.close());
    }
}

/// The permission to use the gateway, and the account of its requests.
pub struct GatewayScope {
    account: Arc<ScopeAccount>,
    token: String,
    base_url: String,
    registry: Arc<ScopeRegistry>,
    responder: Arc<dyn Responder>,
}

impl GatewayScope {
    pub(super) fn register(
        registry: &Arc<ScopeRegistry>,
        answer: &Arc<dyn Responder>,
        address: SocketAddr,
        scope: ScopeAccount,
    ) -> Self {
        // Other programs on this machine must not be able to guess the token.
        let token = Uuid::new_v4().simple().to_string();
        let shared = Arc::new(scope);
        registry.lock_scopes().insert(token.clone(), Arc::clone(&shared));
        let base_url = format!("http://{address}/t/{token}");
        Self {
            account: shared,
            token,
            base_url,
            registry: Arc::clone(registry),
            responder: Arc::clone(answer),
        }
    }

    /// Gives the value for `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Gives the address in the form of the API's own variable: OpenAI's ends with `/v1`.
    pub fn base_url_for(&self, api: ModelApi) -> String {
        match api {
            ModelApi::AnthropicMessages | ModelApi::Gemini => self.base_url.clone(),
            ModelApi::OpenAiResponses | ModelApi::OpenAiChat => format!("{}/v1", self.base_url),
        }
    }

    /// Gives the number of model requests so far, including failed ones.
    pub fn requests(&self) -> u64 {
        self.account.lock_tally().requests
    }

    /// Keeps the first requests from now on, until a tool has answered.
    pub fn keep_first_requests(&self) {
        self.account.lock_tally().keeps_first_requests = true;
    }

    /// Gives every text that the model received before a tool answered. `None` if no such request was kept.
    pub fn first_request_texts(&self) -> Option<String> {
        let asked = self.account.lock_tally().first_requests.clone();
        (!asked.is_empty()).then(|| texts_of(&asked))
    }

    /// Gives every text that a probe's model received.
    pub fn probe_request_texts(&self) -> String {
        texts_of(&self.account.lock_tally().probe_requests.clone())
    }

    /// Looks for the texts of these skills in the requests from now on. Lines that the user's prompts have do not
    /// count.
    pub fn watch_for_skills(&self, skills: Vec<SkillTextLines>, prompts: &[String]) {
        let mut watch = SkillTextWatch::new(skills);
        for prompt in prompts {
            watch.read_text(prompt, TextSource::Written);
        }
        self.account.lock_tally().text_watch = Some(watch);
    }

    /// Says which of the watched skills have their text in the requests. `None` if there was no request.
    pub fn skill_text_findings(&self) -> Option<Vec<SkillTextFinding>> {
        let tally = self.account.lock_tally();
        let watch = tally.text_watch.as_ref().filter(|_| tally.requests > 0)?;
        Some(watch.findings("a request to the model"))
    }

    /// Gives the number of requests that are being answered now.
    pub fn open_requests(&self) -> usize {
        self.account.lock_tally().open
    }

    /// Gives the tokens of the replies that were sent, as far as the replies report them.
    pub fn usage(&self) -> TokenUsage {
        self.account.lock_tally().usage
    }

    /// Gives the cost of the replies; `None` if a part of it is unknown.
    pub fn cost(&self) -> Option<f64> {
        let tally = self.account.lock_tally();
        (!tally.cost_unknown).then_some(tally.cost)
    }

    pub fn halt_reason(&self) -> Option<GatewayHalt> {
        self.account.lock_tally().halt.clone()
    }

    pub fn notes(&self) -> Vec<String> {
        self.account.lock_tally().notes.clone()
    }

    /// Adds the closing note, and gives all notes. Called after the last request.
    pub fn finish(&self) -> Vec<String> {
        if let Some(left) = self.responder.closing_note(&self.account) {
            self.account.add_note(left);
        }
        self.notes()
    }
}

impl Drop for GatewayScope {
    fn drop(&mut self) {
        self.registry.lock_scopes().remove(&self.token);
        self.account.close();
    }
}

/// Gives every text in these JSON documents, each on a line.
fn texts_of(requests: &[Vec<u8>]) -> String {
    let mut out = String::new();
    for request in requests.iter().filter_map(|raw| serde_json::from_slice::<Value>(raw).ok()) {
        visit_texts(&request, &mut |text| {
            out.push_str(text);
            out.push('\n');
        });
    }
    out
}

fn visit_texts(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, each)),
        Value::Object(fields) => fields.values().for_each(|item| visit_texts(item, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_requests_of_one_trial_wait_only_for_each_other() {
        let scope = || ScopeAccount::new("t", ScopeKind::Agent, BTreeMap::new());
        let (flooding, other) = (scope(), scope());
        let first = flooding.reserve_body(LARGEST_BODY).await.expect("room");
        let soon = Duration::from_millis(20);
        assert!(tokio::time::timeout(soon, flooding.reserve_body(1)).await.is_err(), "the memory is full");
        assert!(other.reserve_body(LARGEST_BODY).await.is_some(), "a neighbour has its own");
        drop(first);
        assert!(flooding.reserve_body(1).await.is_some());
    }
}
