//! Reads the session files that an agent leaves in its home: what it and its subagents sent to their models.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{DecoderKind, codex};
use crate::llm::{ModelApi, ModelRequest};
use practicum_core::tree::read_bounded;

/// The most session files of one trial that are read, and the largest one.
const MOST_FILES: usize = 200;
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// What an agent's session files contain.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionRecord {
    /// This kind of agent leaves no session files that are read here.
    NotKept,
    /// The files that should be there are missing or cannot be read, with the reason.
    Missing(String),
    /// The conversation of each session, the subagents' included.
    Conversations(Vec<ModelRequest>),
}

/// Reads the session files in the home of an agent whose stream is decoded by this decoder. Codex has threads that
/// its stream does not show at all; each has a file in `.codex/sessions`.
pub fn read_session_files(decoder: &DecoderKind, home: &Path) -> SessionRecord {
    if decoder.name != codex::DECODER.name {
        return SessionRecord::NotKept;
    }
    let files = match rollout_files(&home.join(".codex/sessions")) {
        Ok(files) if files.is_empty() => {
            return SessionRecord::Missing("the agent left no session files".to_owned());
        }
        Ok(files) => files,
        Err(why) => return SessionRecord::Missing(why),
    };
    match files.iter().map(|file| read_rollout(file)).collect() {
        Ok(conversations) => SessionRecord::Conversations(conversations),
        Err(why) => SessionRecord::Missing(why),
    }
}

/// Finds the files of all threads: `sessions/<year>/<month>/<day>/rollout-….jsonl`. Links are not followed.
fn rollout_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut open, mut files) = (vec![(folder.to_owned(), 0)], Vec::new());
    while let Some((folder, depth)) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let kind = entry.file_type().map_err(|error| error.to_string())?;
            let is_rollout = entry.file_name().to_string_lossy().ends_with(".jsonl");
            if kind.is_dir() && depth < 4 {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file() && is_rollout {
                files.push(entry.path());
            }
            if files.len() + open.len() > MOST_FILES {
                return Err("the agent left too many session files".to_owned());
            }
        }
    }
    Ok(files)
}

/// Reads one thread. Its lines of type `response_item` are the items that were sent to the model.
fn read_rollout(file: &Path) -> Result<ModelRequest, String> {
    let bytes = read_bounded(file, LARGEST_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut items = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line: Value = serde_json::from_str(line)
            .map_err(|error| format!("a session file of the agent cannot be read: {error}"))?;
        if line["type"] == "response_item" {
            items.push(line["payload"].clone());
        }
    }
    let request = json!({"model": "", "input": items});
    ModelApi::OpenAiResponses.wire_format().request_from_json(&request).map_err(|problem| problem.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::find_decoder;

    #[test]
    fn the_threads_of_codex_are_read_with_what_their_tools_gave() {
        let home = tempfile::tempdir().expect("a folder");
        let codex = find_decoder("codex-jsonl").expect("a decoder");
        assert!(matches!(read_session_files(codex, home.path()), SessionRecord::Missing(_)));
        let claude = find_decoder("claude-stream-json").expect("a decoder");
        assert_eq!(read_session_files(claude, home.path()), SessionRecord::NotKept);

        let folder = home.path().join(".codex/sessions/2026/11/17");
        std::fs::create_dir_all(&folder).expect("create");
        let item = |payload: Value| json!({"type": "response_item", "payload": payload}).to_string();
        let thread = [
            json!({"type": "session_meta", "payload": {}}).to_string(),
            item(json!({"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": "{}"})),
            item(json!({"type": "function_call_output", "call_id": "c", "output": "Say ahoy."})),
        ];
        std::fs::write(folder.join("rollout-1.jsonl"), thread.join("\n")).expect("write");
        let SessionRecord::Conversations(read) = read_session_files(codex, home.path()) else {
            panic!("not read")
        };
        assert!(format!("{read:?}").contains("Say ahoy."));

        std::fs::write(folder.join("rollout-2.jsonl"), "{\"type\": \"resp").expect("write");
        assert!(matches!(read_session_files(codex, home.path()), SessionRecord::Missing(_)));
    }
}
