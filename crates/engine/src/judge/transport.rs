//! The ways to a judge: an API, or an agent CLI that is asked as a mere model.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Sitting;
use super::cli::Cli;
use practicum_agents::llm::{Api, Client, Gate, LlmError, Reply, Request};

/// What all judges of a run share: how many are asked at once, and the gate that a rate limit
/// shuts for all of them.
#[derive(Clone)]
pub struct Limits {
    permits: Arc<Semaphore>,
    gate: Arc<Gate>,
}

impl Limits {
    pub fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), gate: Arc::default() }
    }

    pub fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }
}

#[derive(Clone)]
pub struct Transport {
    way: Way,
    limits: Limits,
    /// Who answers, apart from the model: the same through a gateway that only passes on.
    identity: String,
}

#[derive(Clone)]
enum Way {
    Api(Box<Client>),
    Cli(Box<Cli>),
}

/// Why there is no reply.
pub enum Unasked {
    Failed(LlmError),
    /// The user stopped the run.
    Cancelled,
}

impl Transport {
    pub fn api(client: Client, limits: Limits) -> Self {
        let identity = format!("{} {}", client.endpoint().api.name(), client.endpoint().base_url);
        Self { way: Way::Api(Box::new(client.with_gate(limits.gate()))), limits, identity }
    }

    pub fn cli(cli: Cli, limits: Limits) -> Self {
        let identity = format!("cli {}", cli.identity());
        Self { way: Way::Cli(Box::new(cli.with_gate(limits.gate()))), limits, identity }
    }

    /// The same way to another address: that of a gateway, as each API wants it. Both keep to one
    /// limit.
    pub fn at(&self, address: impl Fn(Api) -> String) -> Self {
        let way = match &self.way {
            Way::Api(client) => Way::Api(Box::new(client.at(address(client.endpoint().api)))),
            // A CLI is pointed at the gateway itself, and knows its API's path.
            Way::Cli(cli) => Way::Cli(Box::new(cli.at(address(Api::AnthropicMessages)))),
        };
        Self { way, limits: self.limits.clone(), identity: self.identity.clone() }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    pub async fn ask(&self, request: &Request, sitting: &Sitting<'_>) -> Result<Reply, Unasked> {
        // The semaphore is never closed; if it were, asking unlimited is the lesser harm.
        let _permit = tokio::select! {
            permit = self.limits.permits.acquire() => permit.ok(),
            () = sitting.cancel.cancelled() => return Err(Unasked::Cancelled),
        };
        match &self.way {
            Way::Api(client) => tokio::select! {
                reply = client.send(request) => reply.map_err(Unasked::Failed),
                () = sitting.cancel.cancelled() => Err(Unasked::Cancelled),
            },
            // It has processes to end, so it hears of the stop itself.
            Way::Cli(cli) => cli.send(request, sitting).await,
        }
    }

    /// For tests that only name it.
    #[cfg(test)]
    pub fn nowhere() -> Self {
        let endpoint = practicum_agents::llm::Endpoint {
            api: Api::AnthropicMessages,
            base_url: "http://127.0.0.1:1".to_owned(),
            credential: None,
        };
        Self::api(Client::new(endpoint).expect("a client"), Limits::new(1))
    }
}
