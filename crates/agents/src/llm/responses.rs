//! OpenAI's Responses API.

use serde_json::{Value, json};

use super::{
    ContentBlock, MalformedMessage, ModelReply, ModelRequest, Role, SseEvent, StopReason, ToolDefinition,
    WireFormat, content_texts, count_field, input_from_text, input_to_text, limit_field, list_field,
    picture_from_url, picture_to_url, stream_pieces, text_field,
};
use practicum_core::model::TokenUsage;

/// The format of the OpenAI Responses API.
pub struct OpenAiResponses;

impl WireFormat for OpenAiResponses {
    fn path(&self) -> &'static str {
        "/responses"
    }

    fn request_to_json(&self, request: &ModelRequest) -> Value {
        let input: Vec<Value> = request
            .messages
            .iter()
            .flat_map(|message| message.blocks.iter().filter_map(|block| block_to_item(message.role, block)))
            .collect();
        let mut body = json!({"model": request.model, "input": input, "store": false});
        if let Some(system) = &request.system {
            body["instructions"] = json!(system);
        }
        if !request.tools.is_empty() {
            body["tools"] = request
                .tools
                .iter()
                .map(|tool| {
                    json!({
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.input_schema,
                        "strict": false,
                    })
                })
                .collect();
        }
        if let Some(name) = &request.tool_choice {
            body["tool_choice"] = json!({"type": "function", "name": name});
        }
        if let Some(limit) = request.max_tokens {
            body["max_output_tokens"] = json!(limit);
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
        let mut request = ModelRequest {
            model: text_field(json, "model").to_owned(),
            system: None,
            messages: Vec::new(),
            tools: Vec::new(),
            tool_choice: json
                .get("tool_choice")
                .filter(|choice| text_field(choice, "type") == "function")
                .map(|choice| text_field(choice, "name").to_owned()),
            max_tokens: limit_field(json, "max_output_tokens"),
            temperature: json.get("temperature").and_then(Value::as_f64),
            stream: json.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        if let Some(instructions) = json.get("instructions").and_then(Value::as_str) {
            request.add_system(instructions.to_owned());
        }
        collect_tools(list_field(json, "tools"), &mut request.tools);
        match json.get("input") {
            Some(Value::String(prompt)) => {
                request.push(Role::User, ContentBlock::Text { text: prompt.clone() })
            }
            Some(Value::Array(input)) => {
                for item in input {
                    read_item(item, &mut request);
                }
            }
            _ => return Err(MalformedMessage("input: text or a list of items is required".to_owned())),
        }
        Ok(request)
    }

    fn reply_to_json(&self, reply: &ModelReply) -> Value {
        let output: Vec<Value> =
            reply.blocks.iter().enumerate().filter_map(|(at, block)| output_item(reply, at, block)).collect();
        let (status, details) = match &reply.stop {
            StopReason::EndTurn | StopReason::ToolUse => ("completed", Value::Null),
            StopReason::MaxTokens => ("incomplete", json!({"reason": "max_output_tokens"})),
            StopReason::Refusal => ("incomplete", json!({"reason": "content_filter"})),
            StopReason::Other(reason) => ("incomplete", json!({"reason": reason})),
        };
        json!({
            "id": reply.id,
            "object": "response",
            // Some clients refuse a reply without it.
            "created_at": 0,
            "status": status,
            "model": reply.model,
            "output": output,
            "incomplete_details": details,
            "error": null,
            "usage": usage_to_json(reply.usage),
        })
    }

    fn reply_from_json(&self, json: &Value) -> Result<ModelReply, MalformedMessage> {
        if text_field(json, "status") == "failed" {
            let why = json.get("error").map(|error| text_field(error, "message")).unwrap_or_default();
            return Err(MalformedMessage(format!("the response failed: {why}")));
        }
        if !json.get("output").is_some_and(Value::is_array) {
            return Err(MalformedMessage("the reply has no output".to_owned()));
        }
        let mut reply = ModelReply {
            id: text_field(json, "id").to_owned(),
            model: text_field(json, "model").to_owned(),
            blocks: Vec::new(),
            stop: StopReason::EndTurn,
            usage: json.get("usage").map(usage_from_json).unwrap_or_default(),
        };
        let mut refused = false;
        for item in list_field(json, "output") {
            for part in
                list_field(item, "content").iter().filter(|part| text_field(part, "type") == "refusal")
            {
                refused = true;
                reply.blocks.push(ContentBlock::Text { text: text_field(part, "refusal").to_owned() });
            }
            reply.blocks.extend(item_to_blocks(item).into_iter().map(|(_, block)| block));
        }
        let incomplete =
            json.get("incomplete_details").map(|details| text_field(details, "reason")).unwrap_or("");
        reply.stop = match incomplete {
            "max_output_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            "" if refused => StopReason::Refusal,
            "" if reply.calls_tools() => StopReason::ToolUse,
            "" => StopReason::EndTurn,
            other => StopReason::Other(other.to_owned()),
        };
        Ok(reply)
    }

    fn reply_to_events(&self, reply: &ModelReply) -> Vec<SseEvent> {
        let complete = self.reply_to_json(reply);
        let mut begun = complete.clone();
        begun["status"] = json!("in_progress");
        begun["output"] = json!([]);
        begun["incomplete_details"] = Value::Null;
        begun["usage"] = Value::Null;
        let mut data = vec![
            json!({"type": "response.created", "response": begun}),
            json!({"type": "response.in_progress", "response": begun}),
        ];
        for (index, item) in list_field(&complete, "output").iter().enumerate() {
            add_item_events(index, item, &mut data);
        }
        let last = match text_field(&complete, "status") {
            "incomplete" => "response.incomplete",
            _ => "response.completed",
        };
        data.push(json!({"type": last, "response": complete}));
        data.into_iter()
            .enumerate()
            .map(|(number, mut event)| {
                event["sequence_number"] = json!(number);
                SseEvent::named_by_type(event)
            })
            .collect()
    }

    fn add_counts(&self, usage: &Value, so_far: &mut TokenUsage) {
        *so_far = usage_from_json(usage);
    }

    fn error_to_json(&self, kind: &str, message: &str) -> Value {
        json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
    }

    fn error_to_event(&self, reply: &ModelReply, kind: &str, message: &str) -> SseEvent {
        let mut failed = self.reply_to_json(reply);
        failed["status"] = json!("failed");
        failed["output"] = json!([]);
        failed["error"] = json!({"code": kind, "message": message});
        SseEvent::named_by_type(json!({"type": "response.failed", "response": failed}))
    }
}

fn block_to_item(role: Role, block: &ContentBlock) -> Option<Value> {
    match block {
        ContentBlock::Text { text } => {
            let (role, kind) = match role {
                Role::User => ("user", "input_text"),
                Role::Assistant => ("assistant", "output_text"),
            };
            Some(json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}))
        }
        ContentBlock::Image { media_type, data } => {
            let image = json!({"type": "input_image", "image_url": picture_to_url(media_type, data)});
            Some(json!({"type": "message", "role": "user", "content": [image]}))
        }
        // The API refuses thoughts that it did not encrypt itself.
        ContentBlock::Thinking { text, signature } => signature.as_ref().map(|signature| {
            json!({
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": text}],
                "encrypted_content": signature,
            })
        }),
        ContentBlock::ToolUse { id, name, input } => Some(call_item(id, name, input)),
        ContentBlock::ToolResult { tool_use_id, content, is_error: _ } => {
            Some(json!({"type": "function_call_output", "call_id": tool_use_id, "output": content}))
        }
    }
}

/// Writes a tool call. A tool whose input is plain text is one of the API's custom tools. A tool in a namespace is
/// called `namespace.name` in this program; names in the API itself have no dot.
fn call_item(id: &str, name: &str, input: &Value) -> Value {
    let (namespace, name) = match name.split_once('.') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, name),
    };
    let mut item = match input {
        Value::String(input) => {
            json!({"type": "custom_tool_call", "call_id": id, "name": name, "input": input})
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": input_to_text(input)})
        }
    };
    if let Some(namespace) = namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

fn output_item(reply: &ModelReply, at: usize, block: &ContentBlock) -> Option<Value> {
    let mut item = match block {
        ContentBlock::Text { text } => json!({
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        ContentBlock::Thinking { text, signature } => json!({
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": signature,
        }),
        ContentBlock::ToolUse { id, name, input } => call_item(id, name, input),
        ContentBlock::Image { .. } | ContentBlock::ToolResult { .. } => return None,
    };
    item["id"] = json!(format!("item_{}_{at}", reply.id));
    item["status"] = json!("completed");
    Some(item)
}

fn read_item(item: &Value, request: &mut ModelRequest) {
    // An item without a type is a message in its short form.
    let is_message = matches!(text_field(item, "type"), "message" | "");
    if is_message && matches!(text_field(item, "role"), "system" | "developer") {
        for part in item.get("content").map(content_texts).unwrap_or_default() {
            request.add_system(part);
        }
        return;
    }
    // Codex sends its tools in the conversation.
    if text_field(item, "type") == "additional_tools" {
        collect_tools(list_field(item, "tools"), &mut request.tools);
        return;
    }
    for (role, block) in item_to_blocks(item) {
        request.push(role, block);
    }
}

fn item_to_blocks(item: &Value) -> Vec<(Role, ContentBlock)> {
    match text_field(item, "type") {
        "message" | "" => {
            let role = match text_field(item, "role") {
                "assistant" => Role::Assistant,
                _ => Role::User,
            };
            match item.get("content") {
                Some(Value::Array(parts)) => {
                    parts.iter().filter_map(message_part).map(|block| (role, block)).collect()
                }
                Some(content) => {
                    let texts = content_texts(content).into_iter();
                    texts.map(|text| (role, ContentBlock::Text { text })).collect()
                }
                None => Vec::new(),
            }
        }
        "reasoning" => {
            let thought = item.get("summary").map(content_texts).unwrap_or_default().join("\n");
            let signature = item.get("encrypted_content").and_then(Value::as_str).map(str::to_owned);
            vec![(Role::Assistant, ContentBlock::Thinking { text: thought, signature })]
        }
        "agent_message" => {
            vec![(Role::User, ContentBlock::Text { text: agent_message_text(list_field(item, "content")) })]
        }
        "function_call" => {
            vec![(Role::Assistant, tool_use_block(item, input_from_text(text_field(item, "arguments"))))]
        }
        "custom_tool_call" => {
            vec![(Role::Assistant, tool_use_block(item, Value::String(text_field(item, "input").to_owned())))]
        }
        "function_call_output" | "custom_tool_call_output" => vec![(
            Role::User,
            ContentBlock::ToolResult {
                tool_use_id: text_field(item, "call_id").to_owned(),
                content: item.get("output").map(content_texts).unwrap_or_default().join("\n"),
                is_error: false,
            },
        )],
        _ => Vec::new(),
    }
}

/// Reads a part of a message: a text, or a picture.
fn message_part(part: &Value) -> Option<ContentBlock> {
    match text_field(part, "type") {
        "input_image" => picture_from_url(text_field(part, "image_url")),
        _ => Some(ContentBlock::Text { text: part.get("text")?.as_str()?.to_owned() }),
    }
}

/// Reads the message of one agent of Codex to another. The field is called encrypted, and is encrypted if the API
/// wrote it; the text of a script comes back as it was.
fn agent_message_text(parts: &[Value]) -> String {
    let texts = parts.iter().map(|part| match text_field(part, "type") {
        "encrypted_content" => text_field(part, "encrypted_content"),
        _ => text_field(part, "text"),
    });
    texts.collect()
}

fn tool_use_block(item: &Value, input: Value) -> ContentBlock {
    let name = text_field(item, "name");
    let name = match text_field(item, "namespace") {
        "" => name.to_owned(),
        namespace => format!("{namespace}.{name}"),
    };
    ContentBlock::ToolUse { id: text_field(item, "call_id").to_owned(), name, input }
}

/// Collects the tools of a list, of which some are in namespaces. The parser limits how deep JSON nests, so the
/// recursion is limited, too.
fn collect_tools(list: &[Value], tools: &mut Vec<ToolDefinition>) {
    for tool in list {
        match text_field(tool, "type") {
            "namespace" => collect_tools(list_field(tool, "tools"), tools),
            "function" | "custom" => tools.push(ToolDefinition {
                name: text_field(tool, "name").to_owned(),
                description: text_field(tool, "description").to_owned(),
                input_schema: tool.get("parameters").cloned().unwrap_or_else(|| json!({"type": "string"})),
            }),
            _ => {}
        }
    }
}

/// Writes token counts. The API counts cached tokens as input; `TokenUsage` does not.
fn usage_to_json(usage: TokenUsage) -> Value {
    let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input.saturating_add(usage.output),
    })
}

fn usage_from_json(json: &Value) -> TokenUsage {
    let cached = json.get("input_tokens_details").map_or(0, |details| count_field(details, "cached_tokens"));
    TokenUsage {
        input: count_field(json, "input_tokens").saturating_sub(cached),
        output: count_field(json, "output_tokens"),
        cache_read: cached,
        cache_write: 0,
    }
}

fn add_item_events(index: usize, item: &Value, data: &mut Vec<Value>) {
    let id = &item["id"];
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let mut inside = Vec::new();
    match text_field(item, "type") {
        "message" => {
            begun["content"] = json!([]);
            let whole = content_texts(&item["content"]).concat();
            let part = json!({"type": "output_text", "text": whole, "annotations": []});
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            inside.push(json!({"type": "response.content_part.added", "content_index": 0, "part": empty}));
            inside.extend(stream_pieces(&whole).into_iter().map(
                |piece| json!({"type": "response.output_text.delta", "content_index": 0, "delta": piece}),
            ));
            inside.push(json!({"type": "response.output_text.done", "content_index": 0, "text": whole}));
            inside.push(json!({"type": "response.content_part.done", "content_index": 0, "part": part}));
        }
        "reasoning" => {
            begun["summary"] = json!([]);
            let whole = content_texts(&item["summary"]).concat();
            let part = json!({"type": "summary_text", "text": whole});
            let empty = json!({"type": "summary_text", "text": ""});
            inside.push(
                json!({"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": empty}),
            );
            inside.extend(stream_pieces(&whole).into_iter().map(|piece| {
                json!({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece})
            }));
            inside.push(
                json!({"type": "response.reasoning_summary_text.done", "summary_index": 0, "text": whole}),
            );
            inside.push(
                json!({"type": "response.reasoning_summary_part.done", "summary_index": 0, "part": part}),
            );
        }
        "function_call" => {
            begun["arguments"] = json!("");
            let whole = text_field(item, "arguments");
            inside.extend(
                stream_pieces(whole)
                    .into_iter()
                    .map(|piece| json!({"type": "response.function_call_arguments.delta", "delta": piece})),
            );
            inside.push(json!({"type": "response.function_call_arguments.done", "arguments": whole}));
        }
        "custom_tool_call" => {
            begun["input"] = json!("");
            let whole = text_field(item, "input");
            inside.extend(
                stream_pieces(whole)
                    .into_iter()
                    .map(|piece| json!({"type": "response.custom_tool_call_input.delta", "delta": piece})),
            );
            inside.push(json!({"type": "response.custom_tool_call_input.done", "input": whole}));
        }
        _ => {}
    }
    data.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
    data.extend(inside.into_iter().map(|mut event| {
        event["item_id"] = id.clone();
        event["output_index"] = json!(index);
        event
    }));
    data.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
}

#[cfg(test)]
mod tests {
    use super::super::{ModelApi, samples};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn requests_survive(request in samples::request(samples::ConversationShape::Items)) {
            samples::check_request(ModelApi::OpenAiResponses, request)?;
        }

        #[test]
        fn replies_survive(reply in samples::reply(samples::ConversationShape::Items)) {
            samples::check_reply(ModelApi::OpenAiResponses, reply)?;
        }
    }

    #[test]
    fn what_codex_sends_is_read() {
        let request = OpenAiResponses
            .request_from_json(&json!({
                "model": "gpt-6.1-sol", "stream": true, "store": false, "include": ["x"], "tool_choice": "auto",
                "input": [
                    {"type": "additional_tools", "role": "developer", "tools": [
                        {"type": "namespace", "name": "functions", "tools": [
                            {"type": "custom", "name": "exec", "description": "d"},
                            {"type": "function", "name": "wait", "parameters": {"type": "object"}}
                        ]}
                    ]},
                    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are."}]},
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<env/>"}]},
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "greet"}]},
                    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "On it."}]},
                    {"type": "custom_tool_call", "call_id": "c1", "name": "exec", "input": "text(1)"},
                    {"type": "custom_tool_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "1"}]},
                    {"type": "web_search_call"}
                ]
            }))
            .expect("readable");
        assert_eq!(request.system.as_deref(), Some("You are."));
        assert_eq!(request.tools.len(), 2);
        let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
        assert_eq!(request.messages[0].blocks.len(), 2);
        assert_eq!(
            request.messages[1].blocks[1],
            ContentBlock::ToolUse { id: "c1".into(), name: "exec".into(), input: json!("text(1)") }
        );
    }

    #[test]
    fn a_tool_in_a_namespace_is_called_there() {
        for (name, namespace, bare) in
            [("wait", None, "wait"), ("collaboration.spawn_agent", Some("collaboration"), "spawn_agent")]
        {
            let block = ContentBlock::ToolUse { id: "c".into(), name: name.into(), input: json!({"a": 1}) };
            let item = call_item("c", name, &json!({"a": 1}));
            assert_eq!((item["namespace"].as_str(), item["name"].as_str()), (namespace, Some(bare)));
            assert_eq!(item_to_blocks(&item), [(Role::Assistant, block)]);
        }
    }

    #[test]
    fn a_subagent_of_codex_is_asked_by_its_parent() {
        let asked = json!({"type": "agent_message", "author": "/root", "recipient": "/root/sub", "content": [
            {"type": "input_text", "text": "Payload:\n"},
            {"type": "encrypted_content", "encrypted_content": "count the lines"}
        ]});
        let text = "Payload:\ncount the lines".to_owned();
        assert_eq!(item_to_blocks(&asked), [(Role::User, ContentBlock::Text { text })]);
    }

    #[test]
    fn refusals_and_failures_are_seen() {
        let refused = json!({"id": "r", "status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
        ]});
        let reply = OpenAiResponses.reply_from_json(&refused).expect("a reply");
        assert_eq!((reply.stop.clone(), reply.text().as_str()), (StopReason::Refusal, "No."));
        let failed = json!({"status": "failed", "output": [], "error": {"message": "broken"}});
        assert!(OpenAiResponses.reply_from_json(&failed).expect_err("failed").0.contains("broken"));
    }
}
