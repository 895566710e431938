//! The connections to a judge: a model API, or an agent CLI that is used as a plain model.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::JudgeContext;
use super::cli_judge::CliJudge;
use practicum_agents::llm::{LlmError, ModelApi, ModelClient, ModelReply, ModelRequest, RateLimitGate};

/// Limits that all judges of a run share: how many are asked at the same time, and the gate that a rate limit
/// closes for all of them.
#[derive(Clone)]
pub struct JudgeLimits {
    permits: Arc<Semaphore>,
    gate: Arc<RateLimitGate>,
}

impl JudgeLimits {
    pub fn new(at_once: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(at_once)), gate: Arc::default() }
    }

    pub fn gate(&self) -> Arc<RateLimitGate> {
        Arc::clone(&self.gate)
    }
}

#[derive(Clone)]
/// A connection through which a judge is asked.
pub struct JudgeConnection {
    kind: JudgeConnectionKind,
    limits: JudgeLimits,
    /// The service that answers, without the model. A gateway that only passes requests on does not change it.
    identity: String,
}

#[derive(Clone)]
enum JudgeConnectionKind {
    Api(Box<ModelClient>),
    Cli(Box<CliJudge>),
}

/// The reason why a judge gave no reply.
pub enum JudgeCallError {
    Failed(LlmError),
    /// The user stopped the run.
    Cancelled,
}

impl JudgeConnection {
    pub fn api(client: ModelClient, limits: JudgeLimits) -> Self {
        let identity = format!("{} {}", client.endpoint().api.name(), client.endpoint().base_url);
        Self { kind: JudgeConnectionKind::Api(Box::new(client.with_gate(limits.gate()))), limits, identity }
    }

    pub fn cli(cli: CliJudge, limits: JudgeLimits) -> Self {
        let identity = format!("cli {}", cli.identity());
        Self { kind: JudgeConnectionKind::Cli(Box::new(cli.with_gate(limits.gate()))), limits, identity }
    }

    /// Makes a connection to another address, that of a gateway, in the form that each API needs. Both connections
    /// share the same limits.
    pub fn at_address(&self, address: impl Fn(ModelApi) -> String) -> Self {
        let way = match &self.kind {
            JudgeConnectionKind::Api(client) => {
                JudgeConnectionKind::Api(Box::new(client.with_base_url(address(client.endpoint().api))))
            }
            // A CLI gets the address of the gateway and adds the path of its API itself.
            JudgeConnectionKind::Cli(cli) => {
                JudgeConnectionKind::Cli(Box::new(cli.at_gateway(address(ModelApi::AnthropicMessages))))
            }
        };
        Self { kind: way, limits: self.limits.clone(), identity: self.identity.clone() }
    }

    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Asks the judge as soon as the limits allow it.
    pub async fn ask(
        &self,
        request: &ModelRequest,
        sitting: &JudgeContext<'_>,
    ) -> Result<ModelReply, JudgeCallError> {
        // The semaphore is never closed. If it were, asking without a limit would do the least harm.
        let _permit = tokio::select! {
            permit = self.limits.permits.acquire() => permit.ok(),
            () = sitting.cancel.wait_until_cancelled() => return Err(JudgeCallError::Cancelled),
        };
        match &self.kind {
            JudgeConnectionKind::Api(client) => tokio::select! {
                reply = client.send(request) => reply.map_err(JudgeCallError::Failed),
                () = sitting.cancel.wait_until_cancelled() => Err(JudgeCallError::Cancelled),
            },
            // The CLI watches for cancellation itself, because it has processes to end.
            JudgeConnectionKind::Cli(cli) => cli.send(request, sitting).await,
        }
    }

    /// Makes a connection that no test uses for asking.
    #[cfg(test)]
    pub fn for_tests() -> Self {
        let endpoint = practicum_agents::llm::Endpoint {
            api: ModelApi::AnthropicMessages,
            base_url: "http://127.0.0.1:1".to_owned(),
            credential: None,
        };
        Self::api(ModelClient::new(endpoint).expect("a client"), JudgeLimits::new(1))
    }
}
