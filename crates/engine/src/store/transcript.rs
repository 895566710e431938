//! Reads the steps of a stored trial, in the same form for every agent.
//!
//! In: a trial's folder. Out: its steps, up to a limit. Never: grades them.

use std::path::Path;

use serde_json::Value;

use crate::store::TrialFacts;
use crate::workspace::run::decode;
use practicum_agents::agents::{AgentRegistry, DecoderKind};
use practicum_core::model::{Step, TrialRecord};

/// The steps of a trial, over all turns.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialSteps {
    /// The steps. Messages of the user are included only if the trial's folder has them.
    pub steps: Vec<Step>,
    /// Whether the transcript was read to its end.
    pub is_complete: bool,
}

/// Reads at most `most` bytes of a trial's transcript, with the decoders that are known.
pub fn read_steps(folder: &Path, record: &TrialRecord, most: u64, known: &AgentRegistry) -> TrialSteps {
    let length = std::fs::metadata(folder.join("transcript.jsonl")).map_or(0, |metadata| metadata.len());
    let Ok(TrialFacts { stream, turns, .. }) = TrialFacts::read(folder) else {
        // A run of an earlier version stored no facts. The agent's own stream format is the best guess.
        let kind = known.agent(&record.condition.agent).map(|agent| agent.decoder);
        let steps = decode_part(folder, 0, most, kind.or_else(|| known.decoder("text")));
        return TrialSteps { steps, is_complete: length <= most };
    };
    let mut steps = Vec::new();
    let mut from = 0;
    let last = turns.len().saturating_sub(1);
    for (number, turn) in turns.into_iter().enumerate() {
        let room = most.saturating_sub(from);
        let bytes = if number == last { room } else { turn.bytes.min(room) };
        steps.push(Step::User(turn.prompt));
        steps.extend(decode_part(folder, from, bytes, known.decoder(&stream)));
        from = from.saturating_add(turn.bytes);
    }
    TrialSteps { steps, is_complete: length <= most }
}

/// Describes the input of a tool for people: part by part, with texts of several lines as they are.
pub fn describe_tool_input(input: &Value) -> String {
    match input {
        Value::Object(parts) => {
            let parts: Vec<String> =
                parts.iter().map(|(name, value)| describe_input_part(name, value)).collect();
            parts.join("\n")
        }
        other => plain_value(other),
    }
}

fn describe_input_part(name: &str, value: &Value) -> String {
    match plain_value(value) {
        text if text.contains('\n') => format!("{name}:\n{text}"),
        text => format!("{name}: {text}"),
    }
}

fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => serde_json::to_string_pretty(value).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Describes the input of a tool in one line: the first line of its first text.
pub fn summarise_tool_input(input: &Value) -> String {
    let first = match input {
        Value::Object(parts) => parts.values().find_map(Value::as_str),
        other => other.as_str(),
    };
    first.and_then(|text| text.lines().next()).unwrap_or_default().chars().take(LONGEST_SUMMARY).collect()
}

const LONGEST_SUMMARY: usize = 120;

/// Decodes a part of the transcript.
fn decode_part(folder: &Path, from: u64, length: u64, kind: Option<&DecoderKind>) -> Vec<Step> {
    let Some(kind) = kind else { return Vec::new() };
    let part = from..from.saturating_add(length);
    let transcript = decode(&folder.join("transcript.jsonl"), part, kind);
    let mut steps = transcript.steps;
    let spoke = steps.iter().any(|step| matches!(step, Step::Text(_)));
    if !spoke && !transcript.output.is_empty() {
        steps.push(Step::Text(transcript.output));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> TrialRecord {
        serde_json::from_value(serde_json::json!({
            "trial": "t", "suite": "s", "case": "c", "attempt": 1, "ended": "finished", "ended_because": null,
            "condition": {"agent": "mine", "model": null, "arm": "with", "mode": "baseline"},
            "verdict": "pass", "checks": [], "fired": null, "cost_usd": null, "model": null, "seconds": 1.0,
            "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
        }))
        .expect("a record")
    }

    #[test]
    fn turns_are_told_apart_and_what_is_cut_is_said_to_be() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let read = |most: u64| read_steps(folder.path(), &record(), most, &AgentRegistry::default());
        let text = |text: &str| Step::Text(text.to_owned());
        let user = |text: &str| Step::User(text.to_owned());
        write("transcript.jsonl", "first\nsecond\n");
        assert_eq!(read(100), TrialSteps { steps: vec![text("first\nsecond")], is_complete: true });
        let facts = serde_json::json!({
            "schema_version": 1, "stream": "text", "ended": "finished", "ended_because": null, "files": [],
            "turns": [{"prompt": "a", "bytes": 6}, {"prompt": "b", "bytes": 7}], "skills": [], "left": null,
            "given": [], "cost_usd": null, "seconds": 1.0,
            "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
        });
        write("facts.json", &facts.to_string());
        let steps = vec![user("a"), text("first"), user("b"), text("second")];
        assert_eq!(read(100), TrialSteps { steps, is_complete: true });
        let steps = vec![user("a"), text("first"), user("b"), text("sec")];
        assert_eq!(read(9), TrialSteps { steps, is_complete: false });
    }

    #[test]
    fn what_a_tool_was_asked_can_be_read() {
        for (input, expected, brief) in [
            (
                serde_json::json!({"file_path": "a.md", "content": "# A\n\nb\n", "limit": 2}),
                "file_path: a.md\ncontent:\n# A\n\nb\n\nlimit: 2",
                "a.md",
            ),
            (serde_json::json!({"todos": [1]}), "todos:\n[\n  1\n]", ""),
            (serde_json::json!("ls\n-la"), "ls\n-la", "ls"),
            (serde_json::json!({}), "", ""),
            (Value::Null, "null", ""),
        ] {
            assert_eq!(
                (describe_tool_input(&input).as_str(), summarise_tool_input(&input).as_str()),
                (expected, brief)
            );
        }
    }

    #[test]
    fn a_trial_that_said_nothing_has_no_steps() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(
            read_steps(folder.path(), &record(), 100, &AgentRegistry::default()),
            TrialSteps { steps: Vec::new(), is_complete: true }
        );
    }
}
