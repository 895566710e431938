//! Recognises by its content whether this program wrote a file.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::BufReader;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::unpacked::Unpacked;
use super::{ContentKind, eval_document};

/// The comment at the end or the beginning of the files that this program writes in formats that have comments.
pub const OWN_FILE_MARK: &str = "<!-- written by practicum -->";

/// The number of bytes that are inspected at the beginning and at the end of a file.
const INSPECTED_BYTES: u64 = 16 * 1024;

/// The beginnings of this program's files in formats that have no comments.
const OWN_FILE_BEGINNINGS: [&str; 4] = [
    "run,suite,case,agent,model,arm,mode,attempt,trial,trial_verdict,",
    "schema_version,run,trial,suite,case,agent,model,arm,mode,attempt,",
    "run,trial,suite,case,agent,model,arm,mode,attempt,",
    "{\"line\":\"cassette\",\"schema_version\":",
];

/// The keys by which a JSON document of this program is recognised: summary, comparison, run, trial, row of an
/// export, capture, events of a run, checks of a captured text, run that was regraded, facts of a trial, stored baseline. A key
/// after a dot is in the object under the key before the dot.
const OWN_DOCUMENT_KEYS: [&[&str]; 14] = [
    &["schema_version", "run", "exit", "totals", "gates", "cases"],
    &["schema_version", "exit", "comparisons"],
    &["schema_version", "run", "cases"],
    &["schema_version", "run", "practicum", "suites", "trials"],
    &["schema_version", "trial", "suite", "case", "condition", "attempt", "checks"],
    &["schema_version", "run", "trial", "suite", "case", "arm", "attempt", "verdict"],
    &["schema_version", "run", "suite", "case", "asked", "gave"],
    &["schema_version", "event", "run", "trials"],
    &["event", "trial", "suite", "case", "condition", "attempt"],
    &["event", "record.trial", "record.condition", "record.checks", "record.verdict"],
    &["event", "summary.schema_version", "summary.totals", "summary.gates", "summary.cases"],
    &["schema_version", "results", "gates", "ok"],
    &["schema_version", "run", "graded_from", "changes", "summary"],
    &["schema_version", "stream", "turns", "ended", "skills", "left", "given"],
];

/// Classifies a file by its content.
pub fn classify_by_content(file: &Unpacked<'_>) -> ContentKind {
    let Some(head) = file.head(INSPECTED_BYTES) else { return ContentKind::Other };
    if is_index_of_runs(&head) {
        return ContentKind::Written;
    }
    let Some(head) = text_of(head) else { return ContentKind::Other };
    let head = head.strip_prefix('\u{feff}').unwrap_or(&head);
    if begins_as_own_file(head) || head.lines().any(is_own_file_mark) {
        return ContentKind::Written;
    }
    let tail = file.tail(INSPECTED_BYTES).and_then(text_of).unwrap_or_default();
    if tail.lines().any(|line| is_own_file_mark(line) || is_record_location_line(line)) {
        return ContentKind::Written;
    }
    let is_markdown = file.path().extension().is_some_and(|ending| ending == "md");
    // Documents may quote a few lines of this program's output.
    if !is_markdown && head.lines().chain(tail.lines()).any(is_terminal_line) {
        return ContentKind::Written;
    }
    if is_shown_trial(head, &tail) || are_annotations(head) {
        return ContentKind::Written;
    }
    if head.trim_start().starts_with(['{', '[']) && is_own_document(file) {
        return ContentKind::Written;
    }
    let is_yaml = file.path().extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    match is_yaml && head.lines().any(is_native_format_line) {
        true => ContentKind::Evals,
        false => eval_document::classify_eval_document(file),
    }
}

/// Says whether a file is a copy of the index of runs, a database in which only this program has these tables.
fn is_index_of_runs(head: &[u8]) -> bool {
    let has = |words: &[u8]| head.windows(words.len()).any(|bytes| bytes == words);
    head.starts_with(b"SQLite format 3\0") && has(b"CREATE TABLE decided (") && has(b"CREATE TABLE trials (")
}

/// Says whether a text begins as this program's files do. Other programs save tables with other separators.
fn begins_as_own_file(head: &str) -> bool {
    let line = head.lines().next().unwrap_or_default();
    let table: String = line
        .chars()
        .filter(|letter| *letter != '"')
        .map(|letter| if matches!(letter, ';' | '\t') { ',' } else { letter })
        .collect();
    OWN_FILE_BEGINNINGS.iter().any(|beginning| head.starts_with(beginning) || table.starts_with(beginning))
}

/// Says whether only this program writes such a line: the mark alone, or the first element of its JUnit report.
fn is_own_file_mark(line: &str) -> bool {
    let line = line.trim();
    line == OWN_FILE_MARK || line.starts_with("<testsuites name=\"practicum\"")
}

/// Says whether a line is the last line of the closing summary, which says where the record is.
fn is_record_location_line(line: &str) -> bool {
    let said = line.trim_start().strip_prefix("record: ");
    said.is_some_and(|path| path.contains(".practicum/runs/") || path.contains(".practicum\\runs\\"))
}

/// Says whether only this program prints such a line: the plan of a run, a trial that finished, the result of a gate, or
/// the end of a check. What it prints before may quote evals.
fn is_terminal_line(line: &str) -> bool {
    let line = line.trim_end();
    let is_finished_trial = || {
        let verdict = line.strip_prefix('[').and_then(|line| line.split_once("] "));
        verdict.is_some_and(|(count, said)| {
            let is_count = count.split_once('/').is_some_and(|(_, all)| all.parse::<usize>().is_ok());
            let has_verdict = ["passed ", "failed ", "not scored "].iter().any(|word| said.starts_with(word));
            is_count && has_verdict && said.contains(" #") && said.ends_with(" s)")
        })
    };
    let is_plan = begins_with_words(line, "plan: # trial of # case in # suite");
    let is_end_of_check = begins_with_words(line, "# file # case # error # warning # notice");
    let is_gate = || {
        let ends = [" holds", " fails", " open", " not measured"];
        let is_result = line.contains(" (needs ") && ends.iter().any(|end| line.ends_with(end));
        is_result && line.trim_start().starts_with("gate ")
    };
    is_plan || is_end_of_check || is_finished_trial() || is_gate() || line == NOTHING_WAS_RUN
}

/// Says whether a line begins with these words, or with their plurals. `#` stands for a number.
fn begins_with_words(line: &str, words: &str) -> bool {
    let mut said = line.split_whitespace();
    words.split(' ').all(|word| {
        said.next().is_some_and(|said| match word {
            "#" => said.parse::<usize>().is_ok(),
            _ => said.starts_with(word),
        })
    })
}

/// The last line of a run that stops because an eval file has errors.
const NOTHING_WAS_RUN: &str = "error: some eval files cannot be understood; nothing was run";

/// Says whether a line is the one that every eval file in the native format has: `practicum: 1`.
fn is_native_format_line(line: &str) -> bool {
    let value = line.strip_prefix("practicum:").and_then(|value| value.split('#').next());
    value.is_some_and(|value| value.trim().parse::<u32>().is_ok())
}

/// Says whether a text contains the output of `show` for a trial: its case, and the path of its files.
fn is_shown_trial(head: &str, tail: &str) -> bool {
    let names_case = |line: &str| {
        let said = line.trim_start().strip_prefix("case ");
        said.is_some_and(|said| said.contains(" of ") && said.contains(", "))
    };
    let names_files = |line: &str| {
        let said = line.trim_start().strip_prefix("files: ");
        said.is_some_and(|path| path.contains(".practicum/runs/") && path.contains("/trials/"))
    };
    head.lines().any(names_case) && tail.lines().any(names_files)
}

/// Says whether a text consists of annotations for GitHub, one of which is about a trial of this program.
fn are_annotations(head: &str) -> bool {
    // The last line may be cut off.
    let mut lines = head.lines().filter(|line| !line.trim().is_empty()).peekable();
    let of_trial = |line: &str| {
        let said = line.split_once("title=").and_then(|(_, said)| said.split_once("::"));
        said.is_some_and(|(title, message)| title.contains(" of ") && message.contains("%0Arun "))
    };
    let is_annotation = |line: &str| {
        ["::error ", "::warning ", "::notice::"].iter().any(|beginning| line.starts_with(beginning))
    };
    let first_is_ours = lines.peek().is_some_and(|line| of_trial(line));
    first_is_ours && lines.all(is_annotation)
}

/// Says whether the first JSON document of a file, or the first in its list, is one that only this program writes.
fn is_own_document(file: &Unpacked<'_>) -> bool {
    let Some(reader) = file.reader() else { return false };
    let keys = RefCell::default();
    let mut document = serde_json::Deserializer::from_reader(BufReader::new(reader));
    // A document with an error may have its keys before the error.
    let _ = DocumentKeyCollector { keys: &keys, prefix: "" }.deserialize(&mut document);
    let keys = keys.into_inner();
    OWN_DOCUMENT_KEYS.iter().any(|wanted| wanted.iter().all(|key| keys.contains(*key)))
}

/// A visitor that collects the keys of a document while it is read, and keeps nothing else.
struct DocumentKeyCollector<'k> {
    keys: &'k RefCell<HashSet<String>>,
    /// The prefix of each key.
    prefix: &'k str,
}

/// The greatest number of keys that are read. No document of this program has more.
const MAX_KEYS: usize = 1000;

impl<'de> DeserializeSeed<'de> for DocumentKeyCollector<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentKeyCollector<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let is_nested = self.prefix.is_empty() && (key == "record" || key == "summary");
            let above = format!("{key}.");
            if self.keys.borrow().len() < MAX_KEYS {
                self.keys.borrow_mut().insert(format!("{}{key}", self.prefix));
            }
            match is_nested {
                true => map.next_value_seed(DocumentKeyCollector { keys: self.keys, prefix: &above })?,
                false => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        // The first element is enough; the others are not read.
        list.next_element_seed(self).map(|_| ())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Gives bytes as text; `None` if they are not text.
fn text_of(bytes: Vec<u8>) -> Option<String> {
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
            (
                "n.jsonl",
                "{\"event\":\"trial_finished\",\"record\":{\"trial\":\"t\",\"condition\":{},\"checks\":[],\"verdict\":\"pass\"}}\n{}\n",
                true,
                false,
            ),
            ("o.jsonl", "{\"event\":\"click\",\"record\":{\"trial\":\"t\"}}\n", false, false),
            (
                "p.json",
                "[{\"schema_version\": 1, \"results\": [], \"gates\": [], \"ok\": true}, 1]",
                true,
                false,
            ),
            // Cut off after the keys by which it is recognised.
            (
                "q.json",
                "{\"schema_version\": 1, \"run\": \"r\", \"exit\": 0, \"totals\": {}, \"gates\": [], \"cases\": [{\"id",
                true,
                false,
            ),
            (
                "r.txt",
                "x-1: failed\n  case x of e, own with, 0.0 s\n  ✗ a: b\n  files: .practicum/runs/r/trials/x-1\n",
                true,
                false,
            ),
            (
                "pasted.md",
                "# What came of it\n\n```\n$ practicum show\nx-1: failed\n  case x of e, own with, 0.0 s\n  ✗ a: b\n  files: .practicum/runs/r/trials/x-1\n```\n",
                true,
                false,
            ),
            ("s.txt", "x-1: failed\n  files: .practicum/runs/r/trials/x-1\n", false, false),
            (
                "t.log",
                "::error file=e.yaml,line=1,title=x of e::a: not found%0Arun 1 with own\n::notice::and 2 more trials did not pass\n",
                true,
                false,
            ),
            ("plan.log", "plan: 2 trials of 1 case in 1 suite with builtin\n", true, false),
            (
                "plan.md",
                "    plan: 2 trials of 1 case in 1 suite with builtin\nplan: 2 trials of 1 case in 1 suite\n",
                false,
                false,
            ),
            ("plan.txt", "plan: 3 trials of the new case in the suite\n", false, false),
            ("end.log", "[ 3/12] not scored a #2 (builtin, without, 0.4 s)\n", true, false),
            ("tests.log", "[3/12] passed all of them (0.4 s)\n", false, false),
            ("checked.txt", "ok a.json\n17 files, 46 cases: 0 errors, 19 warnings, 0 notices\n", true, false),
            (
                "end.txt",
                "FAIL  0 of 1 trial passed\n  gate pass_rate of e: 0.00 [0.00, 0.97] (needs 1.00) fails\n",
                true,
                false,
            ),
            ("harbour.txt", "The gate holds (needs paint).\n", false, false),
            ("lint.txt", "17 files: 0 errors, 19 warnings\n", false, false),
            ("refused.txt", "error: some eval files cannot be understood; nothing was run\n", true, false),
            ("trials.csv", "run,trial,suite,case,agent,model,arm,mode,attempt,verdict,why\n", true, false),
            (
                "checks.csv",
                "\"run\";\"trial\";\"suite\";\"case\";\"agent\";\"model\";\"arm\";\"mode\";\"attempt\";\"check\"\n",
                true,
                false,
            ),
            ("u.log", "::error file=e.yaml,line=1,title=x of e::a: not found\n", false, false),
            ("v.log", "make\n::error file=e,line=1,title=x of e::a%0Arun 1 with own\n", false, false),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            let kind = classify_by_content(&Unpacked::new(&path));
            let found = (kind == ContentKind::Written, kind == ContentKind::Evals);
            assert_eq!(found, (written, evals), "{name}");
        }
    }
}
