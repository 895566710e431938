//! What was said and done in a trial, the same for every agent.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::model::Step;
use crate::recall::recall;

/// A longer transcript is not read for a page; of it only the last answer is shown.
const MOST: u64 = 64 * 1024 * 1024;

/// How much of the last answer is shown where it is all there is.
const MOST_OUTPUT: u64 = 8 * 1024 * 1024;

/// The steps of a trial, over all turns.
pub fn steps(folder: &Path) -> Vec<Step> {
    let length = std::fs::metadata(folder.join("transcript.jsonl")).map_or(0, |file| file.len());
    let recalled = (length <= MOST).then(|| recall(folder).ok()).flatten();
    let Some(recalled) = recalled else { return last_answer(folder) };
    let last = recalled.seen.unstepped().map(|text| Step::Text(text.to_owned()));
    recalled.seen.steps.into_iter().chain(last).collect()
}

fn last_answer(folder: &Path) -> Vec<Step> {
    let mut bytes = Vec::new();
    // What cannot be read to its end is shown as far as it can.
    let _ =
        File::open(folder.join("output.txt")).and_then(|file| file.take(MOST_OUTPUT).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.is_empty() { Vec::new() } else { vec![Step::Text(text)] }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn turns_are_told_apart_and_without_facts_the_answer_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let text = |text: &str| Step::Text(text.to_owned());
        let user = |text: &str| Step::User(text.to_owned());
        assert_eq!(steps(folder.path()), []);
        write("output.txt", "second");
        assert_eq!(steps(folder.path()), [text("second")]);
        write("transcript.jsonl", "first\nsecond\n");
        let facts = json!({
            "schema_version": 1, "stream": "text", "ended": "finished", "ended_because": null, "files": [],
            "turns": [{"prompt": "a", "bytes": 6}, {"prompt": "b", "bytes": 7}], "skills": [], "left": null,
            "fixture_notes": [], "cost_usd": null, "seconds": 1.0,
            "usage": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
        });
        write("facts.json", &facts.to_string());
        assert_eq!(steps(folder.path()), [user("a"), text("first"), user("b"), text("second")]);
    }
}
