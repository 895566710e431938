//! Helpers for tests of the decoders.

use super::{DecoderKind, StreamTranscript, skills_read_in};
use practicum_core::model::Step;

/// Decodes a stream that was recorded from the real CLI.
pub fn decode_recorded(stream: &DecoderKind, name: &str) -> StreamTranscript {
    let path = format!("{}/../../tests/fixtures/streams/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a recorded stream");
    let mut decoder = (stream.new_decoder)();
    text.lines().for_each(|line| {
        decoder.read_line(line);
    });
    decoder.finish()
}

/// Gives the names of the activated skills, in order.
pub fn activation_names(seen: &StreamTranscript) -> String {
    let read = skills_read_in(&seen.steps);
    let names = seen.activations.iter().chain(&read).map(|one| match &one.plugin {
        Some(plugin) => format!("{plugin}:{}", one.skill),
        None => one.skill.clone(),
    });
    names.collect::<Vec<String>>().join(" ")
}

/// Describes the tool calls, each with the first text of its input and its result.
pub fn describe_tool_calls(seen: &StreamTranscript) -> String {
    let calls = seen.steps.iter().filter_map(|step| match step {
        Step::Tool(call) => {
            let keys = ["command", "path", "prompt", "name"];
            let about = keys.iter().find_map(|key| call.input[key].as_str()).unwrap_or_default();
            let end = match call.ok {
                Some(true) => "ok",
                Some(false) => "failed",
                None => "open",
            };
            Some(format!("{} {about} = {end}: {}", call.name, call.result.as_deref().unwrap_or_default()))
        }
        Step::User(_) | Step::Text(_) => None,
    });
    calls.collect::<Vec<String>>().join(", ")
}
