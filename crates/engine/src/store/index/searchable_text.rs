//! The text of a trial that can be searched: the agent's output, and the texts in its stream.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use practicum_core::tree::open_regular;
use serde_json::Value;

/// The most bytes of output and stream that are read. Later text is not found.
const MOST_OUTPUT_BYTES: u64 = 32 * 1024;
const MOST_STREAM_BYTES: u64 = 128 * 1024;

pub fn searchable_text(trial: &Path) -> String {
    let mut out =
        String::from_utf8_lossy(&read_beginning(&trial.join("output.txt"), MOST_OUTPUT_BYTES)).into_owned();
    let stream = read_beginning(&trial.join("transcript.jsonl"), MOST_STREAM_BYTES);
    for line in BufReader::new(stream.as_slice()).split(b'\n').map_while(Result::ok) {
        match serde_json::from_slice(&line) {
            Ok(event) => collect(&event, &mut out),
            // A line of plain text is added as it is. Half an event at the end is left out.
            Err(_) if line.first().is_none_or(|byte| *byte != b'{') => {
                add(&String::from_utf8_lossy(&line), &mut out);
            }
            Err(_) => {}
        }
    }
    out
}

/// Collects every text of several words, whatever its key. Single words are names, ids and times, which are the
/// same in every trial.
fn collect(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => add(text, out),
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn add(text: &str, out: &mut String) {
    if text.trim().contains(char::is_whitespace) {
        out.push('\n');
        out.push_str(text);
    }
}

/// Reads the beginning of a file. Errors are ignored: a missing file only cannot be searched.
fn read_beginning(path: &Path, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = open_regular(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_several_words_are_found_on_any_stream() {
        let trial = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(trial.path().join(name), text).expect("written");
        assert_eq!(searchable_text(trial.path()), "");
        write("output.txt", "Done.");
        write(
            "transcript.jsonl",
            "{\"type\":\"init\",\"tools\":[\"Bash\",\"Read\"]}\nplain words\n\
             {\"message\":{\"content\":[{\"input\":{\"command\":\"git log\"}}]}}\n{\"text\":\"half a li",
        );
        assert_eq!(searchable_text(trial.path()), "Done.\nplain words\ngit log");
    }
}
