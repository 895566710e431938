//! What a file says of itself.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;

use super::{Kind, eval_document};

/// The comment that ends, or begins, what is written in formats that have comments.
pub const MARK: &str = "<!-- written by practicum -->";

/// How much of a file's beginning and end is looked at.
const PIECE: u64 = 16 * 1024;

/// A larger JSON document is not read to its end.
const LARGEST_DOCUMENT: u64 = 16 * 1024 * 1024;

/// How files of ours begin in formats that have no comments.
const BEGINNINGS: [&str; 3] = [
    "run,suite,case,agent,model,arm,mode,attempt,trial,trial_verdict,",
    "schema_version,run,trial,suite,case,agent,model,arm,mode,attempt,",
    "{\"line\":\"cassette\",\"schema_version\":",
];

/// The keys by which a JSON document of ours is known: summary, comparison, run, trial, row of an export,
/// capture, event of a run, checks of a captured text, run that was graded again.
const DOCUMENTS: [&[&str]; 9] = [
    &["schema_version", "run", "exit", "totals", "gates", "cases"],
    &["schema_version", "exit", "comparisons"],
    &["schema_version", "run", "practicum", "suites", "trials"],
    &["schema_version", "trial", "suite", "case", "condition", "attempt", "checks"],
    &["schema_version", "run", "trial", "suite", "case", "arm", "attempt", "verdict"],
    &["schema_version", "run", "suite", "case", "asked", "gave"],
    &["schema_version", "event", "run", "trials"],
    &["schema_version", "results", "gates", "ok"],
    &["schema_version", "run", "graded_from", "changes", "summary"],
];

/// What a file's content tells.
pub fn look_at(path: &Path, length: u64) -> Kind {
    let Ok(mut file) = File::open(path) else { return Kind::Other };
    let Some(head) = piece(&mut file, 0) else { return Kind::Other };
    let head = head.strip_prefix('\u{feff}').unwrap_or(&head);
    if BEGINNINGS.iter().any(|beginning| head.starts_with(beginning)) || head.lines().any(is_mark) {
        return Kind::Written;
    }
    let tail = piece(&mut file, length.saturating_sub(PIECE)).unwrap_or_default();
    if tail.lines().any(|line| is_mark(line) || names_record(line)) {
        return Kind::Written;
    }
    if head.trim_start().starts_with('{') && is_written_document(path) {
        return Kind::Written;
    }
    let is_yaml = path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    match is_yaml && head.lines().any(names_format) {
        true => Kind::Evals,
        false => eval_document::look_at(path, length),
    }
}

/// Whether a line can only be ours: the mark alone, or the first element of our JUnit report.
fn is_mark(line: &str) -> bool {
    let line = line.trim();
    line == MARK || line.starts_with("<testsuites name=\"practicum\"")
}

/// The last line of the closing summary, which says where the record is.
fn names_record(line: &str) -> bool {
    let said = line.trim_start().strip_prefix("record: ");
    said.is_some_and(|path| path.contains(".practicum/runs/") || path.contains(".practicum\\runs\\"))
}

/// The line that every eval file in the native format has: `practicum: 1`.
fn names_format(line: &str) -> bool {
    let value = line.strip_prefix("practicum:").and_then(|value| value.split('#').next());
    value.is_some_and(|value| value.trim().parse::<u32>().is_ok())
}

/// Whether the first JSON document of a file is one that only this program writes.
fn is_written_document(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let reader = BufReader::new(file.take(LARGEST_DOCUMENT));
    let mut values = serde_json::Deserializer::from_reader(reader).into_iter::<Value>();
    let Some(Ok(Value::Object(object))) = values.next() else { return false };
    let has = |keys: &[&str]| keys.iter().all(|key| object.contains_key(*key));
    DOCUMENTS.iter().any(|keys| has(keys))
}

/// A part of a file as text; `None` if it has bytes that no text has.
fn piece(file: &mut File, from: u64) -> Option<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from)).ok()?;
    file.take(PIECE).read_to_end(&mut bytes).ok()?;
    if bytes.contains(&0) { None } else { Some(String::from_utf8_lossy(&bytes).into_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_program_writes_is_taken_for_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text, written, evals) in [
            ("a.md", "# Report\n\n<!-- written by practicum -->\n", true, false),
            (
                "b.md",
                "# About practicum and its <!-- written by practicum -->\n\n    practicum: 1\n\nrecord: the best so far\n",
                false,
                false,
            ),
            ("c.xml", "<?xml version=\"1.0\"?>\n<testsuites name=\"practicum\" tests=\"0\">", true, false),
            ("d.xml", "<?xml version=\"1.0\"?>\n<testsuites name=\"nextest\">", false, false),
            ("e.yaml", "# mine\npracticum: 1\ncases: []\n", false, true),
            ("f.yaml", "jobs:\n  practicum: 1\n", false, false),
            ("g.yaml", "ripgrep: 14.1\npracticum: 0.1\n", false, false),
            ("h.json", "{\"schema_version\": 1, \"run\": \"r\", \"name\": \"mine\"}", false, false),
            (
                "i.json",
                "{\"cases\": [], \"exit\": 0, \"gates\": [], \"run\": \"r\", \"schema_version\": 1, \"totals\": {}}",
                true,
                false,
            ),
            ("j.json", "{\"practicum\": 1, \"cases\": []}", false, true),
            ("k.json", "{\"practicum\": ", false, false),
            ("l.txt", "PASS\n\n  record: .practicum/runs/20261116-213540415-9d4a82\n", true, false),
            ("m.csv", "run,suite,case\n1,2,3\n", false, false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            let kind = look_at(&path, text.len() as u64);
            assert_eq!((kind == Kind::Written, kind == Kind::Evals), (written, evals), "{name}");
        }
    }
}
