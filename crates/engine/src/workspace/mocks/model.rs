//! A model that plays mocked servers: what it is asked, and what it answers.

use std::future::Future;
use std::pin::Pin;

use super::MockState;
use practicum_core::model::{MockCall, MockOutcome, MockedTool, ServerRole};
use practicum_evals::mocks::ToolReply;
use serde_json::Value;

/// A call of a server that a model plays.
pub struct ServerCall<'c> {
    pub server: &'c str,
    pub tool: &'c str,
    pub input: &'c Value,
    /// The description of the tool, if the mock has one.
    pub description: Option<&'c str>,
    pub role: &'c ServerRole,
    /// The calls of this server before, in order. The model answers as if they had changed its data.
    pub earlier: &'c [MockCall],
}

/// What a model that plays a server does with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerReply {
    /// The call has this result.
    Result(String),
    /// The call fails with this message.
    Error(String),
    /// The agent should not have made the call, for this reason.
    Mistake(String),
    /// The model gave no answer, for this reason.
    Failed(String),
}

/// A model that plays servers.
pub trait ServerModel: Send + Sync {
    /// Answers one call.
    fn answer<'m>(
        &'m mut self,
        call: ServerCall<'m>,
    ) -> Pin<Box<dyn Future<Output = ServerReply> + Send + 'm>>;
}

impl MockState {
    /// Lets the model answer a call, and records it. `None` if there were too many calls.
    pub(super) async fn answer_by_model(
        &self,
        server: &str,
        tool: &str,
        input: Value,
        description: Option<&str>,
        role: &ServerRole,
    ) -> Option<ToolReply> {
        // Held until the call is recorded, so that the next answer knows of this one.
        let mut model = match &self.model {
            Some(model) => Some(model.lock().await),
            None => None,
        };
        let earlier = self.calls_of(server);
        let call = ServerCall { server, tool, input: &input, description, role, earlier: &earlier };
        let reply = match &mut model {
            Some(model) => model.answer(call).await,
            None => ServerReply::Failed("there is no model".to_owned()),
        };
        let failed = |text: String, outcome| ToolReply { text, is_error: true, outcome };
        let reply = match reply {
            ServerReply::Result(text) => ToolReply { text, is_error: false, outcome: MockOutcome::Answered },
            ServerReply::Error(text) => failed(text, MockOutcome::Answered),
            ServerReply::Mistake(why) => ToolReply::unexpected(tool, why),
            ServerReply::Failed(why) => {
                failed(format!("{server} is not available"), MockOutcome::ModelFailed(why))
            }
        };
        self.record(reply.record(server, tool, input)).then_some(reply)
    }

    fn calls_of(&self, server: &str) -> Vec<MockCall> {
        let calls = self.calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_own = |call: &&MockCall| match &call.of {
            MockedTool::Mcp { server: called, .. } => called == server,
            MockedTool::Command { .. } => false,
        };
        calls.iter().filter(is_own).cloned().collect()
    }
}
