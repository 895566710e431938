//! Google's Gemini API: `models/MODEL:generateContent` and `models/MODEL:streamGenerateContent`.
//!
//! The API has the model and whether the reply is a stream in its path. Here they are the keys `model` and `stream` of the
//! body, where whoever reads the path puts them.

use serde_json::{Value, json};

use super::{
    ChatMessage, ContentBlock, MalformedMessage, ModelReply, ModelRequest, Role, SseEvent, StopReason,
    ToolDefinition, WireFormat, count_field, limit_field, list_field, stream_pieces, text_field,
    update_count,
};
use practicum_core::model::TokenUsage;

/// The format of the Gemini API.
pub struct GeminiContent;

/// Splits `models/MODEL:METHOD`, as it stands in the path of a request.
pub fn split_path(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("models/")?.rsplit_once(':')
}

/// Gives the path of a request for a model.
pub fn request_path(model: &str, stream: bool) -> String {
    let method = if stream { "streamGenerateContent" } else { "generateContent" };
    format!("/v1beta/models/{model}:{method}")
}

impl WireFormat for GeminiContent {
    fn path(&self) -> &'static str {
        "/v1beta/models"
    }

    fn request_to_json(&self, request: &ModelRequest) -> Value {
        let contents: Vec<Value> = request.messages.iter().map(message_to_json).collect();
        let mut body = json!({"model": request.model, "contents": contents});
        if let Some(system) = &request.system {
            body["systemInstruction"] = json!({"parts": [{"text": system}]});
        }
        if !request.tools.is_empty() {
            let declared = request.tools.iter().map(|tool| {
                let ToolDefinition { name, description, input_schema } = tool;
                json!({"name": name, "description": description, "parametersJsonSchema": input_schema})
            });
            body["tools"] = json!([{"functionDeclarations": declared.collect::<Vec<Value>>()}]);
        }
        if let Some(name) = &request.tool_choice {
            body["toolConfig"] =
                json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}});
        }
        if let Some(limit) = request.max_tokens {
            body["generationConfig"]["maxOutputTokens"] = json!(limit);
        }
        if let Some(temperature) = request.temperature {
            body["generationConfig"]["temperature"] = json!(temperature);
        }
        if request.stream {
            body["stream"] = json!(true);
        }
        body
    }

    fn request_from_json(&self, json: &Value) -> Result<ModelRequest, MalformedMessage> {
        if !json.get("contents").is_some_and(Value::is_array) {
            return Err(MalformedMessage("contents: a list of messages is required".to_owned()));
        }
        let none = Value::Null;
        let settings = json.get("generationConfig").unwrap_or(&none);
        let declared =
            list_field(json, "tools").iter().flat_map(|group| list_field(group, "functionDeclarations"));
        let allowed = json.pointer("/toolConfig/functionCallingConfig").unwrap_or(&none);
        let mut request = ModelRequest {
            model: text_field(json, "model").to_owned(),
            system: None,
            messages: Vec::new(),
            tools: declared.map(tool_from_json).collect(),
            tool_choice: match list_field(allowed, "allowedFunctionNames") {
                [only] if text_field(allowed, "mode") == "ANY" => only.as_str().map(str::to_owned),
                _ => None,
            },
            max_tokens: limit_field(settings, "maxOutputTokens"),
            temperature: settings.get("temperature").and_then(Value::as_f64),
            stream: json.get("stream").and_then(Value::as_bool).unwrap_or(false),
        };
        let system = json.get("systemInstruction").unwrap_or(&none);
        for part in list_field(system, "parts") {
            request.add_system(text_field(part, "text").to_owned());
        }
        for content in list_field(json, "contents") {
            let role = if text_field(content, "role") == "model" { Role::Assistant } else { Role::User };
            for part in list_field(content, "parts") {
                if let Some(block) = block_from_json(part) {
                    request.push(role, block);
                }
            }
        }
        Ok(request)
    }

    fn reply_to_json(&self, reply: &ModelReply) -> Value {
        let parts: Vec<Value> = reply.blocks.iter().map(block_to_json).collect();
        chunk(reply, parts, true)
    }

    fn reply_from_json(&self, json: &Value) -> Result<ModelReply, MalformedMessage> {
        let Some(candidate) = list_field(json, "candidates").first() else {
            return Err(MalformedMessage("the reply has no candidates".to_owned()));
        };
        let parts = candidate.get("content").map(|content| list_field(content, "parts")).unwrap_or_default();
        let blocks: Vec<ContentBlock> = parts.iter().filter_map(block_from_json).collect();
        let calls_tools = blocks.iter().any(|block| matches!(block, ContentBlock::ToolUse { .. }));
        let stop = match text_field(candidate, "finishReason") {
            "STOP" | "" if calls_tools => StopReason::ToolUse,
            "STOP" | "" => StopReason::EndTurn,
            "MAX_TOKENS" => StopReason::MaxTokens,
            "SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        };
        let mut usage = TokenUsage::default();
        if let Some(counts) = json.get("usageMetadata") {
            self.add_counts(counts, &mut usage);
        }
        Ok(ModelReply {
            id: text_field(json, "responseId").to_owned(),
            model: text_field(json, "modelVersion").to_owned(),
            blocks,
            stop,
            usage,
        })
    }

    fn reply_to_events(&self, reply: &ModelReply) -> Vec<SseEvent> {
        let mut parts = Vec::new();
        for block in &reply.blocks {
            match block {
                ContentBlock::Text { text } => {
                    parts.extend(stream_pieces(text).into_iter().map(|piece| json!({"text": piece})));
                }
                ContentBlock::Image { .. }
                | ContentBlock::Thinking { .. }
                | ContentBlock::ToolUse { .. }
                | ContentBlock::ToolResult { .. } => {
                    parts.push(block_to_json(block));
                }
            }
        }
        // A stream without content is an error to its readers.
        if parts.is_empty() {
            parts.push(json!({"text": ""}));
        }
        let last = parts.len() - 1;
        let chunks = parts.into_iter().enumerate().map(|(at, part)| chunk(reply, vec![part], at == last));
        chunks.map(SseEvent::unnamed).collect()
    }

    fn add_counts(&self, usage: &Value, so_far: &mut TokenUsage) {
        update_count(usage, "cachedContentTokenCount", &mut so_far.cache_read);
        if usage.get("promptTokenCount").is_some() {
            so_far.input = count_field(usage, "promptTokenCount").saturating_sub(so_far.cache_read);
        }
        if usage.get("candidatesTokenCount").is_some() || usage.get("thoughtsTokenCount").is_some() {
            so_far.output =
                count_field(usage, "candidatesTokenCount") + count_field(usage, "thoughtsTokenCount");
        }
    }

    fn error_to_json(&self, kind: &str, message: &str) -> Value {
        let (code, status) = match kind {
            "authentication_error" => (401, "UNAUTHENTICATED"),
            "billing_error" => (402, "FAILED_PRECONDITION"),
            "permission_error" => (403, "PERMISSION_DENIED"),
            "not_found_error" => (404, "NOT_FOUND"),
            "rate_limit_error" => (429, "RESOURCE_EXHAUSTED"),
            "api_error" => (500, "INTERNAL"),
            "timeout_error" => (504, "DEADLINE_EXCEEDED"),
            "overloaded_error" => (503, "UNAVAILABLE"),
            _ => (400, "INVALID_ARGUMENT"),
        };
        json!({"error": {"code": code, "message": message, "status": status}})
    }

    fn error_to_event(&self, _reply: &ModelReply, kind: &str, message: &str) -> SseEvent {
        SseEvent::unnamed(self.error_to_json(kind, message))
    }
}

/// Writes a reply with these parts. Only the last chunk of a stream says why it ends and how many tokens it took.
fn chunk(reply: &ModelReply, parts: Vec<Value>, is_last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    let mut body = json!({"responseId": reply.id, "modelVersion": reply.model});
    if is_last {
        candidate["finishReason"] = json!(match &reply.stop {
            StopReason::EndTurn | StopReason::ToolUse => "STOP",
            StopReason::MaxTokens => "MAX_TOKENS",
            StopReason::Refusal => "SAFETY",
            StopReason::Other(reason) => reason.as_str(),
        });
        let TokenUsage { input, output, cache_read, cache_write } = reply.usage;
        let prompt = input + cache_read + cache_write;
        body["usageMetadata"] = json!({
            "promptTokenCount": prompt,
            "cachedContentTokenCount": cache_read,
            "candidatesTokenCount": output,
            "totalTokenCount": prompt + output,
        });
    }
    body["candidates"] = json!([candidate]);
    body
}

fn message_to_json(message: &ChatMessage) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "model",
    };
    json!({"role": role, "parts": message.blocks.iter().map(block_to_json).collect::<Vec<Value>>()})
}

fn block_to_json(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Text { text } => json!({"text": text}),
        ContentBlock::Image { media_type, data } => {
            json!({"inlineData": {"mimeType": media_type, "data": data}})
        }
        ContentBlock::Thinking { text, signature } => {
            let mut part = json!({"text": text, "thought": true});
            if let Some(signature) = signature {
                part["thoughtSignature"] = json!(signature);
            }
            part
        }
        ContentBlock::ToolUse { id, name, input } => {
            json!({"functionCall": {"id": id, "name": name, "args": input}})
        }
        ContentBlock::ToolResult { tool_use_id, content, is_error } => {
            let key = if *is_error { "error" } else { "output" };
            // The API wants a name, which is known only from the call.
            json!({"functionResponse": {"id": tool_use_id, "name": tool_use_id, "response": {key: content}}})
        }
    }
}

/// Reads a part. Data that is no picture is left out.
fn block_from_json(part: &Value) -> Option<ContentBlock> {
    if let Some(data) = part.get("inlineData") {
        let media_type = text_field(data, "mimeType").to_owned();
        let is_picture = media_type.starts_with("image/");
        let data = text_field(data, "data").to_owned();
        return is_picture.then_some(ContentBlock::Image { media_type, data });
    }
    if let Some(call) = part.get("functionCall") {
        let name = text_field(call, "name");
        let id = call.get("id").and_then(Value::as_str).unwrap_or(name);
        let input = call.get("args").cloned().unwrap_or_else(|| json!({}));
        return Some(ContentBlock::ToolUse { id: id.to_owned(), name: name.to_owned(), input });
    }
    if let Some(result) = part.get("functionResponse") {
        let id = result.get("id").or_else(|| result.get("name")).and_then(Value::as_str).unwrap_or_default();
        let none = Value::Null;
        let response = result.get("response").unwrap_or(&none);
        let error = response.get("error");
        let content = match error.or_else(|| response.get("output")) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => response.to_string(),
        };
        return Some(ContentBlock::ToolResult {
            tool_use_id: id.to_owned(),
            content,
            is_error: error.is_some(),
        });
    }
    let text = part.get("text")?.as_str()?.to_owned();
    match part.get("thought").and_then(Value::as_bool) {
        Some(true) => {
            let signature = part.get("thoughtSignature").and_then(Value::as_str).map(str::to_owned);
            Some(ContentBlock::Thinking { text, signature })
        }
        Some(false) | None => Some(ContentBlock::Text { text }),
    }
}

fn tool_from_json(tool: &Value) -> ToolDefinition {
    let schema = tool.get("parametersJsonSchema").or_else(|| tool.get("parameters"));
    ToolDefinition {
        name: text_field(tool, "name").to_owned(),
        description: text_field(tool, "description").to_owned(),
        input_schema: schema.cloned().unwrap_or_else(|| json!({"type": "object"})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_the_cli_is_read() {
        let body = json!({
            "model": "gemini-2.5-pro",
            "stream": true,
            "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Setup."}]},
                {"role": "user", "parts": [{"text": "Greet Alice."}, {"inlineData": {"data": "x"}}]},
                {"role": "model", "parts": [
                    {"text": "hm", "thought": true},
                    {"functionCall": {"name": "activate_skill", "args": {"name": "greeter"}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "activate_skill", "response": {"output": "Say Ahoy."}}},
                ]},
            ],
            "tools": [{"functionDeclarations": [{"name": "activate_skill", "description": "d", "parameters": {"type": "OBJECT"}}]}],
            "generationConfig": {"temperature": 1, "maxOutputTokens": 9},
        });
        let request = GeminiContent.request_from_json(&body).expect("readable");
        assert_eq!(
            (request.model.as_str(), request.stream, request.max_tokens),
            ("gemini-2.5-pro", true, Some(9))
        );
        assert_eq!(request.system.as_deref(), Some("You are an agent."));
        // Messages of one role in a row are one.
        assert_eq!(request.messages.len(), 3);
        assert_eq!(request.messages[0].blocks.len(), 2);
        let ContentBlock::ToolResult { tool_use_id, content, is_error } = &request.messages[2].blocks[0]
        else {
            panic!("{request:?}")
        };
        assert_eq!(
            (tool_use_id.as_str(), content.as_str(), *is_error),
            ("activate_skill", "Say Ahoy.", false)
        );
        assert_eq!(request.tools[0].input_schema, json!({"type": "OBJECT"}));
        let again =
            GeminiContent.request_from_json(&GeminiContent.request_to_json(&request)).expect("readable");
        assert_eq!(again, request);
        assert!(GeminiContent.request_from_json(&json!({"messages": []})).is_err());
    }

    #[test]
    fn a_reply_is_the_same_whole_and_in_pieces() {
        let reply = ModelReply {
            id: "r".to_owned(),
            model: "gemini-2.5-pro".to_owned(),
            blocks: vec![
                ContentBlock::Text { text: "Ahoy, ".repeat(40) },
                ContentBlock::ToolUse { id: "c".to_owned(), name: "t".to_owned(), input: json!({"a": 1}) },
            ],
            stop: StopReason::ToolUse,
            usage: TokenUsage { input: 7, output: 3, cache_read: 2, cache_write: 0 },
        };
        assert_eq!(GeminiContent.reply_from_json(&GeminiContent.reply_to_json(&reply)), Ok(reply.clone()));
        let events = GeminiContent.reply_to_events(&reply);
        let chunks: Vec<Value> = events.iter().map(|event| event.data.clone()).collect();
        let texts: String = chunks
            .iter()
            .filter_map(|chunk| chunk["candidates"][0]["content"]["parts"][0]["text"].as_str())
            .collect();
        assert_eq!(texts, "Ahoy, ".repeat(40));
        let ends: Vec<bool> =
            chunks.iter().map(|chunk| chunk["candidates"][0].get("finishReason").is_some()).collect();
        assert_eq!((ends.iter().filter(|end| **end).count(), ends.last()), (1, Some(&true)));
    }

    #[test]
    fn paths_name_the_model_and_the_method() {
        assert_eq!(
            split_path("models/gemini-2.5-pro:streamGenerateContent"),
            Some(("gemini-2.5-pro", "streamGenerateContent"))
        );
        assert_eq!(split_path("models/a:b:countTokens"), Some(("a:b", "countTokens")));
        assert_eq!(split_path("chat/completions"), None);
        assert_eq!(request_path("m", false), "/v1beta/models/m:generateContent");
    }
}
