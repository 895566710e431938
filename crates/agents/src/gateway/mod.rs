//! A model gateway on loopback: agents send their requests to it instead of a vendor.
//!
//! In: requests of any of the model APIs, each under the address of one trial. Out: the answer of a `Responder`,
//! in the format of that API; and an account of each trial's requests. Never: reached from another machine.

mod bounded_listener;
mod cassette;
mod ledger;
mod normalise;
mod passthrough;
mod prices;
mod record;
mod replay;
mod schema;
mod scope;
mod script;
mod script_player;
mod server;
#[cfg(test)]
mod tests;
mod token_counter;
mod upstream;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::HeaderMap;
use futures_util::Stream;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use cassette::{Cassette, CassetteError};
pub use ledger::{SpendingBudget, SpendingDenial, SpendingLedger};
pub use passthrough::Passthrough;
pub use prices::{PriceTable, PricesError};
pub use record::{CassetteRecorder, SecretScrubber};
pub use replay::CassetteReplay;
pub use schema::schema as script_schema;
pub use scope::{GatewayHalt, GatewayScope, ScopeAccount, ScopeKind};
pub use script::ModelScript;
pub use upstream::Upstream;

use crate::llm::{ModelApi, ModelReply, ModelRequest};
use scope::ScopeRegistry;

/// How long open connections may continue when the gateway stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A rough estimate, good enough for budgets and reports, and the same on every machine.
const BYTES_PER_TOKEN: usize = 4;

/// One request of an agent or a judge.
pub struct GatewayCall<'a> {
    pub scope: &'a ScopeAccount,
    pub api: ModelApi,
    pub request: &'a ModelRequest,
    /// The body as it came.
    pub raw_body: &'a [u8],
    pub query: Option<&'a str>,
    pub headers: &'a HeaderMap,
    /// The number of the request, from 1, within the scope.
    pub number: u64,
}

/// A request that needs no model: for the list of models, or the number of tokens of a text.
pub struct AuxiliaryCall<'a> {
    pub api: ModelApi,
    /// The path after `/v1/`.
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub headers: &'a HeaderMap,
    /// The posted body, if there is one.
    pub body: Option<&'a [u8]>,
}

/// A source of answers to requests: a script, the real model, a recorder, or a cassette.
pub trait Responder: Send + Sync {
    fn answer<'a>(&'a self, call: GatewayCall<'a>) -> AnswerFuture<'a>;

    /// Answers a request that needs no model. `None` leaves it to the gateway.
    fn answer_auxiliary<'a>(&'a self, _aside: AuxiliaryCall<'a>) -> AuxiliaryFuture<'a> {
        Box::pin(std::future::ready(None))
    }

    /// Gives a note for the reader of a result, after the last request of the trial.
    fn closing_note(&self, _scope: &ScopeAccount) -> Option<String> {
        None
    }
}

/// A future that gives the answer to a request.
pub type AnswerFuture<'a> = Pin<Box<dyn Future<Output = GatewayAnswer> + Send + 'a>>;
pub type AuxiliaryFuture<'a> =
    Pin<Box<dyn Future<Output = Option<Result<PassedResponse, GatewayRefusal>>> + Send + 'a>>;

/// An answer and the wait before it.
#[derive(Debug)]
pub struct GatewayAnswer {
    /// The wait before the first byte.
    pub wait: Duration,
    pub form: AnswerForm,
}

/// The form of an answer: whole, or broken in one of the ways that a script can ask for.
#[derive(Debug)]
pub enum AnswerForm {
    Whole(ModelReply),
    /// The response of another server, byte by byte.
    PassedThrough(PassedResponse),
    /// Half of the reply; then the connection drops.
    Truncated(ModelReply),
    /// Only headers for this long; then the connection drops.
    Stalled(Duration),
    /// The stream opens and reports an error. Without streaming it is an HTTP error.
    BrokenOff {
        reply: ModelReply,
        kind: String,
        message: String,
    },
    Refused(GatewayRefusal),
    /// The connection drops before any header.
    Dropped,
}

/// A response whose body comes bit by bit.
pub struct PassedResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
}

impl std::fmt::Debug for PassedResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passed").field("status", &self.status).finish_non_exhaustive()
    }
}

impl PassedResponse {
    fn is_stream(&self) -> bool {
        let kind = self.headers.get(axum::http::header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }
}

/// An answer that refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRefusal {
    pub status: u16,
    /// The API's name for the error, such as `overloaded_error`.
    pub kind: String,
    pub message: String,
    pub headers: BTreeMap<String, String>,
}

impl From<AnswerForm> for GatewayAnswer {
    fn from(form: AnswerForm) -> Self {
        Self { wait: Duration::ZERO, form }
    }
}

impl GatewayRefusal {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::with_status(400, message)
    }

    pub fn with_status(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: error_kind_for_status(status).to_owned(),
            message: message.into(),
            headers: BTreeMap::new(),
        }
    }

    /// Tells clients that a retry is useless.
    pub fn without_retry(mut self) -> Self {
        self.headers.insert("x-should-retry".to_owned(), "false".to_owned());
        self
    }
}

/// Gives Anthropic's names of errors, which are the most specific; OpenAI's clients use the status.
fn error_kind_for_status(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

/// The options of a gateway.
pub struct GatewayOptions {
    pub responder: Arc<dyn Responder>,
    /// The ledger that counts the spending.
    pub ledger: Arc<SpendingLedger>,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// A receiver of one line for each request.
    pub log: Option<RequestLog>,
}

/// A function that logs a request as a line of text.
pub type RequestLog = Arc<dyn Fn(&str) + Send + Sync>;

/// A running gateway. Dropping it ends open requests; `stop` also waits for them.
pub struct Gateway {
    address: SocketAddr,
    registry: Arc<ScopeRegistry>,
    responder: Arc<dyn Responder>,
    stopping: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl Gateway {
    pub async fn start(answer: Arc<dyn Responder>) -> std::io::Result<Self> {
        Self::start_with(GatewayOptions { responder: answer, ledger: Arc::default(), port: 0, log: None })
            .await
    }

    pub async fn start_with(setup: GatewayOptions) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", setup.port)).await?;
        let address = listener.local_addr()?;
        let registry = Arc::new(ScopeRegistry::default());
        let answer = Arc::clone(&setup.responder);
        let (stopping, stopped) = watch::channel(false);
        let server = tokio::spawn(server::serve(listener, Arc::clone(&registry), setup, stopped));
        Ok(Self { address, registry, responder: answer, stopping, server: Some(server) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers one trial or judge and gives it an address of its own, which is valid until the scope is dropped.
    pub fn register(&self, name: &str, kind: ScopeKind, vars: BTreeMap<String, String>) -> GatewayScope {
        let scope = ScopeAccount::new(name, kind, vars);
        GatewayScope::register(&self.registry, &self.responder, self.address, scope)
    }

    pub async fn stop(mut self) {
        self.request_stop();
        if let Some(server) = self.server.take() {
            // Whatever does not end by itself ends with the runtime.
            let _ = tokio::time::timeout(STOP_WITHIN, server).await;
        }
    }

    fn request_stop(&self) {
        self.stopping.send_replace(true);
        self.registry.close_all();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.request_stop();
    }
}
