//! OpenAI's Chat Completions API, which many servers support.

use serde_json::{Value, json};

use super::{
    ChatMessage, ContentBlock, MalformedMessage, ModelReply, ModelRequest, Role, SseEvent, StopReason,
    ToolDefinition, WireFormat, content_texts, count_field, input_from_text, input_to_text, limit_field,
    list_field, picture_from_url, picture_to_url, stream_pieces, text_field,
};
use practicum_core::model::TokenUsage;

/// The format of the OpenAI Chat Completions API.
pub struct OpenAiChat;

impl WireFormat for OpenAiChat {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn request_to_json(&self, request: &ModelRequest) -> Value {
        let mut messages = Vec::new();
        if let Some(system) = &request.system {
            messages.push(json!({"role": "system", "content": system}));
        }
        for message in &request.messages {
            write_message(message, &mut messages);
        }
        let mut body = json!({"model": request.model, "messages": messages});
        if !request.tools.is_empty() {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "type": "function",
                        "function": {
                            "name": tool.name,
                            "description": tool.description,
                            "parameters": tool.input_schema,
                        },
                    })
                })
                .collect();
        }
        if let Some(name) = &request.tool_choice {
            body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
        }
        if let Some(limit) = request.max_tokens {
            body["max_completion_tokens"] = json!(limit);
        }
        if let Some(temperature) = request.temperature {
            body["temperature"] = json!(temperature);
        }
        if request.stream {
            body["stream"] = json!(true);
            body["stream_options"] = json!({"include_usage": true});
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
                .and_then(|choice| choice.get("function"))
                .map(|function| text_field(function, "name").to_owned()),
            max_tokens: limit_field(json, "max_completion_tokens")
                .or_else(|| limit_field(json, "max_tokens")),
            temperature: json.get("temperature").and_then(Value::as_f64),
            stream: json.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        for message in list_field(json, "messages") {
            read_message(message, &mut request)?;
        }
        Ok(request)
    }

    fn reply_to_json(&self, reply: &ModelReply) -> Value {
        let message = assistant_message(&reply.blocks, true);
        json!({
            "id": reply.id,
            "object": "chat.completion",
            "created": 0,
            "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(&reply.stop)}],
            "usage": usage_to_json(reply.usage),
        })
    }

    fn reply_from_json(&self, json: &Value) -> Result<ModelReply, MalformedMessage> {
        let choice = list_field(json, "choices").first();
        let Some(message) = choice.and_then(|choice| choice.get("message")) else {
            return Err(MalformedMessage("the reply has no choices".to_owned()));
        };
        let mut blocks = assistant_blocks(message);
        let refusal = message.get("refusal").and_then(Value::as_str);
        if let Some(refusal) = refusal {
            blocks.push(ContentBlock::Text { text: refusal.to_owned() });
        }
        let stop = match choice.map(|choice| text_field(choice, "finish_reason")).unwrap_or_default() {
            "stop" | "" if refusal.is_some() => StopReason::Refusal,
            "stop" | "" => StopReason::EndTurn,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        };
        Ok(ModelReply {
            id: text_field(json, "id").to_owned(),
            model: text_field(json, "model").to_owned(),
            blocks,
            stop,
            usage: json.get("usage").map(usage_from_json).unwrap_or_default(),
        })
    }

    fn reply_to_events(&self, reply: &ModelReply) -> Vec<SseEvent> {
        let mut deltas = vec![json!({"role": "assistant", "content": ""})];
        let mut calls = 0;
        for block in &reply.blocks {
            match block {
                ContentBlock::Text { text } => {
                    deltas.extend(stream_pieces(text).into_iter().map(|piece| json!({"content": piece})));
                }
                ContentBlock::Thinking { text, .. } => {
                    deltas.extend(
                        stream_pieces(text).into_iter().map(|piece| json!({"reasoning_content": piece})),
                    );
                }
                ContentBlock::ToolUse { id, name, input } => {
                    let function = json!({"name": name, "arguments": ""});
                    deltas.push(json!({"tool_calls": [
                        {"index": calls, "id": id, "type": "function", "function": function}
                    ]}));
                    deltas.extend(stream_pieces(&input_to_text(input)).into_iter().map(
                        |piece| json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}),
                    ));
                    calls += 1;
                }
                ContentBlock::Image { .. } | ContentBlock::ToolResult { .. } => {}
            }
        }
        let chunk = |delta: Value, finish: Value| {
            json!({
                "id": reply.id,
                "object": "chat.completion.chunk",
                "created": 0,
                "model": reply.model,
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            })
        };
        let mut events: Vec<SseEvent> =
            deltas.into_iter().map(|delta| SseEvent::unnamed(chunk(delta, Value::Null))).collect();
        let mut last = chunk(json!({}), json!(finish_reason(&reply.stop)));
        last["usage"] = usage_to_json(reply.usage);
        events.push(SseEvent::unnamed(last));
        events.push(SseEvent::unnamed("[DONE]".into()));
        events
    }

    fn add_counts(&self, usage: &Value, so_far: &mut TokenUsage) {
        *so_far = usage_from_json(usage);
    }

    fn error_to_json(&self, kind: &str, message: &str) -> Value {
        json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
    }

    fn error_to_event(&self, _reply: &ModelReply, kind: &str, message: &str) -> SseEvent {
        SseEvent::unnamed(self.error_to_json(kind, message))
    }
}

fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
        StopReason::Refusal => "content_filter",
        StopReason::Other(reason) => reason,
    }
}

/// Writes a message. It may become several, because each tool result is a message of its own in this API.
fn write_message(message: &ChatMessage, messages: &mut Vec<Value>) {
    match message.role {
        Role::Assistant => messages.push(assistant_message(&message.blocks, false)),
        Role::User => {
            let mut parts = Vec::new();
            for block in &message.blocks {
                match block {
                    ContentBlock::ToolResult { tool_use_id, content, is_error: _ } => messages
                        .push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": content})),
                    ContentBlock::Text { text } => parts.push(json!({"type": "text", "text": text})),
                    ContentBlock::Image { media_type, data } => {
                        let url = picture_to_url(media_type, data);
                        parts.push(json!({"type": "image_url", "image_url": {"url": url}}));
                    }
                    ContentBlock::Thinking { .. } | ContentBlock::ToolUse { .. } => {}
                }
            }
            match parts.as_slice() {
                [] => {}
                [one] if one.get("text").is_some() => {
                    messages.push(json!({"role": "user", "content": one["text"]}));
                }
                _ => messages.push(json!({"role": "user", "content": parts})),
            }
        }
    }
}

/// Writes a message of the model. Thoughts are not part of the API's requests, and only of some servers' replies.
fn assistant_message(blocks: &[ContentBlock], with_thoughts: bool) -> Value {
    let mut texts = Vec::new();
    let mut thoughts = String::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text { text } => texts.push(text.as_str()),
            ContentBlock::Thinking { text, .. } => thoughts.push_str(text),
            ContentBlock::ToolUse { id, name, input } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": input_to_text(input)},
            })),
            ContentBlock::Image { .. } | ContentBlock::ToolResult { .. } => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": texts_to_content(&texts)});
    if with_thoughts && !thoughts.is_empty() {
        message["reasoning_content"] = json!(thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    message
}

fn texts_to_content(texts: &[&str]) -> Value {
    match texts {
        [] => Value::Null,
        [one] => json!(one),
        several => several.iter().map(|text| json!({"type": "text", "text": text})).collect(),
    }
}

fn read_message(message: &Value, request: &mut ModelRequest) -> Result<(), MalformedMessage> {
    let texts = message.get("content").map(content_texts).unwrap_or_default();
    match text_field(message, "role") {
        "system" | "developer" => texts.into_iter().for_each(|part| request.add_system(part)),
        "user" => match message.get("content") {
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(user_part).for_each(|block| request.push(Role::User, block));
            }
            _ => texts.into_iter().for_each(|text| request.push(Role::User, ContentBlock::Text { text })),
        },
        "assistant" => {
            for block in assistant_blocks(message) {
                request.push(Role::Assistant, block);
            }
        }
        "tool" => request.push(
            Role::User,
            ContentBlock::ToolResult {
                tool_use_id: text_field(message, "tool_call_id").to_owned(),
                content: texts.join("\n"),
                is_error: false,
            },
        ),
        role => return Err(MalformedMessage(format!("messages: unknown role {role:?}"))),
    }
    Ok(())
}

/// Reads a part of a user's message: a text, or a picture.
fn user_part(part: &Value) -> Option<ContentBlock> {
    match part.get("image_url") {
        Some(image) => picture_from_url(text_field(image, "url")),
        None => Some(ContentBlock::Text { text: part.get("text")?.as_str()?.to_owned() }),
    }
}

fn assistant_blocks(message: &Value) -> Vec<ContentBlock> {
    let mut blocks = Vec::new();
    let thoughts = ["reasoning_content", "reasoning"].into_iter().map(|key| text_field(message, key));
    if let Some(thought) = thoughts.into_iter().find(|thought| !thought.is_empty()) {
        blocks.push(ContentBlock::Thinking { text: thought.to_owned(), signature: None });
    }
    let texts = message.get("content").map(content_texts).unwrap_or_default();
    blocks.extend(texts.into_iter().filter(|text| !text.is_empty()).map(|text| ContentBlock::Text { text }));
    for call in list_field(message, "tool_calls") {
        let function = call.get("function").unwrap_or(&Value::Null);
        blocks.push(ContentBlock::ToolUse {
            id: text_field(call, "id").to_owned(),
            name: text_field(function, "name").to_owned(),
            input: input_from_text(text_field(function, "arguments")),
        });
    }
    blocks
}

fn tool_from_json(json: &Value) -> Option<ToolDefinition> {
    let function = json.get("function")?;
    Some(ToolDefinition {
        name: text_field(function, "name").to_owned(),
        description: text_field(function, "description").to_owned(),
        input_schema: function.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object"})),
    })
}

/// Writes token counts. The API counts cached tokens as input; `TokenUsage` does not.
fn usage_to_json(usage: TokenUsage) -> Value {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    json!({
        "prompt_tokens": input,
        "completion_tokens": usage.output,
        "total_tokens": input.saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    })
}

fn usage_from_json(json: &Value) -> TokenUsage {
    let cached = json.get("prompt_tokens_details").map_or(0, |details| count_field(details, "cached_tokens"));
    TokenUsage {
        input: count_field(json, "prompt_tokens").saturating_sub(cached),
        output: count_field(json, "completion_tokens"),
        cache_read: cached,
        cache_write: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ModelApi, samples};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_survive(request in samples::request(samples::ConversationShape::Chat)) {
            samples::check_request(ModelApi::OpenAiChat, request)?;
        }

        #[test]
        fn replies_survive(reply in samples::reply(samples::ConversationShape::Chat)) {
            samples::check_reply(ModelApi::OpenAiChat, reply)?;
        }
    }

    #[test]
    fn what_a_client_sends_is_read() {
        let request = OpenAiChat
            .request_from_json(&json!({
                "model": "m", "max_tokens": 5, "stream": false,
                "messages": [
                    {"role": "developer", "content": "be brief"},
                    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "not json"}},
                        {"id": "d", "type": "function", "function": {"name": "g", "arguments": ""}}
                    ]},
                    {"role": "tool", "tool_call_id": "c", "content": "r"},
                    {"role": "tool", "tool_call_id": "d", "content": "s"},
                    {"role": "user", "content": "b"}
                ]
            }))
            .expect("readable");
        assert_eq!(request.max_tokens, Some(5));
        assert_eq!(request.messages.len(), 3);
        assert_eq!(
            request.messages[1].blocks,
            [
                ContentBlock::ToolUse { id: "c".into(), name: "f".into(), input: json!("not json") },
                ContentBlock::ToolUse { id: "d".into(), name: "g".into(), input: json!({}) },
            ]
        );
        assert_eq!(request.messages[2].blocks.len(), 3);
    }

    #[test]
    fn a_stream_ends_with_the_word() {
        let reply = ModelReply {
            id: "r".into(),
            model: "m".into(),
            blocks: vec![ContentBlock::Text { text: "hi".into() }],
            stop: StopReason::EndTurn,
            usage: TokenUsage::default(),
        };
        let stream: String = OpenAiChat.reply_to_events(&reply).iter().map(SseEvent::render).collect();
        assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
        assert!(!stream.contains("event:"), "{stream}");
    }
}
