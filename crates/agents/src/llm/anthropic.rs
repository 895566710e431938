//! The Anthropic Messages API.

use serde_json::{Value, json};

use super::{
    Block, Malformed, Message, Reply, Request, Role, SseEvent, Stop, Tool, Wire, count, items, limit, pieces,
    recount, text, texts_of,
};
use practicum_core::model::Usage;

pub struct AnthropicMessages;

/// The API insists on a limit.
const DEFAULT_MAX_TOKENS: u32 = 8192;

impl Wire for AnthropicMessages {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn request_to_json(&self, request: &Request) -> Value {
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

    fn request_from_json(&self, json: &Value) -> Result<Request, Malformed> {
        if !json.get("messages").is_some_and(Value::is_array) {
            return Err(Malformed("messages: a list of messages is required".to_owned()));
        }
        let mut request = Request {
            model: text(json, "model").to_owned(),
            system: None,
            messages: Vec::new(),
            tools: items(json, "tools").iter().filter_map(tool_from_json).collect(),
            tool_choice: json
                .get("tool_choice")
                .filter(|choice| text(choice, "type") == "tool")
                .map(|choice| text(choice, "name").to_owned()),
            max_tokens: limit(json, "max_tokens"),
            temperature: json.get("temperature").and_then(Value::as_f64),
            stream: json.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        for part in json.get("system").map(texts_of).unwrap_or_default() {
            request.add_system(part);
        }
        for message in items(json, "messages") {
            match text(message, "role") {
                "user" => request.messages.push(message_from_json(Role::User, message)),
                "assistant" => request.messages.push(message_from_json(Role::Assistant, message)),
                // Claude Code puts its environment into messages of their own role.
                "system" => {
                    for part in message.get("content").map(texts_of).unwrap_or_default() {
                        request.add_system(part);
                    }
                }
                role => return Err(Malformed(format!("messages: unknown role {role:?}"))),
            }
        }
        Ok(request)
    }

    fn reply_to_json(&self, reply: &Reply) -> Value {
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

    fn reply_from_json(&self, json: &Value) -> Result<Reply, Malformed> {
        if !json.get("content").is_some_and(Value::is_array) {
            return Err(Malformed("the reply has no content".to_owned()));
        }
        let usage = json.get("usage").unwrap_or(&Value::Null);
        Ok(Reply {
            id: text(json, "id").to_owned(),
            model: text(json, "model").to_owned(),
            blocks: items(json, "content").iter().filter_map(block_from_json).collect(),
            stop: Stop::from_name(text(json, "stop_reason")),
            usage: Usage {
                input: count(usage, "input_tokens"),
                output: count(usage, "output_tokens"),
                cache_read: count(usage, "cache_read_input_tokens"),
                cache_write: count(usage, "cache_creation_input_tokens"),
            },
        })
    }

    fn reply_to_events(&self, reply: &Reply) -> Vec<SseEvent> {
        let mut opening = self.reply_to_json(reply);
        opening["content"] = json!([]);
        opening["stop_reason"] = Value::Null;
        opening["usage"]["output_tokens"] = json!(reply.usage.output.min(1));
        let mut events = vec![
            SseEvent::named(json!({"type": "message_start", "message": opening})),
            SseEvent::named(json!({"type": "ping"})),
        ];
        for (index, block) in reply.blocks.iter().enumerate() {
            let (start, deltas) = block_to_stream(block);
            events.push(SseEvent::named(
                json!({"type": "content_block_start", "index": index, "content_block": start}),
            ));
            events.extend(deltas.into_iter().map(|delta| {
                SseEvent::named(json!({"type": "content_block_delta", "index": index, "delta": delta}))
            }));
            events.push(SseEvent::named(json!({"type": "content_block_stop", "index": index})));
        }
        events.push(SseEvent::named(json!({
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop.name(), "stop_sequence": null},
            "usage": usage_to_json(reply.usage),
        })));
        events.push(SseEvent::named(json!({"type": "message_stop"})));
        events
    }

    fn add_counts(&self, usage: &Value, so_far: &mut Usage) {
        recount(usage, "input_tokens", &mut so_far.input);
        recount(usage, "output_tokens", &mut so_far.output);
        recount(usage, "cache_read_input_tokens", &mut so_far.cache_read);
        recount(usage, "cache_creation_input_tokens", &mut so_far.cache_write);
    }

    fn error_to_json(&self, kind: &str, message: &str) -> Value {
        json!({"type": "error", "error": {"type": kind, "message": message}})
    }

    fn error_to_event(&self, _reply: &Reply, kind: &str, message: &str) -> SseEvent {
        SseEvent::named(self.error_to_json(kind, message))
    }
}

fn message_to_json(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content: Vec<Value> =
        message.blocks.iter().filter(|block| can_be_sent(block)).map(block_to_json).collect();
    json!({"role": role, "content": content})
}

/// The API refuses thoughts that it did not sign.
fn can_be_sent(block: &Block) -> bool {
    match block {
        Block::Thinking { signature, .. } => signature.is_some(),
        Block::Text { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => true,
    }
}

fn message_from_json(role: Role, message: &Value) -> Message {
    let blocks = match message.get("content") {
        Some(Value::String(text)) => vec![Block::Text { text: text.clone() }],
        _ => items(message, "content").iter().filter_map(block_from_json).collect(),
    };
    Message { role, blocks }
}

fn block_to_json(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": text}),
        Block::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature.as_deref().unwrap_or("")})
        }
        Block::ToolUse { id, name, input } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Block::ToolResult { tool_use_id, content, is_error } => {
            json!({
                "type": "tool_result",
                "tool_use_id": tool_use_id,
                "content": content,
                "is_error": is_error,
            })
        }
    }
}

fn block_from_json(json: &Value) -> Option<Block> {
    match text(json, "type") {
        "text" => Some(Block::Text { text: text(json, "text").to_owned() }),
        "thinking" => Some(Block::Thinking {
            text: text(json, "thinking").to_owned(),
            signature: Some(text(json, "signature")).filter(|s| !s.is_empty()).map(str::to_owned),
        }),
        "tool_use" => Some(Block::ToolUse {
            id: text(json, "id").to_owned(),
            name: text(json, "name").to_owned(),
            input: json.get("input").cloned().unwrap_or_else(|| json!({})),
        }),
        "tool_result" => Some(Block::ToolResult {
            tool_use_id: text(json, "tool_use_id").to_owned(),
            content: json.get("content").map(texts_of).unwrap_or_default().join("\n"),
            is_error: json.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }),
        _ => None,
    }
}

fn tool_from_json(json: &Value) -> Option<Tool> {
    let name = text(json, "name");
    (!name.is_empty()).then(|| Tool {
        name: name.to_owned(),
        description: text(json, "description").to_owned(),
        input_schema: json.get("input_schema").cloned().unwrap_or_else(|| json!({"type": "object"})),
    })
}

fn usage_to_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

/// A block as it is opened, and the deltas that fill it.
fn block_to_stream(block: &Block) -> (Value, Vec<Value>) {
    match block {
        Block::Text { text } => (
            json!({"type": "text", "text": ""}),
            pieces(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect(),
        ),
        Block::Thinking { text, signature } => {
            let mut deltas: Vec<Value> = pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .collect();
            deltas.push(
                json!({"type": "signature_delta", "signature": signature.as_deref().unwrap_or_default()}),
            );
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        Block::ToolUse { id, name, input } => (
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
            pieces(&input.to_string())
                .into_iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect(),
        ),
        // A model gives no results; whoever put one into a reply sees it as it is.
        Block::ToolResult { .. } => (block_to_json(block), Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Api, samples};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_survive(request in samples::request(samples::Shape::Blocks)) {
            samples::check_request(Api::AnthropicMessages, request)?;
        }

        #[test]
        fn replies_survive(reply in samples::reply(samples::Shape::Blocks)) {
            samples::check_reply(Api::AnthropicMessages, reply)?;
        }

        #[test]
        fn a_stream_adds_up_to_its_reply(reply in samples::reply(samples::Shape::Blocks)) {
            let mut content: Vec<Value> = Vec::new();
            for event in AnthropicMessages.reply_to_events(&reply) {
                let super::super::Data::Json(data) = event.data else { panic!("only JSON") };
                let index = data["index"].as_u64().unwrap_or(0) as usize;
                let delta = &data["delta"];
                match text(&data, "type") {
                    "content_block_start" => content.push(data["content_block"].clone()),
                    "content_block_delta" => {
                        let (from, to) = match text(delta, "type") {
                            "text_delta" => ("text", "text"),
                            "thinking_delta" => ("thinking", "thinking"),
                            "signature_delta" => ("signature", "signature"),
                            "input_json_delta" => ("partial_json", "json"),
                            other => panic!("{other}"),
                        };
                        let so_far = text(&content[index], to).to_owned() + text(delta, from);
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
            let blocks: Vec<Block> = content.iter().filter_map(block_from_json).collect();
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
            Block::ToolResult { tool_use_id: "t1".into(), content: "a\nb".into(), is_error: false }
        );
        assert_eq!(request.messages[3], Message::user("plain"));
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
