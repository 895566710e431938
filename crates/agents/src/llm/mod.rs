//! Model APIs on the wire.
//!
//! In: a neutral conversation, or what one API sends. Out: the other of the two; and a client.
//! Never: what a tool does, which answer is right.

mod anthropic;
mod chat;
mod client;
mod endpoint;
mod patience;
mod responses;
#[cfg(test)]
mod samples;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use client::{Client, LlmError, in_words};
pub use endpoint::{Credential, Endpoint, Secret};
pub use patience::{Again, Failed, Gate, Patience, Retry};

use practicum_core::model::Usage;

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub model: String,
    pub system: Option<String>,
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    /// The tool that must be called.
    pub tool_choice: Option<String>,
    /// `None` leaves it to the API, or to our default where the API insists.
    pub max_tokens: Option<u32>,
    pub temperature: Option<f64>,
    pub stream: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
    },
    /// Without its signature a thought cannot be sent back to the model, and is left out there.
    Thinking {
        text: String,
        signature: Option<String>,
    },
    /// The input is text only for OpenAI's custom tools, which take no JSON.
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

#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    pub id: String,
    pub model: String,
    pub blocks: Vec<Block>,
    pub stop: Stop,
    /// `input` is without what was read from or written to a cache.
    pub usage: Usage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
    /// As the API spells it.
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Api {
    AnthropicMessages,
    OpenAiResponses,
    OpenAiChat,
}

impl Api {
    pub const ALL: [Api; 3] = [Api::AnthropicMessages, Api::OpenAiResponses, Api::OpenAiChat];

    pub fn name(self) -> &'static str {
        match self {
            Api::AnthropicMessages => "anthropic-messages",
            Api::OpenAiResponses => "openai-responses",
            Api::OpenAiChat => "openai-chat",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    pub fn wire(self) -> &'static dyn Wire {
        match self {
            Api::AnthropicMessages => &anthropic::AnthropicMessages,
            Api::OpenAiResponses => &responses::OpenAiResponses,
            Api::OpenAiChat => &chat::OpenAiChat,
        }
    }
}

/// Both sides of one API. Reading is tolerant: what is unknown is left out, because the real
/// programs send new fields with every version.
pub trait Wire: Sync {
    /// What is appended to the base URL.
    fn path(&self) -> &'static str;

    fn request_to_json(&self, request: &Request) -> Value;
    fn request_from_json(&self, json: &Value) -> Result<Request, Malformed>;

    fn reply_to_json(&self, reply: &Reply) -> Value;
    fn reply_from_json(&self, json: &Value) -> Result<Reply, Malformed>;

    /// The reply as a stream, from its opening event to its end.
    fn reply_to_events(&self, reply: &Reply) -> Vec<SseEvent>;

    /// The tokens in a `usage` field of this API. What it leaves out stays as it was: streams
    /// tell the counts of one reply in several pieces.
    fn add_counts(&self, usage: &Value, so_far: &mut Usage);

    /// The body of a failed request.
    fn error_to_json(&self, kind: &str, message: &str) -> Value;
    /// A failure after the stream began.
    fn error_to_event(&self, reply: &Reply, kind: &str, message: &str) -> SseEvent;
}

/// One server-sent event. Chat Completions does not name its events, and ends with a word that
/// is no JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct SseEvent {
    pub name: Option<String>,
    pub data: Data,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Json(Value),
    Word(&'static str),
}

impl SseEvent {
    fn named(data: Value) -> Self {
        Self { name: Some(text(&data, "type").to_owned()), data: Data::Json(data) }
    }

    /// As it goes over the wire. JSON on one line never holds a line break.
    pub fn render(&self) -> String {
        let name = self.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
        match &self.data {
            Data::Json(json) => format!("{name}data: {json}\n\n"),
            Data::Word(word) => format!("{name}data: {word}\n\n"),
        }
    }
}

/// What one reply says about itself: who answered, and how much it took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    pub model: Option<String>,
    /// `None` until the API says anything about it.
    pub usage: Option<Usage>,
}

impl Counted {
    /// Takes in a whole reply, or one event of a stream. The APIs put the reply's own fields at
    /// the top, or below `message` or `response`.
    pub fn take_in(&mut self, api: Api, json: &Value) {
        for part in [Some(json), json.get("message"), json.get("response")].into_iter().flatten() {
            if let Some(model) = part.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
                self.model = Some(model.to_owned());
            }
            if let Some(usage) = part.get("usage").filter(|usage| usage.is_object()) {
                api.wire().add_counts(usage, self.usage.get_or_insert_default());
            }
        }
    }
}

/// What could not be understood, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Message {
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, blocks: vec![Block::Text { text: text.into() }] }
    }
}

impl Request {
    /// Adds to the last message if it is of the same role. OpenAI's APIs send a turn in pieces.
    fn push(&mut self, role: Role, block: Block) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.blocks.push(block),
            Some(_) | None => self.messages.push(Message { role, blocks: vec![block] }),
        }
    }

    fn add_system(&mut self, text: String) {
        match &mut self.system {
            Some(system) => *system = format!("{system}\n\n{text}"),
            None => self.system = Some(text),
        }
    }
}

impl Reply {
    /// All text blocks, a line break between them.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                Block::Thinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => None,
            })
            .collect();
        texts.join("\n")
    }

    fn calls_tools(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }))
    }
}

impl Stop {
    /// The name in the Anthropic API, which is also ours.
    pub fn name(&self) -> &str {
        match self {
            Stop::EndTurn => "end_turn",
            Stop::ToolUse => "tool_use",
            Stop::MaxTokens => "max_tokens",
            Stop::Refusal => "refusal",
            Stop::Other(name) => name,
        }
    }

    pub fn from_name(name: &str) -> Self {
        match name {
            "end_turn" => Stop::EndTurn,
            "tool_use" => Stop::ToolUse,
            "max_tokens" => Stop::MaxTokens,
            "refusal" => Stop::Refusal,
            other => Stop::Other(other.to_owned()),
        }
    }
}

/// A field's text, empty if it has none.
fn text<'v>(json: &'v Value, key: &str) -> &'v str {
    json.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A field's items, none if it is no list.
fn items<'v>(json: &'v Value, key: &str) -> &'v [Value] {
    json.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn count(json: &Value, key: &str) -> u64 {
    json.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// Overwrites a count where the field has one.
fn recount(json: &Value, key: &str, count: &mut u64) {
    if let Some(counted) = json.get(key).and_then(Value::as_u64) {
        *count = counted;
    }
}

fn limit(json: &Value, key: &str) -> Option<u32> {
    json.get(key).and_then(Value::as_u64).map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
}

/// Content is plain text, or parts of which some have text.
fn texts_of(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str().map(str::to_owned)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// OpenAI sends a tool's input as JSON in a text. What the model wrote need not be JSON.
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

/// Text in pieces as a model would stream it.
fn pieces(text: &str) -> Vec<&str> {
    const LONGEST: usize = 48;
    let mut rest = text;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let end = rest.char_indices().nth(LONGEST).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
