//! The Agent Client Protocol: the client that drives an agent with it, and the decoder of what the agent says.
//!
//! The protocol is JSON-RPC 2.0, one object per line. A process serves one turn: the client opens a session or loads the
//! one of the turn before, sends the prompt, allows what the agent asks for, and is done when the prompt is answered.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::skill_reads::{is_read_tool, is_shell_tool};
use super::{
    AgentClient, AgentTurn, ClientAnswer, Decoder, DecoderKind, StreamEnd, StreamTranscript,
    classify_api_error, is_skill_tool,
};
use practicum_core::model::{Step, TokenUsage, ToolCall, UncertainActivation};

pub static DECODER: DecoderKind = DecoderKind {
    name: "acp",
    shows_skills: true,
    new_decoder: || Box::new(AcpDecoder::default()),
    new_client: Some(|turn| Box::new(AcpClient::new(turn))),
};

/// The version of the protocol that the client speaks.
const PROTOCOL_VERSION: u64 = 1;

/// The ids of the client's requests. The decoder knows the responses by them.
const INITIALIZE_ID: u64 = 1;
const SESSION_ID: u64 = 2;
const PROMPT_ID: u64 = 3;

/// The error code of JSON-RPC for a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// The error code with which agents refuse to work without a login.
const LOGIN_REQUIRED: i64 = -32000;

/// The kind of tool calls that are of no other kind.
const OTHER_KIND: &str = "other";

/// The client of one turn.
struct AcpClient {
    prompt: String,
    folder: String,
    /// The session to continue; `None` in the first turn.
    earlier_session: Option<String>,
}

impl AcpClient {
    fn new(turn: &AgentTurn<'_>) -> Self {
        Self {
            prompt: turn.prompt.to_owned(),
            folder: turn.workspace.display().to_string(),
            earlier_session: turn.session.filter(|_| turn.is_later).map(str::to_owned),
        }
    }

    /// Answers the response to `initialize`: opens or loads a session.
    fn open_session(&self, result: &Value) -> ClientAnswer {
        let version = &result["protocolVersion"];
        if *version != PROTOCOL_VERSION {
            return over(Err(format!(
                "the agent speaks version {version} of the Agent Client Protocol, and not {PROTOCOL_VERSION}"
            )));
        }
        let mut params = json!({"cwd": self.folder, "mcpServers": []});
        let Some(session) = &self.earlier_session else {
            return request(SESSION_ID, "session/new", params);
        };
        if result["agentCapabilities"]["loadSession"] != true {
            return over(Err(
                "the agent cannot continue a session, and this case has several turns".to_owned()
            ));
        }
        params["sessionId"] = json!(session);
        request(SESSION_ID, "session/load", params)
    }

    /// Answers the response to `session/new` or `session/load`: sends the prompt.
    fn send_prompt(&self, result: &Value) -> ClientAnswer {
        let Some(session) = result["sessionId"].as_str().or(self.earlier_session.as_deref()) else {
            return over(Err("the agent opened a session without an id".to_owned()));
        };
        let prompt = json!([{"type": "text", "text": self.prompt}]);
        request(PROMPT_ID, "session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }
}

impl AgentClient for AcpClient {
    fn first_text(&mut self) -> String {
        // With access to files through the client, some agents fail to create files.
        let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let info = json!({"name": "practicum", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": capabilities,
            "clientInfo": info,
        });
        request(INITIALIZE_ID, "initialize", params).text
    }

    fn answer_line(&mut self, line: &str) -> ClientAnswer {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return ClientAnswer::default() };
        if let Some(method) = message["method"].as_str() {
            return match message.get("id") {
                Some(id) => answer_request(id, method, &message["params"]),
                None => ClientAnswer::default(),
            };
        }
        match (message["id"].as_u64(), message.get("result")) {
            (Some(INITIALIZE_ID), Some(result)) => self.open_session(result),
            (Some(SESSION_ID), Some(result)) => self.send_prompt(result),
            // The decoder says how the turn ended, and which error an agent answered with.
            (Some(INITIALIZE_ID | SESSION_ID | PROMPT_ID), _) => over(Ok(())),
            _ => ClientAnswer::default(),
        }
    }
}

fn over(end: Result<(), String>) -> ClientAnswer {
    ClientAnswer { text: String::new(), end: Some(end) }
}

fn write_message(message: &Value) -> ClientAnswer {
    ClientAnswer { text: format!("{message}\n"), end: None }
}

fn request(id: u64, method: &str, params: Value) -> ClientAnswer {
    write_message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Answers a request of the agent. Permissions are granted, once for each call: the agent works in a workspace of its own.
/// "Always" would make some agents write that into the workspace.
fn answer_request(id: &Value, method: &str, params: &Value) -> ClientAnswer {
    if method != "session/request_permission" {
        let error = json!({"code": METHOD_NOT_FOUND, "message": format!("no method {method}")});
        return write_message(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
    let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
    let chosen = ["allow_once", "allow_always"]
        .iter()
        .find_map(|kind| options.iter().find(|option| option["kind"] == *kind))
        .map(|option| &option["optionId"]);
    let outcome = match chosen {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    write_message(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}}))
}

/// The decoder of the lines that an agent writes.
#[derive(Default)]
struct AcpDecoder {
    transcript: StreamTranscript,
    /// The calls of this turn by their id: their place among the steps, and the results so far.
    calls: HashMap<String, AcpCall>,
    /// Whether the session is open. Updates before that repeat an earlier turn.
    is_open: bool,
    /// Whether the last update was a piece of the agent's message.
    in_message: bool,
    /// The last piece of the agent's message.
    last_piece: String,
    /// The tokens that the agent counted while it worked.
    counted: TokenUsage,
    is_copilot: bool,
}

/// A call whose result has not come yet.
struct AcpCall {
    at: usize,
    result: Option<String>,
    is_done: bool,
}

impl Decoder for AcpDecoder {
    fn read_event(&mut self, event: Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("session/update") => self.read_update(&params["update"]),
            // An agent that asks before it acts may describe the call only here.
            Some("session/request_permission") if self.is_open => self.read_call(&params["toolCall"], false),
            Some(_) => {}
            None => self.read_response(&event),
        }
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        self.transcript
    }
}

impl AcpDecoder {
    fn read_response(&mut self, event: &Value) {
        let Some(id @ (INITIALIZE_ID | SESSION_ID | PROMPT_ID)) = event["id"].as_u64() else { return };
        if let Some(error) = event.get("error") {
            self.transcript.end = classify_error(error);
            return;
        }
        let result = &event["result"];
        match id {
            INITIALIZE_ID => {
                let info = &result["agentInfo"];
                self.transcript.version = info["version"].as_str().map(str::to_owned);
                let name = info["name"].as_str().unwrap_or_default();
                self.is_copilot = name.to_lowercase().contains("copilot");
            }
            SESSION_ID => {
                self.is_open = true;
                self.transcript.session = result["sessionId"].as_str().map(str::to_owned);
                self.transcript.model = result["models"]["currentModelId"].as_str().map(str::to_owned);
            }
            _ => self.read_end(result),
        }
    }

    fn read_end(&mut self, result: &Value) {
        self.transcript.usage = usage_of(result).unwrap_or(self.counted);
        let why = |what: &str| format!("the agent stopped: {what}");
        match result["stopReason"].as_str() {
            Some("end_turn") => match self.error_in_text() {
                Some(message) => self.transcript.end = classify_api_error(&message),
                None => self.transcript.set_finished(),
            },
            Some("cancelled") => self.transcript.end = StreamEnd::Interrupted(why("cancelled")),
            Some(limit @ ("max_tokens" | "max_turn_requests")) => {
                self.transcript.end = StreamEnd::OverBudget(why(limit));
            }
            // A refusal is an answer of the model.
            Some("refusal") => self.transcript.end = StreamEnd::Done,
            Some(other) => self.transcript.end = StreamEnd::ApiFailed(why(other)),
            None => {}
        }
    }

    /// Finds the error of the model's API that some agents report as an ordinary end with a text.
    fn error_in_text(&self) -> Option<String> {
        let of_goose = super::goose::reports_api_error(&self.transcript.output);
        let of_copilot = self.is_copilot && self.last_piece.starts_with("Error: ");
        if of_goose {
            Some(self.transcript.output.clone())
        } else {
            of_copilot.then(|| self.last_piece.clone())
        }
    }

    fn read_update(&mut self, update: &Value) {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        if kind == "available_commands_update" {
            let commands = update["availableCommands"].as_array().into_iter().flatten();
            let names = commands.filter_map(|command| command["name"].as_str()).map(str::to_owned);
            self.transcript.commands_listed = names.collect();
        }
        if !self.is_open {
            return;
        }
        match kind {
            "agent_message_chunk" => {
                self.count_tokens(&update["_meta"]["usage"]);
                self.add_text(update["content"]["text"].as_str().unwrap_or_default());
            }
            "tool_call" => self.read_call(update, true),
            "tool_call_update" => self.read_call(update, false),
            "usage_update" if update["cost"]["currency"] == "USD" => {
                self.transcript.cost_usd = update["cost"]["amount"].as_f64().or(self.transcript.cost_usd);
                self.transcript.cost_of_session = true;
            }
            _ => {}
        }
    }

    fn count_tokens(&mut self, usage: &Value) {
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        let cached = count("cachedReadTokens");
        let input = count("inputTokens").saturating_sub(cached);
        let output = count("outputTokens");
        self.counted.add(TokenUsage { input, output, cache_read: cached, cache_write: 0 });
    }

    /// Adds a piece of the agent's message.
    fn add_text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        self.last_piece = piece.to_owned();
        match self.transcript.steps.last_mut() {
            Some(Step::Text(text)) if self.in_message => {
                text.push_str(piece);
                self.transcript.output.push_str(piece);
            }
            _ => {
                self.transcript.output = piece.to_owned();
                self.transcript.steps.push(Step::Text(piece.to_owned()));
            }
        }
        self.in_message = true;
    }

    /// Reads what is said about a tool call. An agent may give its name, input and result one after the other.
    fn read_call(&mut self, update: &Value, is_first: bool) {
        let Some(id) = update["toolCallId"].as_str() else { return };
        self.in_message = false;
        let steps = &mut self.transcript.steps;
        let known = self.calls.entry(id.to_owned()).or_insert_with(|| {
            let call = ToolCall { name: String::new(), input: json!({}), result: None, ok: None };
            steps.push(Step::Tool(call));
            AcpCall { at: steps.len() - 1, result: None, is_done: false }
        });
        let Some(Step::Tool(call)) = steps.get_mut(known.at) else { return };
        add_description(call, update, id, is_first);
        known.result = result_text(update).or(known.result.take());
        let ok = match update["status"].as_str() {
            Some("completed") => exit_code(update) == 0,
            Some("failed") => false,
            _ => return,
        };
        if std::mem::replace(&mut known.is_done, true) {
            return;
        }
        let result = known.result.clone();
        if is_skill_tool(&call.name)
            && super::called_skill(call).is_none()
            && let Some(skill) = result.as_deref().and_then(skill_in_result)
        {
            call.input = json!({"name": skill});
        }
        // Gemini CLI shows a command only in the title, which is not for programs, and never its output.
        let hides_command =
            is_shell_tool(&call.name) && call.input.as_object().is_none_or(|input| input.is_empty());
        let at = known.at;
        self.transcript.record_call_result(at, ok, result);
        if hides_command {
            let why = "the agent's stream does not show a command that it ran".to_owned();
            self.transcript.uncertain.push(UncertainActivation { skill: None, why });
        }
    }
}

/// Adds what an update says about the tool and its input.
fn add_description(call: &mut ToolCall, update: &Value, id: &str, is_first: bool) {
    if update["rawInput"].as_object().is_some_and(|input| !input.is_empty()) {
        call.input = update["rawInput"].clone();
    }
    let kind = update["kind"].as_str().unwrap_or_default();
    let path = update["locations"][0]["path"].as_str();
    if kind == "read"
        && call.input.get("path").is_none()
        && !is_skill_tool(&call.name)
        && let (Some(path), Some(input)) = (path, call.input.as_object_mut())
    {
        input.insert("path".to_owned(), json!(path));
    }
    let is_unnamed = call.name.is_empty() || call.name == OTHER_KIND;
    if let Some(name) = stated_tool_name(update) {
        call.name = name.to_owned();
    } else if is_unnamed {
        let names_skill = call.input["skill"].is_string() && kind == OTHER_KIND;
        let guessed = inferred_tool_name(update, id, is_first).or(names_skill.then_some("skill"));
        call.name = guessed.unwrap_or(kind).to_owned();
    }
    // The rules for commands and files know tools by their names.
    let is_known = |name: &str| is_shell_tool(name) || is_read_tool(name) || is_skill_tool(name);
    let runs = call.input["command"].is_string() || call.input["command"].is_array();
    match kind {
        "execute" if runs && !is_known(&call.name) => call.name = "shell".to_owned(),
        // Codex reads files with its tool for commands, and says only which file.
        "read" if !runs && path.is_some() && (!is_known(&call.name) || is_shell_tool(&call.name)) => {
            call.name = "read".to_owned();
        }
        _ => {}
    }
}

/// Gives the name of the tool where the agent states it for programs.
fn stated_tool_name(update: &Value) -> Option<&str> {
    let meta = &update["_meta"];
    let places = [
        &meta["claudeCode"]["toolName"],
        &meta["goose"]["toolCall"]["toolName"],
        &meta["toolName"],
        &update["name"],
    ];
    places.into_iter().find_map(Value::as_str).filter(|name| !name.is_empty())
}

/// Infers the name of the tool. Gemini CLI writes it into the id. A title is for people, and may be written by the model;
/// only the first one of a call that is exactly the name of a skill tool counts.
fn inferred_tool_name<'u>(update: &'u Value, id: &'u str, is_first: bool) -> Option<&'u str> {
    let in_id = id.split_once("__").filter(|(name, rest)| !name.is_empty() && rest.starts_with(name));
    let title = || update["title"].as_str().filter(|title| is_first && is_skill_tool(title));
    in_id.map(|(name, _)| name).or_else(title)
}

/// Gives the exit code of a command, if the update says it; else 0.
fn exit_code(update: &Value) -> i64 {
    let output = &update["rawOutput"];
    let codes = [&output["exit_code"], &output["exitCode"], &output["metadata"]["exit"]];
    codes.iter().find_map(|code| code.as_i64()).unwrap_or(0)
}

/// Gives the text of a result: the content for the model, else the raw output.
fn result_text(update: &Value) -> Option<String> {
    let delta = update["_meta"]["terminal_output_delta"]["data"].as_str();
    let content = update["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = content.filter_map(|block| block["content"]["text"].as_str()).collect();
    let raw = &update["rawOutput"];
    let raw = raw
        .as_str()
        .or_else(|| raw["content"].as_str())
        .or_else(|| raw["text"].as_str())
        .or_else(|| raw["output"].as_str());
    let text = if texts.is_empty() { raw.map(str::to_owned) } else { Some(texts.join("\n")) };
    text.or_else(|| delta.map(str::to_owned))
}

/// Finds the skill that the result of a skill tool names, for agents that do not show the input of the call.
fn skill_in_result(result: &str) -> Option<&str> {
    let between = |start: &str, end: &str| result.split_once(start)?.1.split_once(end).map(|(name, _)| name);
    between("Skill **", "** activated").or_else(|| between("<skill name=\"", "\""))
}

/// Gives the tokens that the answer to a prompt counts; `None` if it counts none.
fn usage_of(result: &Value) -> Option<TokenUsage> {
    if let Some(usage) = result.get("usage") {
        let count = |key: &str| usage[key].as_u64().unwrap_or(0);
        return Some(TokenUsage {
            input: count("inputTokens"),
            output: count("outputTokens"),
            cache_read: count("cachedReadTokens"),
            cache_write: count("cachedWriteTokens"),
        });
    }
    let counts = result["_meta"]["quota"].get("token_count")?;
    let count = |key: &str| counts[key].as_u64().unwrap_or(0);
    Some(TokenUsage { input: count("input_tokens"), output: count("output_tokens"), ..TokenUsage::default() })
}

/// Classifies the error that an agent answered with.
fn classify_error(error: &Value) -> StreamEnd {
    let message = error["message"].as_str().unwrap_or_default();
    let data = &error["data"];
    let details = data.as_str().or_else(|| data["details"].as_str());
    let why = match details {
        Some(details) => format!("{message}: {details}"),
        None => message.to_owned(),
    };
    match error["code"].as_i64() {
        Some(LOGIN_REQUIRED | 401 | 403) => StreamEnd::AuthFailed(why),
        Some(429) => StreamEnd::RateLimited(why),
        _ => classify_api_error(&why),
    }
}
