//! A model gateway on loopback: agents ask it instead of a vendor.
//!
//! In: requests of any of the model APIs, each under the address of one trial. Out: what an
//! `Answer` decides, as that API sends it; and who asked how much. Never: reached from elsewhere.

mod cassette;
mod count;
mod ledger;
mod meter;
mod normal;
mod play;
mod prices;
mod record;
mod replay;
mod schema;
mod scope;
mod script;
mod server;
#[cfg(test)]
mod tests;
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
pub use ledger::{Budget, Denied, Ledger};
pub use meter::Meter;
pub use prices::{Prices, PricesError};
pub use record::{Record, Scrub};
pub use replay::Replay;
pub use schema::schema as script_schema;
pub use scope::{Halt, Scope, ScopeKind, TrialScope};
pub use script::Script;
pub use upstream::Upstream;

use crate::llm::{Api, Reply, Request};
use scope::Registry;

/// How long open connections get when the gateway stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// Roughly; near enough for budgets and reports, and the same on every machine.
const BYTES_PER_TOKEN: usize = 4;

/// No model writes that much. What is longer still passes, but is not looked into.
const LARGEST_REPLY: usize = 32 * 1024 * 1024;

/// One request of an agent or a judge.
pub struct Call<'a> {
    pub scope: &'a TrialScope,
    pub api: Api,
    pub request: &'a Request,
    /// The body as it came.
    pub raw: &'a [u8],
    pub query: Option<&'a str>,
    pub headers: &'a HeaderMap,
    /// From 1, within the scope.
    pub number: u64,
}

/// A request that no model is needed for: which models there are, how many tokens a text has.
pub struct Aside<'a> {
    pub api: Api,
    /// Behind `/v1/`.
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub headers: &'a HeaderMap,
    /// Posted, if there is one.
    pub body: Option<&'a [u8]>,
}

/// Decides what a request gets. A script is one way; passing on, recording and replaying are others.
pub trait Answer: Send + Sync {
    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a>;

    /// `None` leaves it to the gateway.
    fn aside<'a>(&'a self, _aside: Aside<'a>) -> Asides<'a> {
        Box::pin(std::future::ready(None))
    }

    /// What the reader of a result should know once the trial has asked its last.
    fn left_over(&self, _scope: &TrialScope) -> Option<String> {
        None
    }
}

pub type Answering<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;
pub type Asides<'a> = Pin<Box<dyn Future<Output = Option<Result<Passed, Refusal>>> + Send + 'a>>;

/// What the client will see, and when.
#[derive(Debug)]
pub struct Outcome {
    /// Before the first byte.
    pub wait: Duration,
    pub delivery: Delivery,
}

#[derive(Debug)]
pub enum Delivery {
    Whole(Reply),
    /// As another server sent it, byte by byte.
    Passed(Passed),
    /// Half of the reply; then the connection drops.
    Truncated(Reply),
    /// Only headers for this long; then the connection drops.
    Stalled(Duration),
    /// The stream opens and reports an error. Without streaming it is an HTTP error.
    BrokenOff {
        reply: Reply,
        kind: String,
        message: String,
    },
    Refused(Refusal),
    /// The connection drops before any header.
    Dropped,
}

/// A response that comes in its own time.
pub struct Passed {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>,
}

impl std::fmt::Debug for Passed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passed").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Passed {
    fn is_stream(&self) -> bool {
        let kind = self.headers.get(axum::http::header::CONTENT_TYPE);
        kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    /// The API's word for it, such as `overloaded_error`.
    pub kind: String,
    pub message: String,
    pub headers: BTreeMap<String, String>,
}

impl From<Delivery> for Outcome {
    fn from(delivery: Delivery) -> Self {
        Self { wait: Duration::ZERO, delivery }
    }
}

impl Refusal {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::with_status(400, message)
    }

    pub fn with_status(status: u16, message: impl Into<String>) -> Self {
        Self {
            status,
            kind: kind_of_status(status).to_owned(),
            message: message.into(),
            headers: BTreeMap::new(),
        }
    }

    /// Tells clients that asking again is no use.
    pub fn for_good(mut self) -> Self {
        self.headers.insert("x-should-retry".to_owned(), "false".to_owned());
        self
    }
}

/// Anthropic's words, which are the most telling; OpenAI's clients go by the status.
fn kind_of_status(status: u16) -> &'static str {
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

/// How a gateway is run.
pub struct Setup {
    pub answer: Arc<dyn Answer>,
    /// Pays for what is asked.
    pub ledger: Arc<Ledger>,
    /// 0 for any that is free.
    pub port: u16,
    /// Hears a line for each request.
    pub log: Option<Log>,
}

pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// A running gateway. Dropping it ends what is open; `stop` also waits for that.
pub struct Gateway {
    address: SocketAddr,
    registry: Arc<Registry>,
    answer: Arc<dyn Answer>,
    stopping: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl Gateway {
    pub async fn start(answer: Arc<dyn Answer>) -> std::io::Result<Self> {
        Self::set_up(Setup { answer, ledger: Arc::default(), port: 0, log: None }).await
    }

    pub async fn set_up(setup: Setup) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", setup.port)).await?;
        let address = listener.local_addr()?;
        let registry = Arc::new(Registry::default());
        let answer = Arc::clone(&setup.answer);
        let (stopping, stopped) = watch::channel(false);
        let server = tokio::spawn(server::serve(listener, Arc::clone(&registry), setup, stopped));
        Ok(Self { address, registry, answer, stopping, server: Some(server) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address of its own for one trial or judge. It is gone when the scope is dropped.
    pub fn register(&self, name: &str, kind: ScopeKind, vars: BTreeMap<String, String>) -> Scope {
        let scope = TrialScope::new(name, kind, vars);
        Scope::register(&self.registry, &self.answer, self.address, scope)
    }

    pub async fn stop(mut self) {
        self.begin_to_stop();
        if let Some(server) = self.server.take() {
            // What does not end by itself dies with the runtime.
            let _ = tokio::time::timeout(STOP_WITHIN, server).await;
        }
    }

    fn begin_to_stop(&self) {
        self.stopping.send_replace(true);
        self.registry.close_all();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.begin_to_stop();
    }
}
