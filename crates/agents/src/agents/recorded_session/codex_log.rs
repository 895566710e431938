//! Reads a session log of Codex: the items that were sent to the model or came from it, and events about them.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::super::codex::{classify_failure, read_usage};
use super::super::{StreamEnd, StreamTranscript, hidden_subagent, is_subagent_tool};
use super::codex_calls::{PROGRAM_CALL, completed_calls, read_output, requested_calls};
use super::{
    RecordedSession, RecordedTurn, SessionFormat, SessionLog, UNKNOWN_PROMPT, compaction_note, content_text,
    unknown_parts_note,
};
use practicum_core::model::{Step, TokenUsage, ToolCall};

/// Texts at the beginning of messages that the program itself wrote in the place of the user.
const NOT_OF_USER: [&str; 8] = [
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
];

/// Items that are neither a message nor a call of a tool.
const OTHER_ITEMS: [&str; 8] = [
    "reasoning",
    "additional_tools",
    "compaction",
    "compaction_summary",
    "context_compaction",
    "compaction_trigger",
    "ghost_snapshot",
    "agent_message",
];

/// A reader of a session log of Codex.
#[derive(Default)]
pub struct CodexLog {
    id: Option<String>,
    version: Option<String>,
    model: Option<String>,
    turns: Vec<RecordedTurn>,
    /// The steps of calls in the current turn, by the id of the call.
    calls: HashMap<String, Range<usize>>,
    /// Programs of the model that have no output yet, with the number of steps before them.
    programs: HashMap<String, (ToolCall, usize)>,
    usage: Option<TokenUsage>,
    seconds: f64,
    /// Whether the log has events about the beginning and end of turns. Older versions have none.
    has_turn_events: bool,
    has_times: bool,
    compactions: usize,
    unknown_items: Vec<String>,
}

impl CodexLog {
    fn turn(&mut self) -> &mut RecordedTurn {
        if self.turns.is_empty() {
            self.begin_turn(UNKNOWN_PROMPT.to_owned());
        }
        self.turns.last_mut().expect("a turn was added")
    }

    fn transcript(&mut self) -> &mut StreamTranscript {
        &mut self.turn().transcript
    }

    fn begin_turn(&mut self, prompt: String) {
        self.add_unanswered_programs();
        self.calls.clear();
        self.turns.push(RecordedTurn { prompt, transcript: StreamTranscript::default() });
    }

    fn read_item(&mut self, item: &Value) {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        match text("type") {
            "message" if item["role"] == "assistant" => {
                let said = content_text(&item["content"]);
                let transcript = self.transcript();
                transcript.output = said.clone();
                transcript.steps.push(Step::Text(said));
            }
            "message" if item["role"] == "user" => {
                let said = content_text(&item["content"]);
                if is_of_user(item, &said) {
                    self.begin_turn(said);
                }
            }
            // Instructions of the program.
            "message" => {}
            "function_call" => {
                let arguments = text("arguments");
                let parsed = serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into());
                let name = match text("namespace") {
                    "" => text("name").to_owned(),
                    namespace => format!("{namespace}{}", text("name")),
                };
                self.begin_call(text("call_id"), &name, &parsed);
            }
            "custom_tool_call" => self.begin_call(text("call_id"), text("name"), &item["input"]),
            "local_shell_call" => self.begin_call(text("call_id"), "local_shell", &item["action"]),
            "function_call_output" | "custom_tool_call_output" => {
                self.record_output(text("call_id"), &item["output"]);
            }
            kind if kind.ends_with("_call") => {
                let ok = (item["status"] == "completed").then_some(true);
                let name = kind.trim_end_matches("_call").to_owned();
                let input = item["action"].clone();
                self.transcript().steps.push(Step::Tool(ToolCall { name, input, result: None, ok }));
            }
            kind if kind.ends_with("_output") || OTHER_ITEMS.contains(&kind) => {}
            kind => {
                if !self.unknown_items.iter().any(|known| known == kind) {
                    self.unknown_items.push(kind.to_owned());
                }
            }
        }
    }

    fn begin_call(&mut self, id: &str, name: &str, arguments: &Value) {
        let calls = requested_calls(name, arguments);
        let first = self.transcript().steps.len();
        if let ([call], PROGRAM_CALL) = (calls.as_slice(), name) {
            self.programs.insert(id.to_owned(), (call.clone(), first));
            return;
        }
        self.add_calls(id, calls);
    }

    fn add_calls(&mut self, id: &str, calls: Vec<ToolCall>) {
        let steps = &mut self.transcript().steps;
        let first = steps.len();
        steps.extend(calls.into_iter().map(Step::Tool));
        let range = first..steps.len();
        self.calls.insert(id.to_owned(), range);
    }

    /// Records what the model got for a call. An event about the same call has said more, if there was one.
    fn record_output(&mut self, id: &str, output: &Value) {
        if let Some((call, steps_before)) = self.programs.remove(id) {
            // The calls that the program made are steps already.
            if self.transcript().steps.len() == steps_before {
                let output = read_output(output, false);
                let call = ToolCall { result: Some(output.text), ok: output.ok, ..call };
                self.transcript().steps.push(Step::Tool(call));
            }
            return;
        }
        let Some(range) = self.calls.get(id).cloned() else { return };
        for step in &mut self.transcript().steps[range] {
            let Step::Tool(call) = step else { continue };
            if call.ok.is_none() {
                let output = read_output(output, call.name == "command_execution");
                call.result = Some(output.text);
                call.ok = output.ok;
            }
        }
    }

    /// Records a finished call. A program of the model makes calls that the model itself did not ask for.
    fn record_completed_item(&mut self, item: &Value) {
        let Some(calls) = completed_calls(item) else { return };
        if item["type"].as_str().is_some_and(|kind| kind.starts_with("Collab")) {
            self.transcript().uncertain.push(hidden_subagent());
        }
        let id = item["id"].as_str().unwrap_or_default();
        match self.calls.get(id).cloned() {
            Some(range) if range.len() == calls.len() => {
                let steps = &mut self.transcript().steps;
                steps.splice(range, calls.into_iter().map(Step::Tool));
            }
            // A command can be a patch of several files.
            Some(range) if range.end == self.transcript().steps.len() => {
                self.transcript().steps.truncate(range.start);
                self.add_calls(id, calls);
            }
            Some(_) => {}
            None => self.add_calls(id, calls),
        }
    }

    fn read_event(&mut self, event: &Value) {
        match event["type"].as_str() {
            Some("task_started" | "turn_started") => self.has_turn_events = true,
            Some("item_completed") => self.record_completed_item(&event["item"]),
            Some("token_count") => {
                let total = &event["info"]["total_token_usage"];
                self.usage = total.is_object().then(|| read_usage(total)).or(self.usage);
            }
            Some("task_complete" | "turn_complete") => {
                self.record_time(event);
                self.transcript().end = match &event["error"]["message"] {
                    Value::Null => StreamEnd::Done,
                    message => classify_failure(message),
                };
            }
            Some("turn_aborted") => {
                self.record_time(event);
                let why = event["reason"].as_str().unwrap_or("interrupted").to_owned();
                self.transcript().end = StreamEnd::Interrupted(why);
            }
            _ => {}
        }
    }

    fn record_time(&mut self, event: &Value) {
        if let Some(milliseconds) = event["duration_ms"].as_f64() {
            self.has_times = true;
            self.seconds += milliseconds / 1000.0;
        }
    }

    /// Removes the summary with which a session goes on: it is an answer of the model, but not to the user.
    fn read_compaction(&mut self, compacted: &Value) {
        self.compactions += 1;
        let message = compacted["message"].as_str().unwrap_or_default();
        let Some(turn) = self.turns.last_mut() else { return };
        let transcript = &mut turn.transcript;
        if transcript
            .steps
            .pop_if(|step| matches!(step, Step::Text(text) if message.ends_with(text.as_str())))
            .is_some()
        {
            let last = transcript.steps.iter().rev().find_map(|step| match step {
                Step::Text(text) => Some(text.clone()),
                Step::User(_) | Step::Tool(_) => None,
            });
            transcript.output = last.unwrap_or_default();
        }
    }

    fn add_unanswered_programs(&mut self) {
        let open: Vec<ToolCall> = self.programs.drain().map(|(_, (call, _))| call).collect();
        if !open.is_empty() {
            self.transcript().steps.extend(open.into_iter().map(Step::Tool));
        }
    }

    /// Ends the last turn of a log without events about turns: it is over if it ends with an answer.
    fn end_last_turn(&mut self) {
        let has_turn_events = self.has_turn_events;
        let Some(turn) = self.turns.last_mut() else { return };
        let transcript = &mut turn.transcript;
        let is_answered = matches!(transcript.steps.last(), Some(Step::Text(_)));
        if !has_turn_events && is_answered && transcript.end == StreamEnd::BrokenOff {
            transcript.end = StreamEnd::Done;
        }
    }
}

impl SessionLog for CodexLog {
    fn read_line(&mut self, line: &Value) {
        let payload = &line["payload"];
        match line["type"].as_str() {
            // A session that was forked from another one has the head of that one too.
            Some("session_meta") if self.id.is_none() => {
                self.id = payload["id"].as_str().map(str::to_owned);
                self.version = payload["cli_version"].as_str().map(str::to_owned);
            }
            Some("turn_context") => {
                self.model = payload["model"].as_str().map(str::to_owned).or(self.model.take());
            }
            Some("response_item") => self.read_item(payload),
            Some("event_msg") => self.read_event(payload),
            Some("compacted") => self.read_compaction(payload),
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> RecordedSession {
        self.add_unanswered_programs();
        self.end_last_turn();
        let unknown = unknown_parts_note(&self.unknown_items);
        let notes = compaction_note(self.compactions).into_iter().chain(unknown).collect();
        let hides_tools = !self.unknown_items.is_empty();
        for turn in &mut self.turns {
            let transcript = &mut turn.transcript;
            transcript.session = self.id.clone();
            transcript.version = self.version.clone();
            transcript.model = self.model.clone();
            transcript.hides_tools |= hides_tools;
            let has_subagent = transcript.steps.iter().any(|step| {
                matches!(step, Step::Tool(call) if call.ok != Some(false) && is_subagent_tool(&call.name))
            });
            if has_subagent && transcript.uncertain.is_empty() {
                transcript.uncertain.push(hidden_subagent());
            }
        }
        if let (Some(usage), Some(last)) = (self.usage, self.turns.last_mut()) {
            last.transcript.usage = usage;
            last.transcript.totals_of_session = true;
        }
        RecordedSession {
            format: SessionFormat::Codex,
            agent: "Codex".to_owned(),
            id: self.id,
            turns: self.turns,
            ended: None,
            seconds: self.has_times.then_some(self.seconds),
            notes,
        }
    }
}

/// Says whether a message in the role of the user came from a user. New versions say it, and in older ones the text
/// shows it.
fn is_of_user(item: &Value, text: &str) -> bool {
    let kinds = item["internal_chat_message_metadata_passthrough"]["content_item_kinds"].as_array();
    match kinds.filter(|kinds| !kinds.is_empty()) {
        Some(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| kind.starts_with("user.")),
        None => !NOT_OF_USER.iter().any(|start| text.trim_start().starts_with(start)),
    }
}
