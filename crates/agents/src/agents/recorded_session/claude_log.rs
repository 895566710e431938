//! Reads a session log of Claude Code. Its lines are nearly those of its stream, so the decoder of the stream reads them
//! after a translation.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::claude::{ClaudeDecoder, plain_usage, usage_by_model};
use super::super::{Decoder, is_subagent_tool};
use super::log_lines::{LogLine, LogLines};
use super::{
    LARGEST_SESSION, RecordedSession, RecordedTurn, SessionFormat, SessionLog, UNKNOWN_PROMPT,
    compaction_note, content_text, unknown_parts_note,
};
use practicum_core::model::TokenUsage;

/// The most logs of subagents that are read for one session.
const MOST_SUBAGENTS: usize = 200;

/// Texts at the beginning of messages that the program itself wrote in the place of the user.
const NOT_OF_USER: [&str; 5] =
    ["<local-command-", "<bash-stdout>", "<bash-stderr>", "<bash-input>", "<task-notification>"];

/// Blocks of an answer that have been seen in sessions. Others may be calls of tools.
const KNOWN_BLOCKS: [&str; 7] =
    ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "image", "fallback"];

/// A reader of a session log of Claude Code.
#[derive(Default)]
pub struct ClaudeLog {
    /// The folder with the logs of the session's subagents.
    subagents: PathBuf,
    subagents_read: usize,
    id: Option<String>,
    version: Option<String>,
    model: Option<String>,
    skills: Option<Vec<String>>,
    turns: Vec<LogTurn>,
    /// The tokens of each answer, by its id. An answer has a line for each of its blocks.
    usage: HashMap<String, TokenUsage>,
    total_usage: Option<TokenUsage>,
    cost_usd: Option<f64>,
    compactions: usize,
    unknown_blocks: Vec<String>,
}

/// A turn that is being read.
struct LogTurn {
    prompt: String,
    /// Whether the prompt is a command, which the program may have answered itself.
    is_command: bool,
    decoder: ClaudeDecoder,
    answers: HashSet<String>,
    /// The calls without a result so far.
    open_calls: HashSet<String>,
    /// The prompts that were given to subagents, with the ids of the calls.
    subagent_prompts: HashMap<String, String>,
    /// The call whose subagent the lines in between belong to, in logs that have them in the same file.
    subagent_call: Option<String>,
    last_text: Option<String>,
    started: Option<jiff::Timestamp>,
    last_seen: Option<jiff::Timestamp>,
    /// The message about an interruption or a failed request that ended the turn.
    problem: Option<TurnProblem>,
}

enum TurnProblem {
    Interrupted(String),
    ApiError { status: Value, text: String },
}

impl LogTurn {
    fn new(prompt: String, is_command: bool, started: Option<jiff::Timestamp>) -> Self {
        Self {
            prompt,
            is_command,
            decoder: ClaudeDecoder::default(),
            answers: HashSet::new(),
            open_calls: HashSet::new(),
            subagent_prompts: HashMap::new(),
            subagent_call: None,
            last_text: None,
            started,
            last_seen: None,
            problem: None,
        }
    }

    fn has_answer(&self) -> bool {
        !self.answers.is_empty() || self.problem.is_some()
    }

    /// Gives the seconds from the prompt to the last line of the agent.
    fn seconds(&self) -> Option<f64> {
        let took = self.last_seen?.duration_since(self.started?).as_secs_f64();
        (took >= 0.0).then_some(took)
    }

    /// Gives the event with which the stream would have ended; `None` if the log breaks off in the turn.
    fn result_event(&self) -> Option<Value> {
        match &self.problem {
            Some(TurnProblem::Interrupted(text)) => Some(json!({
                "type": "result", "subtype": "error_during_execution", "is_error": true, "errors": [text],
            })),
            Some(TurnProblem::ApiError { status, text }) => Some(json!({
                "type": "result", "subtype": "success", "is_error": true, "api_error_status": status, "result": text,
            })),
            None if self.open_calls.is_empty() => self.last_text.as_ref().map(
                |text| json!({"type": "result", "subtype": "success", "is_error": false, "result": text}),
            ),
            None => None,
        }
    }
}

impl ClaudeLog {
    /// Makes a reader for the log at this path. The logs of its subagents are in a folder beside it.
    pub fn with_subagents_beside(path: &Path) -> Self {
        Self { subagents: path.with_extension("").join("subagents"), ..Self::default() }
    }

    fn read_user_line(&mut self, line: &Value) {
        let content = &line["message"]["content"];
        if line["isSidechain"] == true {
            self.read_sidechain_line(line);
        } else if has_tool_result(content) {
            self.read_tool_results(line);
        } else if line["isMeta"] != true && line["isCompactSummary"] != true {
            self.read_user_text(line, &content_text(content));
        }
    }

    fn read_user_text(&mut self, line: &Value, text: &str) {
        let of_program = line["promptSource"] == "system" || line["origin"]["kind"] == "task-notification";
        if of_program || NOT_OF_USER.iter().any(|start| text.trim_start().starts_with(start)) {
            return;
        }
        if text.starts_with("[Request interrupted by user") {
            if let Some(turn) = self.turns.last_mut() {
                turn.problem = Some(TurnProblem::Interrupted(text.to_owned()));
            }
            return;
        }
        // A command that the program answered itself was no message to the agent.
        self.turns.pop_if(|turn| turn.is_command && !turn.has_answer());
        let command = typed_command(text);
        let is_command = command.is_some();
        let prompt = command.unwrap_or_else(|| text.to_owned());
        self.turns.push(LogTurn::new(prompt, is_command, time_of(line)));
    }

    /// Gives the current turn. A log that was continued from another one may begin in the middle of one.
    fn turn(&mut self) -> &mut LogTurn {
        if self.turns.is_empty() {
            self.turns.push(LogTurn::new(UNKNOWN_PROMPT.to_owned(), false, None));
        }
        self.turns.last_mut().expect("a turn was added")
    }

    fn read_tool_results(&mut self, line: &Value) {
        let ids: Vec<String> = tool_result_ids(&line["message"]["content"]);
        // A subagent has a log of its own. Its calls come before the result of the call that started it.
        if let (Some(agent), [call]) = (line["toolUseResult"]["agentId"].as_str(), ids.as_slice()) {
            self.read_subagent_log(agent, call);
        }
        let turn = self.turn();
        turn.last_seen = time_of(line).or(turn.last_seen);
        ids.iter().for_each(|id| {
            turn.open_calls.remove(id);
        });
        turn.decoder.read_event(stream_event(line, "user", None));
    }

    fn read_assistant_line(&mut self, line: &Value) {
        if line["isSidechain"] == true {
            return self.read_sidechain_line(line);
        }
        let message = &line["message"];
        if line["isApiErrorMessage"] == true {
            let (status, text) = (line["apiErrorStatus"].clone(), content_text(&message["content"]));
            let turn = self.turn();
            turn.problem = Some(TurnProblem::ApiError { status, text });
            return turn.decoder.read_event(stream_event(line, "assistant", None));
        }
        // The program writes such an answer if the model was not asked.
        if message["model"] == "<synthetic>" {
            return;
        }
        self.model = message["model"].as_str().map(str::to_owned).or(self.model.take());
        self.record_usage(message);
        self.record_unknown_blocks(&message["content"]);
        let turn = self.turn();
        turn.last_seen = time_of(line).or(turn.last_seen);
        turn.problem = None;
        turn.answers.extend(message["id"].as_str().map(str::to_owned));
        for block in blocks(&message["content"]) {
            match (block["type"].as_str(), block["id"].as_str()) {
                (Some("text"), _) => turn.last_text = block["text"].as_str().map(str::to_owned),
                (Some("tool_use"), Some(id)) => {
                    turn.last_text = None;
                    turn.open_calls.insert(id.to_owned());
                    if is_subagent_tool(block["name"].as_str().unwrap_or_default())
                        && let Some(prompt) = block["input"]["prompt"].as_str()
                    {
                        turn.subagent_prompts.insert(prompt.to_owned(), id.to_owned());
                    }
                }
                _ => {}
            }
        }
        turn.decoder.read_event(stream_event(line, "assistant", None));
    }

    /// Reads a line of a subagent in the file of its session, as older versions have them.
    fn read_sidechain_line(&mut self, line: &Value) {
        self.record_usage(&line["message"]);
        let turn = self.turn();
        let content = &line["message"]["content"];
        if line["type"] == "user" && !has_tool_result(content) {
            turn.subagent_call = turn.subagent_prompts.get(&content_text(content)).cloned();
        }
        let call = turn.subagent_call.clone().unwrap_or_else(|| "unknown".to_owned());
        self.read_subagent_line(line, &call);
    }

    /// Reads a line of the subagent that this call started.
    fn read_subagent_line(&mut self, line: &Value, call: &str) {
        if let Some(kind @ ("user" | "assistant")) = line["type"].as_str() {
            self.turn().decoder.read_event(stream_event(line, kind, Some(call)));
        }
    }

    /// Reads the log of a subagent. If it cannot be read, the decoder of the stream says that the subagent is not shown.
    fn read_subagent_log(&mut self, agent: &str, call: &str) {
        let is_plain = agent.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let path = self.subagents.join(format!("agent-{agent}.jsonl"));
        let is_file = std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if !is_plain || !is_file || self.subagents_read >= MOST_SUBAGENTS {
            return;
        }
        self.subagents_read += 1;
        let Ok(mut lines) = LogLines::open(&path, LARGEST_SESSION) else { return };
        while let Ok(Some(line)) = lines.next_line() {
            if let LogLine::Json(line) = line {
                self.record_usage(&line["message"]);
                self.read_subagent_line(&line, call);
            }
        }
    }

    fn record_usage(&mut self, message: &Value) {
        if let (Some(id), Value::Object(_)) = (message["id"].as_str(), &message["usage"]) {
            self.usage.insert(id.to_owned(), plain_usage(&message["usage"]));
        }
    }

    fn record_unknown_blocks(&mut self, content: &Value) {
        for block in blocks(content) {
            let kind = block["type"].as_str().unwrap_or("without a type");
            let is_known = KNOWN_BLOCKS.contains(&kind) || kind.ends_with("_tool_result");
            if !is_known && !self.unknown_blocks.iter().any(|known| known == kind) {
                self.unknown_blocks.push(kind.to_owned());
            }
        }
    }

    fn read_attachment(&mut self, attachment: &Value) {
        if attachment["type"] != "skill_listing" {
            return;
        }
        let Some(names) = attachment["names"].as_array() else { return };
        let known = self.skills.get_or_insert_default();
        for name in names.iter().filter_map(Value::as_str) {
            if !known.iter().any(|one| one == name) {
                known.push(name.to_owned());
            }
        }
    }
}

impl SessionLog for ClaudeLog {
    fn read_line(&mut self, line: &Value) {
        let text = |key: &str| line[key].as_str().map(str::to_owned);
        self.id = text("sessionId").or(self.id.take());
        self.version = text("version").or(self.version.take());
        match line["type"].as_str() {
            Some("user") => self.read_user_line(line),
            Some("assistant") => self.read_assistant_line(line),
            Some("attachment") => self.read_attachment(&line["attachment"]),
            Some("system") if line["subtype"] == "compact_boundary" => self.compactions += 1,
            Some("cost-state") => {
                self.total_usage = usage_by_model(&line["modelUsage"]).or(self.total_usage);
                let is_known = line["hasUnknownModelCost"] != true && self.total_usage.is_some();
                self.cost_usd = line["totalCostUSD"].as_f64().filter(|_| is_known);
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> RecordedSession {
        self.turns.pop_if(|turn| turn.is_command && !turn.has_answer());
        let unknown = unknown_parts_note(&self.unknown_blocks);
        let notes = compaction_note(self.compactions).into_iter().chain(unknown).collect();
        let seconds = self.turns.iter().map(LogTurn::seconds).sum();
        let mut counted = TokenUsage::default();
        self.usage.values().for_each(|usage| counted.add(*usage));
        let start = json!({
            "type": "system", "subtype": "init", "session_id": self.id, "model": self.model,
            "claude_code_version": self.version, "skills": self.skills,
        });
        let hides_tools = !self.unknown_blocks.is_empty();
        let close = |mut turn: LogTurn| {
            turn.decoder.read_event(start.clone());
            if let Some(result) = turn.result_event() {
                turn.decoder.read_event(result);
            }
            let mut transcript = Box::new(turn.decoder).finish();
            transcript.api_calls = Some(turn.answers.len() as u64);
            transcript.hides_tools |= hides_tools;
            RecordedTurn { prompt: turn.prompt, transcript }
        };
        let mut turns: Vec<RecordedTurn> = self.turns.into_iter().map(close).collect();
        if let Some(last) = turns.last_mut() {
            last.transcript.usage = self.total_usage.unwrap_or(counted);
            last.transcript.totals_of_session = true;
            last.transcript.cost_usd = self.cost_usd;
        }
        let agent = "Claude Code".to_owned();
        RecordedSession {
            format: SessionFormat::ClaudeCode,
            agent,
            id: self.id,
            turns,
            ended: None,
            seconds,
            notes,
        }
    }
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

fn has_tool_result(content: &Value) -> bool {
    blocks(content).any(|block| block["type"] == "tool_result")
}

fn tool_result_ids(content: &Value) -> Vec<String> {
    blocks(content).filter_map(|block| block["tool_use_id"].as_str()).map(str::to_owned).collect()
}

/// Gives the command that the user typed, which the log has as tags: its name and what follows it.
fn typed_command(text: &str) -> Option<String> {
    let between = |tag: &str| -> Option<&str> {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        Some(rest.split_once(&format!("</{tag}>"))?.0.trim())
    };
    let name = between("command-name").filter(|_| text.trim_start().starts_with("<command-"))?;
    Some(format!("{name} {}", between("command-args").unwrap_or_default()).trim_end().to_owned())
}

fn time_of(line: &Value) -> Option<jiff::Timestamp> {
    line["timestamp"].as_str()?.parse().ok()
}

/// Translates a line of the log into an event of the stream.
fn stream_event(line: &Value, kind: &str, subagent_call: Option<&str>) -> Value {
    json!({
        "type": kind,
        "message": line["message"],
        "parent_tool_use_id": subagent_call,
        "tool_use_result": line["toolUseResult"],
        "is_api_error_message": line["isApiErrorMessage"],
        "error": line["error"],
    })
}
