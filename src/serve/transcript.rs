//! What was said and done in a trial, the same for every agent.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Deserialize;

use crate::agents::{self, DecoderKind};
use crate::model::{Step, TrialRecord};

/// What is read of a transcript at most; a longer one is shown up to here.
const MOST: u64 = 64 * 1024 * 1024;

/// What a trial's folder says about its transcript, if it does.
#[derive(Deserialize)]
struct Facts {
    stream: String,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
struct Turn {
    prompt: String,
    /// How many bytes of the transcript are of this turn.
    bytes: u64,
}

/// The steps of a trial, over all turns.
pub fn steps(folder: &Path, record: &TrialRecord) -> Vec<Step> {
    let facts: Option<Facts> =
        std::fs::read(folder.join("facts.json")).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Some(Facts { stream, turns }) = facts else {
        // Without, the agent's own stream is the best guess, and what it was told is not known.
        let kind = agents::agent(&record.condition.agent).map(|agent| agent.decoder);
        return said(folder, 0, MOST, kind.or_else(|| agents::decoder("text")));
    };
    let mut steps = Vec::new();
    let mut from = 0;
    let last = turns.len().saturating_sub(1);
    for (number, turn) in turns.into_iter().enumerate() {
        let length = if number == last { MOST } else { turn.bytes };
        steps.push(Step::User(turn.prompt));
        steps.extend(said(folder, from, length.min(MOST), agents::decoder(&stream)));
        from += turn.bytes;
    }
    steps
}

/// What a part of the transcript says.
fn said(folder: &Path, from: u64, length: u64, kind: Option<&DecoderKind>) -> Vec<Step> {
    let Some(kind) = kind else { return Vec::new() };
    let mut decoder = (kind.start)();
    let opened = File::open(folder.join("transcript.jsonl"))
        .and_then(|mut file| file.seek(SeekFrom::Start(from)).map(|_| file));
    let Ok(file) = opened else { return Vec::new() };
    let mut part = BufReader::new(file.take(length));
    let mut bytes = Vec::new();
    if decoder.takes_bytes() {
        // What cannot be read to its end is shown as far as it can.
        let _ = part.read_to_end(&mut bytes);
        decoder.bytes(&bytes);
    } else {
        while let Ok(1..) = part.read_until(b'\n', &mut bytes) {
            decoder.line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
            bytes.clear();
        }
    }
    let transcript = decoder.finish();
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

    #[test]
    fn turns_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        write("transcript.jsonl", "first\nsecond\n");
        let record: TrialRecord = serde_json::from_value(serde_json::json!({
            "trial": "t", "suite": "s", "case": "c", "attempt": 1, "ended": "finished", "ended_because": null,
            "condition": {"agent": "mine", "model": null, "arm": "with", "mode": "baseline"},
            "verdict": "pass", "checks": [], "fired": null, "cost_usd": null, "model": null, "seconds": 1.0,
            "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
        }))
        .expect("a record");
        let text = |text: &str| Step::Text(text.to_owned());
        let user = |text: &str| Step::User(text.to_owned());
        assert_eq!(steps(folder.path(), &record), [text("first\nsecond")]);
        write(
            "facts.json",
            r#"{"stream": "text", "turns": [{"prompt": "a", "bytes": 6}, {"prompt": "b", "bytes": 7}]}"#,
        );
        assert_eq!(steps(folder.path(), &record), [user("a"), text("first"), user("b"), text("second")]);
    }
}
