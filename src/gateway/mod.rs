//! A model gateway on loopback: agents ask it instead of a vendor.
//!
//! In: requests of any of the model APIs, each under the address of one trial. Out: what an
//! `Answer` decides, as that API sends it; and who asked how much. Never: reached from elsewhere.

mod play;
mod schema;
mod scope;
mod script;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use schema::schema as script_schema;
pub use scope::{Scope, ScopeKind, TrialScope};
pub use script::Script;

use crate::llm::{Api, Reply, Request};
use scope::Registry;

/// How long open connections get when the gateway stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// Roughly; near enough for budgets and reports, and the same on every machine.
const BYTES_PER_TOKEN: usize = 4;

/// One request of an agent or a judge.
pub struct Call<'a> {
    pub scope: &'a TrialScope,
    pub api: Api,
    pub request: &'a Request,
    /// The body as it came.
    pub raw: &'a [u8],
    /// From 1, within the scope.
    pub number: u64,
}

/// Decides what a request gets. A script is one way; recording and replaying are others.
pub trait Answer: Send + Sync {
    fn answer<'a>(&'a self, call: Call<'a>) -> Answering<'a>;
}

pub type Answering<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// What the client will see, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Before the first byte.
    pub wait: Duration,
    pub delivery: Delivery,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Delivery {
    Whole(Reply),
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
        Self {
            status: 400,
            kind: kind_of_status(400).to_owned(),
            message: message.into(),
            headers: BTreeMap::new(),
        }
    }
}

/// Anthropic's words, which are the most telling; OpenAI's clients go by the status.
fn kind_of_status(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
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

/// A running gateway. Dropping it ends what is open; `stop` also waits for that.
pub struct Gateway {
    address: SocketAddr,
    registry: Arc<Registry>,
    stopping: watch::Sender<bool>,
    server: Option<JoinHandle<()>>,
}

impl Gateway {
    pub async fn start(answer: Arc<dyn Answer>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let registry = Arc::new(Registry::default());
        let (stopping, stopped) = watch::channel(false);
        let server = tokio::spawn(server::serve(listener, Arc::clone(&registry), answer, stopped));
        Ok(Self { address, registry, stopping, server: Some(server) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address of its own for one trial or judge. It is gone when the scope is dropped.
    pub fn register(&self, name: &str, kind: ScopeKind, vars: BTreeMap<String, String>) -> Scope {
        Scope::register(&self.registry, self.address, TrialScope::new(name, kind, vars))
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
