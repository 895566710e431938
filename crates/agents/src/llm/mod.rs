//! The formats of model APIs, and a client.
//!
//! In: a neutral conversation, or the message of one API. Out: the other of the two; and a client. Never: executes
//! a tool, or decides which answer is right.

mod anthropic;
mod chat;
mod client;
mod endpoint;
mod gemini;
mod responses;
mod retry;
#[cfg(test)]
mod samples;
mod sse;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use client::{LlmError, ModelClient, describe_error};
pub use endpoint::{Credential, Endpoint, HttpAddress, Secret};
pub use gemini::{request_path as gemini_request_path, split_path as split_gemini_path};
pub use retry::{ApiRetries, ApiRetryPolicy, FailedAttempt, RateLimitGate, RetryAdvice};
pub use sse::{SseEvent, SseReader};

use practicum_core::model::TokenUsage;

/// The largest reply whose content is read. No model writes that much; a server that does is broken.
pub const LARGEST_REPLY: usize = 32 * 1024 * 1024;

/// A request to a model, in the same form for every API.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub model: String,
    pub system: Option<String>,
    pub messages: Vec<ChatMessage>,
    pub tools: Vec<ToolDefinition>,
    /// The tool that must be called.
    pub tool_choice: Option<String>,
    /// The limit of tokens. `None` leaves it to the API, or to a default if the API requires a limit.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub stream: bool,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    pub role: Role,
    pub blocks: Vec<ContentBlock>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text {
        text: String,
    },
    /// A picture that a user sends, in base64.
    Image {
        /// The format, such as `image/png`.
        media_type: String,
        data: String,
    },
    /// A thought of the model. Without its signature it cannot be sent back, and is left out.
    Thinking {
        text: String,
        signature: Option<String>,
    },
    /// A call of a tool. The input is text only for OpenAI's custom tools, which take no JSON.
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
        is_error: bool,
    },
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// The answer of a model, in the same form for every API.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    pub id: String,
    pub model: String,
    pub blocks: Vec<ContentBlock>,
    pub stop: StopReason,
    /// The tokens. `input` does not include those that were read from or written to a cache.
    pub usage: TokenUsage,
}

/// Why a model stopped writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    /// A reason in the API's own spelling.
    Other(String),
}

/// A model API that the program can speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModelApi {
    AnthropicMessages,
    OpenAiResponses,
    OpenAiChat,
    /// Google's API. Only agents use it, through the gateway.
    Gemini,
}

impl ModelApi {
    /// The APIs that judges and the built-in agent can use.
    pub const ALL: [ModelApi; 3] =
        [ModelApi::AnthropicMessages, ModelApi::OpenAiResponses, ModelApi::OpenAiChat];

    /// The APIs that the gateway serves.
    pub const SERVED: [ModelApi; 4] =
        [ModelApi::AnthropicMessages, ModelApi::OpenAiResponses, ModelApi::OpenAiChat, ModelApi::Gemini];

    pub fn name(self) -> &'static str {
        match self {
            ModelApi::AnthropicMessages => "anthropic-messages",
            ModelApi::OpenAiResponses => "openai-responses",
            ModelApi::OpenAiChat => "openai-chat",
            ModelApi::Gemini => "gemini",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::SERVED.into_iter().find(|api| api.name() == name)
    }

    pub fn wire_format(self) -> &'static dyn WireFormat {
        match self {
            ModelApi::AnthropicMessages => &anthropic::AnthropicMessages,
            ModelApi::OpenAiResponses => &responses::OpenAiResponses,
            ModelApi::OpenAiChat => &chat::OpenAiChat,
            ModelApi::Gemini => &gemini::GeminiContent,
        }
    }
}

/// Both sides of one API. Reading is tolerant: unknown fields are ignored, because real programs send new ones
/// with every version.
pub trait WireFormat: Sync {
    /// Gives the path that is appended to the base URL.
    fn path(&self) -> &'static str;

    fn request_to_json(&self, request: &ModelRequest) -> Value;
    fn request_from_json(&self, json: &Value) -> Result<ModelRequest, MalformedMessage>;

    fn reply_to_json(&self, reply: &ModelReply) -> Value;
    fn reply_from_json(&self, json: &Value) -> Result<ModelReply, MalformedMessage>;

    /// Gives the reply as a stream, from its opening event to its end.
    fn reply_to_events(&self, reply: &ModelReply) -> Vec<SseEvent>;

    /// Reads the tokens in a `usage` field of this API. A missing count stays as it was: streams send the counts
    /// of one reply in several pieces.
    fn add_counts(&self, usage: &Value, so_far: &mut TokenUsage);

    /// Gives the body of a failed request.
    fn error_to_json(&self, kind: &str, message: &str) -> Value;
    /// Gives the event for a failure after the stream began.
    fn error_to_event(&self, reply: &ModelReply, kind: &str, message: &str) -> SseEvent;
}

/// The model and the token counts that one reply reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyCounts {
    pub model: Option<String>,
    /// The tokens; `None` until the API reports any.
    pub usage: Option<TokenUsage>,
}

impl ReplyCounts {
    /// Adds a whole reply, or one event of a stream. The APIs put the reply's own fields at the top, or below
    /// `message` or `response`.
    pub fn add_json(&mut self, api: ModelApi, json: &Value) {
        for part in [Some(json), json.get("message"), json.get("response")].into_iter().flatten() {
            let named = part.get("model").or_else(|| part.get("modelVersion"));
            if let Some(model) = named.and_then(Value::as_str).filter(|model| !model.is_empty()) {
                self.model = Some(model.to_owned());
            }
            let usage = part.get("usage").or_else(|| part.get("usageMetadata"));
            if let Some(usage) = usage.filter(|usage| usage.is_object()) {
                api.wire_format().add_counts(usage, self.usage.get_or_insert_default());
            }
        }
    }
}

/// A description of what could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedMessage(pub String);

impl ChatMessage {
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![ContentBlock::Text { text: text.into() }] }
    }
}

impl ModelRequest {
    /// Adds a block to the last message if it has the same role. OpenAI's APIs send a turn in pieces.
    fn push(&mut self, role: Role, block: ContentBlock) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.blocks.push(block),
            Some(_) | None => self.messages.push(ChatMessage { role, blocks: vec![block] }),
        }
    }

    fn add_system(&mut self, text: String) {
        match &mut self.system {
            Some(system) => *system = format!("{system}\n\n{text}"),
            None => self.system = Some(text),
        }
    }
}

impl ModelReply {
    /// Gives all text blocks, with a line break between them.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text { text } => Some(text.as_str()),
                ContentBlock::Image { .. }
                | ContentBlock::Thinking { .. }
                | ContentBlock::ToolUse { .. }
                | ContentBlock::ToolResult { .. } => None,
            })
            .collect();
        texts.join("\n")
    }

    fn calls_tools(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse { .. }))
    }
}

impl StopReason {
    /// Gives the name in the Anthropic API, which this program uses, too.
    pub fn name(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens => "max_tokens",
            StopReason::Refusal => "refusal",
            StopReason::Other(name) => name,
        }
    }

    pub fn from_name(name: &str) -> Self {
        match name {
            "end_turn" => StopReason::EndTurn,
            "tool_use" => StopReason::ToolUse,
            "max_tokens" => StopReason::MaxTokens,
            "refusal" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        }
    }
}

/// Gives a field's text, empty if it has none.
fn text_field<'v>(json: &'v Value, key: &str) -> &'v str {
    json.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Gives a field's items, none if it is not a list.
fn list_field<'v>(json: &'v Value, key: &str) -> &'v [Value] {
    json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn count_field(json: &Value, key: &str) -> u64 {
    json.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// Overwrites a count if the field has one.
fn update_count(json: &Value, key: &str, count: &mut u64) {
    if let Some(counted) = json.get(key).and_then(Value::as_u64) {
        *count = counted;
    }
}

fn limit_field(json: &Value, key: &str) -> Option<u32> {
    json.get(key).and_then(Value::as_u64).map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}

/// Gives the texts of content that is plain text, or parts of which some have text.
fn content_texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str().map(str::to_owned)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// Gives a picture as an address that contains it, as OpenAI's APIs take it.
fn picture_to_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Reads a picture from an address that contains it. `None` for an address of another kind.
fn picture_from_url(url: &str) -> Option<ContentBlock> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(ContentBlock::Image { media_type: media_type.to_owned(), data: data.to_owned() })
}

/// Reads a tool's input, which OpenAI sends as JSON in a text. The model's text need not be valid JSON.
fn input_from_text(arguments: &str) -> Value {
    match arguments.trim() {
        "" => Value::Object(serde_json::Map::new()),
        json => serde_json::from_str(json).unwrap_or_else(|_| Value::String(arguments.to_owned())),
    }
}

fn input_to_text(input: &Value) -> String {
    match input {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            input.to_string()
        }
    }
}

/// Splits a text into pieces as a model would stream it.
fn stream_pieces(text: &str) -> Vec<&str> {
    const LONGEST_PIECE: usize = 48;
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let end = rest.char_indices().nth(LONGEST_PIECE).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
