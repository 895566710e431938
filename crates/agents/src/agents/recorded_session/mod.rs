//! Reads sessions that agents recorded on their own: the logs of Claude Code and Codex, and ATIF trajectories.
//!
//! In: a file. Out: a `RecordedSession` with a `StreamTranscript` for each turn. Never: guesses what the file does not
//! say.

mod atif;
mod claude_log;
mod codex_calls;
mod codex_log;
mod log_lines;

use std::path::Path;

use serde_json::Value;

use super::StreamTranscript;
use claude_log::ClaudeLog;
use codex_log::CodexLog;
use log_lines::{LogLine, LogLines};
use practicum_core::model::{AgentEnding, count_with_noun};
use practicum_core::tree::read_bounded;

/// The largest session that is read, in bytes.
const LARGEST_SESSION: u64 = 512 * 1024 * 1024;
/// The largest trajectory that is read. It is one JSON document, so it cannot be read line by line.
const LARGEST_TRAJECTORY: u64 = 128 * 1024 * 1024;
/// The prompt of a turn whose beginning is not in the file.
const UNKNOWN_PROMPT: &str = "(the user's message is not in this session)";

/// The format of a recorded session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFormat {
    /// A log of Claude Code: `~/.claude/projects/FOLDER/SESSION.jsonl`.
    ClaudeCode,
    /// A log of Codex: `~/.codex/sessions/YEAR/MONTH/DAY/rollout-….jsonl`.
    Codex,
    /// A trajectory in Harbor's Agent Trajectory Interchange Format.
    Atif,
}

impl SessionFormat {
    /// Gives the name of the format in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SessionFormat::ClaudeCode => "claude-code",
            SessionFormat::Codex => "codex",
            SessionFormat::Atif => "atif",
        }
    }
}

/// A session that an agent recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedSession {
    /// The format of the file.
    pub format: SessionFormat,
    /// The name of the agent.
    pub agent: String,
    /// The id of the session, if the file says it.
    pub id: Option<String>,
    /// What the user asked, each with what the agent did; never empty.
    pub turns: Vec<RecordedTurn>,
    /// How the run ended, if the file says more about that than its last turn does.
    pub ended: Option<AgentEnding>,
    /// How long the agent worked in all turns together, if the file says it.
    pub seconds: Option<f64>,
    /// What a reader of the results has to know about the session.
    pub notes: Vec<String>,
}

/// One message of the user in a recorded session, and what the agent did.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedTurn {
    /// The message of the user.
    pub prompt: String,
    /// What the agent said and did.
    pub transcript: StreamTranscript,
}

/// A reader of the lines of a log.
trait SessionLog {
    /// Reads one line.
    fn read_line(&mut self, line: &Value);

    /// Gives the session, after the last line.
    fn finish(self: Box<Self>) -> RecordedSession;
}

/// Reads a session of whichever format. The error says in words why the file is none.
pub fn read_session(path: &Path) -> Result<RecordedSession, String> {
    let mut lines = LogLines::open(path, LARGEST_SESSION)?;
    let mut log: Option<Box<dyn SessionLog>> = None;
    let mut broken: Option<u64> = None;
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        number += 1;
        let value = match line {
            LogLine::Empty => continue,
            LogLine::Unreadable => {
                broken.get_or_insert(number);
                continue;
            }
            LogLine::Json(value) => value,
        };
        if log.is_none() && is_trajectory(&value) {
            return read_trajectories(path);
        }
        if log.is_none() {
            log = log_of_line(&value, path);
        }
        if let Some(log) = &mut log {
            log.read_line(&value);
        }
    }
    let Some(log) = log else {
        // A trajectory may be written over many lines, and none of them is JSON alone.
        return if broken == Some(1) { read_trajectories(path) } else { Err(no_session()) };
    };
    let mut session = log.finish();
    if session.turns.is_empty() {
        return Err("it has no message of a user or an agent".to_owned());
    }
    if let (Some(number), Some(last)) = (broken, session.turns.last_mut()) {
        let why = format!("line {number} of the session cannot be read, so something may be missing");
        last.transcript.unread_reason = Some(why);
    }
    Ok(session)
}

fn no_session() -> String {
    "it is neither a session log of Claude Code or Codex nor an ATIF trajectory".to_owned()
}

/// Gives the note about a session that was shortened to a summary; `None` if that never happened.
fn compaction_note(count: usize) -> Option<String> {
    let times = count_with_noun(count, "time");
    let what = "what came before is in the log, and later the agent had only a summary of it";
    (count > 0).then(|| format!("the session was compacted {times}; {what}"))
}

/// Gives the note about parts of a session that this program does not know; `None` if it knows all.
fn unknown_parts_note(kinds: &[String]) -> Option<String> {
    let what = "the session has parts that are not known here, so calls of tools may be missing";
    (!kinds.is_empty()).then(|| format!("{what}: {}", kinds.join(", ")))
}

/// Gives a reader for the log that a line belongs to; `None` if the line says nothing about that.
fn log_of_line(line: &Value, path: &Path) -> Option<Box<dyn SessionLog>> {
    let kind = line["type"].as_str()?;
    if line["payload"].is_object() && matches!(kind, "session_meta" | "response_item" | "event_msg") {
        return Some(Box::new(CodexLog::default()));
    }
    let of_claude = line["sessionId"].is_string() || line["leafUuid"].is_string();
    of_claude.then(|| Box::new(ClaudeLog::with_subagents_beside(path)) as Box<dyn SessionLog>)
}

fn is_trajectory(document: &Value) -> bool {
    document["schema_version"].as_str().is_some_and(|version| version.starts_with("ATIF-"))
}

/// Reads a file with one trajectory: a JSON document, or a line of JSON as `export` writes it.
fn read_trajectories(path: &Path) -> Result<RecordedSession, String> {
    let bytes = read_bounded(path, LARGEST_TRAJECTORY)?;
    let documents: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>().take(1000).collect();
    match documents.as_deref() {
        Ok([document]) if is_trajectory(document) => atif::read_trajectory(document),
        Ok(all @ [first, _, ..]) if is_trajectory(first) => Err(format!(
            "it has {} of ATIF; give a file with one, for example from `export --format atif --case ID`",
            count_with_noun(all.len(), "trajectory")
        )),
        Ok(_) | Err(_) => Err(no_session()),
    }
}

/// Gives the text of a message or a result: a text, or a list of parts. A picture is only named.
fn content_text(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| match part["type"].as_str() {
        Some("image" | "input_image") => Some("[image]"),
        _ => part["text"].as_str(),
    });
    content.as_str().map_or_else(|| parts.collect::<Vec<&str>>().join("\n"), str::to_owned)
}
