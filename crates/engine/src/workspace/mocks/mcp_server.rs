//! A mocked MCP server: speaks the protocol with one agent, over one connection.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use super::MockState;
use practicum_core::model::{McpServerMock, McpToolMock};
use practicum_evals::mocks::{ToolAnswer, answer_tool_call};

/// Serves one connection to the mock of this name until the agent closes it.
pub async fn serve_mcp(
    state: Arc<MockState>,
    server: String,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let mock = state.mocks.server(&server).cloned().ok_or_else(|| io::Error::other("no such server"))?;
    let serving = McpMock { state, mock }.serve((read, write)).await.map_err(io::Error::other)?;
    serving.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

struct McpMock {
    state: Arc<MockState>,
    mock: McpServerMock,
}

impl ServerHandler for McpMock {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new(self.mock.name.clone(), "1.0.0");
        config
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.mock.tools.iter().map(describe_tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = Value::Object(request.arguments.unwrap_or_default());
        let (server, tool) = (&self.mock.name, &request.name);
        let earlier = self.state.earlier_calls(server, tool, &input);
        let reply = match answer_tool_call(&self.mock, tool, &input, earlier) {
            ToolAnswer::Reply(reply) => self.state.record(reply.record(server, tool, input)).then_some(reply),
            ToolAnswer::Model(role) => {
                let known = self.mock.tools.iter().find(|known| known.name == **tool);
                let description = known.and_then(|known| known.description.as_deref());
                self.state.answer_by_model(server, tool, input, description, role).await
            }
        };
        let reply = reply.ok_or_else(|| ErrorData::internal_error("too many calls", None))?;
        let text = vec![ContentBlock::text(reply.text)];
        let result = if reply.is_error { CallToolResult::error(text) } else { CallToolResult::success(text) };
        Ok(result.into())
    }
}

fn describe_tool(tool: &McpToolMock) -> Tool {
    let any = || json!({"type": "object", "additionalProperties": true});
    let schema = tool.input_schema.clone().unwrap_or_else(any);
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let description = tool.description.clone().unwrap_or_else(|| tool.name.replace(['_', '-'], " "));
    Tool::new(tool.name.clone(), description, schema)
}
