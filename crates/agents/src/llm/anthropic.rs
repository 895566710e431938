//! The Anthropic Messages API.

use serde_json::{Value, json};

use super::{
    ChatMessage, ContentBlock, MalformedMessage, ModelReply, ModelRequest, Role, SseEvent, StopReason,
    ToolDefinition, WireFormat, content_texts, count_field, limit_field, list_field, stream_pieces,
    text_field, update_count,
};
use practicum_core::model::TokenUsage;

/// The format of the Anthropic Messages API.
pub struct AnthropicMessages;

/// The default limit, because the API requires one.
const DEFAULT_MAX_TOKENS: u32 = 8192;

impl WireFormat for AnthropicMessages {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn request_to_json(&self, request: &ModelRequest) -> Value {
        let mut body = json!({
            "model": request.model,
            "max_tokens": request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            "messages": request.messages.iter().map(message_to_json).collect::<Vec<_>>(),
        });
        if let Some(system) = &request.system {
            body["system"] = json!(system);
        }
        if !request.tools.is_empty() {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "name": tool.name,
                        "description": tool.description,
                        "input_schema": tool.input_schema,
                    })
                })
                .collect();
        }
        if let Some(name) = &request.tool_choice {
            body["tool_choice"] = json!({"type": "tool", "name": name});
        }
        if let Some(temperature) = request.temperature {
            body["temperature"] = json!(temperature);
        }
        if request.stream {
            body["stream"] = json!(true);
        }
        body
    }

    fn request_from_json(&self, json: &Value) -> Result<ModelRequest, MalformedMessage> {
        if !json.get("messages").is_some_and(Value::is_array) {
            return Err(MalformedMessage("messages: a list of messages is required".to_owned()));
        }
        let mut request = ModelRequest {
            model: text_field(json, "model").to_owned(),
            system: None,
            messages: Vec::new(),
            tools: list_field(json, "tools").iter().filter_map(tool_from_json).collect(),
            tool_choice: json
                .get("tool_choice")
                .filter(|choice| text_field(choice, "type") == "tool")
                .map(|choice| text_field(choice, "name").to_owned()),
            max_tokens: limit_field(json, "max_tokens"),
            temperature: json.get("temperature").and_then(Value::as_f64),
            stream: json.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        for part in json.get("system").map(content_texts).unwrap_or_default() {
            request.add_system(part);
        }
        for message in list_field(json, "messages") {
            match text_field(message, "role") {
                "user" => request.messages.push(message_from_json(Role::User, message)),
                "assistant" => request.messages.push(message_from_json(Role::Assistant, message)),
                // Claude Code sends its environment in messages with a role of their own.
                "system" => {
                    for part in message.get("content").map(content_texts).unwrap_or_default() {
                        request.add_system(part);
                    }
                }
                role => return Err(MalformedMessage(format!("messages: unknown role {role:?}"))),
            }
        }
        Ok(request)
    }

    fn reply_to_json(&self, reply: &ModelReply) -> Value {
        json!({
            "id": reply.id,
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": reply.blocks.iter().map(block_to_json).collect::<Vec<_>>(),
            "stop_reason": reply.stop.name(),
            "stop_sequence": null,
            "usage": usage_to_json(reply.usage),
        })
    }

    fn reply_from_json(&self, json: &Value) -> Result<ModelReply, MalformedMessage> {
        if !json.get("content").is_some_and(Value::is_array) {
            return Err(MalformedMessage("the reply has no content".to_owned()));
        }
        let usage = json.get("usage").unwrap_or(&Value::Null);
        Ok(ModelReply {
            id: text_field(json, "id").to_owned(),
            model: text_field(json, "model").to_owned(),
            blocks: list_field(json, "content").iter().filter_map(block_from_json).collect(),
            stop: StopReason::from_name(text_field(json, "stop_reason")),
            usage: TokenUsage {
                input: count_field(usage, "input_tokens"),
                output: count_field(usage, "output_tokens"),
                cache_read: count_field(usage, "cache_read_input_tokens"),
                cache_write: count_field(usage, "cache_creation_input_tokens"),
            },
        })
    }

    fn reply_to_events(&self, reply: &ModelReply) -> Vec<SseEvent> {
        let mut opening = self.reply_to_json(reply);
        opening["content"] = json!([]);
        opening["stop_reason"] = Value::Null;
        opening["usage"]["output_tokens"] = json!(reply.usage.output.min(1));
        let mut events = vec![
            SseEvent::named_by_type(json!({"type": "message_start", "message": opening})),
            SseEvent::named_by_type(json!({"type": "ping"})),
        ];
        for (index, block) in reply.blocks.iter().enumerate() {
            let (start, deltas) = block_to_stream(block);
            events.push(SseEvent::named_by_type(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            ));
            events.extend(deltas.into_iter().map(|delta| {
                SseEvent::named_by_type(
                    json!({"type": "content_block_delta", "index": index, "delta": delta}),
                )
            }));
            events.push(SseEvent::named_by_type(json!({"type": "content_block_stop", "index": index})));
        }
        events.push(SseEvent::named_by_type(json!({
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop.name(), "stop_sequence": null},
            "usage": usage_to_json(reply.usage),
        })));
        events.push(SseEvent::named_by_type(json!({"type": "message_stop"})));
        events
    }

    fn add_counts(&self, usage: &Value, so_far: &mut TokenUsage) {
        update_count(usage, "input_tokens", &mut so_far.input);
        update_count(usage, "output_tokens", &mut so_far.output);
        update_count(usage, "cache_read_input_tokens", &mut so_far.cache_read);
        update_count(usage, "cache_creation_input_tokens", &mut so_far.cache_write);
    }

    fn error_to_json(&self, kind: &str, message: &str) -> Value {
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }

    fn error_to_event(&self, _reply: &ModelReply, kind: &str, message: &str) -> SseEvent {
        SseEvent::named_by_type(self.error_to_json(kind, message))
    }
}

fn message_to_json(message: &ChatMessage) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content: Vec<Value> =
        message.blocks.iter().filter(|block| can_be_sent(block)).map(block_to_json).collect();
    json!({"role": role, "content": content})
}

/// Says whether a block can be sent. The API refuses thoughts that it did not sign.
fn can_be_sent(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Thinking { signature, .. } => signature.is_some(),
        ContentBlock::Text { .. }
        | ContentBlock::Image { .. }
        | ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. } => true,
    }
}

fn message_from_json(role: Role, message: &Value) -> ChatMessage {
    let blocks = match message.get("content") {
        Some(Value::String(text)) => vec![ContentBlock::Text { text: text.clone() }],
        _ => list_field(message, "content").iter().filter_map(block_from_json).collect(),
    };
    ChatMessage { role, blocks }
}

fn block_to_json(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({"type": "text", "text": text}),
        ContentBlock::Image { media_type, data } => {
            json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
        ContentBlock::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or("")})
        }
        ContentBlock::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        ContentBlock::ToolResult { tool_use_id, content, is_error } => {
            json!({
                "type": "tool_result",
                "tool_use_id": tool_use_id,
                "content": content,
                "is_error": is_error,
            })
        }
    }
}

fn block_from_json(json: &Value) -> Option<ContentBlock> {
    match text_field(json, "type") {
        "text" => Some(ContentBlock::Text { text: text_field(json, "text").to_owned() }),
        "image" => {
            let source = json.get("source").filter(|source| text_field(source, "type") == "base64")?;
            Some(ContentBlock::Image {
                media_type: text_field(source, "media_type").to_owned(),
                data: text_field(source, "data").to_owned(),
            })
        }
        "thinking" => Some(ContentBlock::Thinking {
            text: text_field(json, "thinking").to_owned(),
            signature: Some(text_field(json, "signature")).filter(|s| !s.is_empty()).map(str::to_owned),
        }),
        "tool_use" => Some(ContentBlock::ToolUse {
            id: text_field(json, "id").to_owned(),
            name: text_field(json, "name").to_owned(),
            input: json.get("input").cloned().unwrap_or_else(|| json!({})),
        }),
        "tool_result" => Some(ContentBlock::ToolResult {
            tool_use_id: text_field(json, "tool_use_id").to_owned(),
            content: json.get("content").map(content_texts).unwrap_or_default().join("\n"),
            is_error: json.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }),
        _ => None,
    }
}

fn tool_from_json(json: &Value) -> Option<ToolDefinition> {
    let name = text_field(json, "name");
    (!name.is_empty()).then(|| ToolDefinition {
        name: name.to_owned(),
        description: text_field(json, "description").to_owned(),
        input_schema: json.get("input_schema").cloned().unwrap_or_else(|| json!({"type": "object"})),
    })
}

fn usage_to_json(usage: TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

/// Gives the opening of a block, and the deltas that fill it.
fn block_to_stream(block: &ContentBlock) -> (Value, Vec<Value>) {
    match block {
        ContentBlock::Text { text } => (
            json!({"type": "text", "text": ""}),
            stream_pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect(),
        ),
        ContentBlock::Thinking { text, signature } => {
            let mut deltas: Vec<Value> = stream_pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .collect();
            deltas.push(
                json!({"type": "signature_delta", "signature": signature.as_deref().unwrap_or_default()}),
            );
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        ContentBlock::ToolUse { id, name, input } => (
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            stream_pieces(&input.to_string())
                .into_iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
        ),
        // A model sends no tool results and no pictures; if a reply contains one, it is sent as it is.
        ContentBlock::Image { .. } | ContentBlock::ToolResult { .. } => (block_to_json(block), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ModelApi, samples};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_survive(request in samples::request(samples::ConversationShape::Blocks)) {
            samples::check_request(ModelApi::AnthropicMessages, request)?;
        }

        #[test]
        fn replies_survive(reply in samples::reply(samples::ConversationShape::Blocks)) {
            samples::check_reply(ModelApi::AnthropicMessages, reply)?;
        }

        #[test]
        fn a_stream_adds_up_to_its_reply(reply in samples::reply(samples::ConversationShape::Blocks)) {
            let mut content: Vec<Value> = Vec::new();
            for event in AnthropicMessages.reply_to_events(&reply) {
                let data = event.data;
                let index = data["index"].as_u64().unwrap_or(0) as usize;
                let delta = &data["delta"];
                match text_field(&data, "type") {
                    "content_block_start" => content.push(data["content_block"].clone()),
                    "content_block_delta" => {
                        let (from, to) = match text_field(delta, "type") {
                            "text_delta" => ("text", "text"),
                            "thinking_delta" => ("thinking", "thinking"),
                            "signature_delta" => ("signature", "signature"),
                            "input_json_delta" => ("partial_json", "json"),
                            other => panic!("{other}"),
                        };
                        let so_far = text_field(&content[index], to).to_owned() + text_field(delta, from);
                        content[index][to] = json!(so_far);
                    }
                    "content_block_stop" => {
                        if let Some(json) = content[index].get("json").cloned() {
                            content[index]["input"] =
                                serde_json::from_str(json.as_str().expect("text")).expect("JSON");
                        }
                    }
                    _ => {}
                }
            }
            let blocks: Vec<ContentBlock> = content.iter().filter_map(block_from_json).collect();
            prop_assert_eq!(blocks, reply.blocks);
        }
    }

    #[test]
    fn what_claude_code_sends_is_read() {
        let request = AnthropicMessages
            .request_from_json(&json!({
                "model": "claude-opus-5-5",
                "max_tokens": 128_000,
                "stream": true,
                "thinking": {"type": "adaptive", "display": "updates"},
                "metadata": {"user_id": "{}"},
                "system": [{"type": "text", "text": "billing"}, {"type": "text", "text": "You are an agent."}],
                "tools": [
                    {"name": "Skill", "description": "d", "input_schema": {"type": "object"}, "strict": true},
                    {"type": "web_search_20250305", "name": "web_search"},
                    {"type": "nameless"}
                ],
                "messages": [
                    {"role": "user", "content": [
                        {"type": "text", "text": "<system-reminder>x</system-reminder>"},
                        {"type": "image", "source": {}},
                        {"type": "text", "text": "greet", "cache_control": {"type": "ephemeral"}}
                    ]},
                    {"role": "system", "content": "# Environment", "output_config": {"effort": "medium"}},
                    {"role": "assistant", "content": [
                        {"type": "redacted_thinking", "data": "x"},
                        {"type": "tool_use", "id": "t1", "name": "Skill", "input": {"skill": "greeter"}}
                    ]},
                    {"role": "user", "content": [
                        {"type": "tool_result", "tool_use_id": "t1",
                         "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                        {"type": "text", "text": "Base directory"}
                    ]},
                    {"role": "user", "content": "plain"}
                ]
            }))
            .expect("readable");
        assert_eq!(request.system.as_deref(), Some("billing\n\nYou are an agent.\n\n# Environment"));
        assert_eq!(request.messages.len(), 4);
        assert_eq!(request.messages[0].blocks.len(), 2);
        assert_eq!(
            request.messages[2].blocks[0],
            ContentBlock::ToolResult { tool_use_id: "t1".into(), content: "a\nb".into(), is_error: false }
        );
        assert_eq!(request.messages[3], ChatMessage::user("plain"));
        assert_eq!(request.tools.len(), 2);
        assert!(request.stream);
    }

    #[test]
    fn what_is_no_request_is_named() {
        for (body, named) in [
            (json!({}), "messages"),
            (json!({"messages": "x"}), "messages"),
            (json!({"messages": [{"role": "robot", "content": "x"}]}), "robot"),
            (json!([]), "messages"),
        ] {
            let problem = AnthropicMessages.request_from_json(&body).expect_err("malformed");
            assert!(problem.0.contains(named), "{problem}");
        }
    }
}
