//! Files of labels: JSON lines and CSV, to be filled in by people and read again.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JudgedRun;
use super::judged_run::JudgedItem;
use super::labels::LARGEST_LABELS_FILE;
use practicum_core::tree::{open_regular, read_bounded};

/// A judged check to label: a line of `calibrate --export`. It says nothing about the judge's verdict, the agent and the
/// arm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "A judged check to label (a line of calibrate --export)")]
pub struct LabelToFill {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run that made the output.
    pub run: String,
    /// The id of the trial.
    pub trial: String,
    /// The id of the check.
    pub check: String,
    /// The statement to decide.
    pub statement: String,
    /// What the user asked the agent.
    pub prompt: String,
    /// The beginning of the agent's answer.
    pub answer: String,
    /// To be filled in: `pass` or `fail`.
    pub passed: Option<bool>,
}

/// The longest text of a cell. Spreadsheets cut longer ones.
const LONGEST_TEXT: usize = 30_000;

impl LabelToFill {
    /// Makes the line of an output.
    pub fn new(run: &JudgedRun, item: &JudgedItem) -> Self {
        use std::io::Read;
        let mut answer = Vec::new();
        let path = run.trial_folder(&item.trial).join("output.txt");
        // An answer that cannot be read stays empty; the viewer shows the whole trial.
        let _ =
            open_regular(path).and_then(|file| file.take(4 * LONGEST_TEXT as u64).read_to_end(&mut answer));
        Self {
            schema_version: 1,
            run: run.outputs_of.clone(),
            trial: item.trial.as_str().to_owned(),
            check: item.output.check.clone(),
            statement: cut(&run.statement(&item.output)),
            prompt: cut(&run.prompt(&item.output)),
            answer: cut(&String::from_utf8_lossy(&answer)),
            passed: None,
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{} […]", &text[..end]),
        None => text.to_owned(),
    }
}

/// A line of a file of labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRow {
    /// The number of the line, from 1.
    pub line: u64,
    /// The run, if the line names one.
    pub run: Option<String>,
    /// The id of the trial.
    pub trial: String,
    /// The id of the check.
    pub check: String,
    /// The label; `None` if it was not filled in.
    pub passed: Option<bool>,
}

/// Reads a file of labels: CSV if its name ends so, else JSON lines. The error lists the lines that cannot be read.
pub fn read_label_file(path: &Path) -> Result<Vec<LabelRow>, Vec<String>> {
    let named = |why: String| vec![format!("{}: {why}", path.display())];
    let bytes = read_bounded(path, LARGEST_LABELS_FILE).map_err(named)?;
    let text = String::from_utf8(bytes).map_err(|_| named("it is not UTF-8 text".to_owned()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let is_csv = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let rows = if is_csv { read_csv(text) } else { Ok(read_json_lines(text)) };
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (line, row) in rows.map_err(named)? {
        match row {
            Ok(row) => found.push(row),
            Err(why) => problems.push(format!("{}, line {line}: {why}", path.display())),
        }
    }
    match problems.is_empty() {
        true => Ok(found),
        false => Err(problems),
    }
}

type ReadLine = (u64, Result<LabelRow, String>);

fn read_json_lines(text: &str) -> Vec<ReadLine> {
    #[derive(Deserialize)]
    struct Line {
        run: Option<String>,
        trial: String,
        check: String,
        passed: Value,
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let read = |line: u64, text: &str| {
        let Line { run, trial, check, passed } =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        let passed = match passed {
            Value::Null => None,
            Value::Bool(passed) => Some(passed),
            Value::String(word) => read_word(&word)?,
            Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                return Err("\"passed\" is none of true, false, null, \"pass\", \"fail\"".to_owned());
            }
        };
        Ok(LabelRow { line, run, trial, check, passed })
    };
    lines.map(|(line, text)| (line, read(line, text))).collect()
}

fn read_csv(text: &str) -> Result<Vec<ReadLine>, String> {
    let head = text.lines().next().unwrap_or_default();
    // Spreadsheets of some countries separate columns with semicolons.
    let delimiter = if head.contains(';') && !head.contains(',') { b';' } else { b',' };
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| error.to_string())?.clone();
    let column = |wanted: &str| names.iter().position(|name| name.trim().eq_ignore_ascii_case(wanted));
    let needed = |wanted: &str| column(wanted).ok_or_else(|| format!("it has no column \"{wanted}\""));
    let (trial, check, passed) = (needed("trial")?, needed("check")?, needed("passed")?);
    let run = column("run");
    let mut lines = LineCounter { text, byte: 0, line: 1 };
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = lines.line_of(error.position());
                rows.push((line, Err(error.to_string())));
                continue;
            }
        };
        let line = lines.line_of(record.position());
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        // A name that a spreadsheet would take for a formula was written with an apostrophe.
        let name = |at: usize| cell(at).strip_prefix('\'').unwrap_or(cell(at)).to_owned();
        let row = read_word(cell(passed)).map(|passed| LabelRow {
            line,
            run: run.map(name).filter(|run| !run.is_empty()),
            trial: name(trial),
            check: name(check),
            passed,
        });
        rows.push((line, row));
    }
    Ok(rows)
}

/// Counts lines up to a position. The crate's own number is one too low where lines end as on Windows.
struct LineCounter<'t> {
    text: &'t str,
    byte: usize,
    line: u64,
}

impl LineCounter<'_> {
    fn line_of(&mut self, position: Option<&csv::Position>) -> u64 {
        let bytes = self.text.as_bytes();
        let mut end = position.map_or(0, |at| at.byte() as usize).min(bytes.len());
        // A record begins after the end of the line before it.
        end += bytes[end..].iter().take_while(|byte| b"\r\n".contains(byte)).count();
        if end > self.byte {
            self.line += bytes[self.byte..end].iter().filter(|byte| **byte == b'\n').count() as u64;
            self.byte = end;
        }
        self.line
    }
}

/// Reads a label as people write it; nothing is no label.
fn read_word(word: &str) -> Result<Option<bool>, String> {
    match word.trim().to_lowercase().as_str() {
        "" => Ok(None),
        "pass" | "passed" | "true" | "yes" | "1" => Ok(Some(true)),
        "fail" | "failed" | "false" | "no" | "0" => Ok(Some(false)),
        _ => Err(format!("\"{word}\" is no label; write pass or fail")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::history::{ExportFormat, write_table};

    fn row(line: u64, run: Option<&str>, check: &str, passed: Option<bool>) -> LabelRow {
        LabelRow {
            line,
            run: run.map(str::to_owned),
            trial: "t-1".to_owned(),
            check: check.to_owned(),
            passed,
        }
    }

    fn read(name: &str, text: &[u8]) -> Result<Vec<LabelRow>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        let short = |why: String| why.replace(&folder.path().display().to_string(), "");
        read_label_file(&path).map_err(|all| short(all.join("\n")))
    }

    #[test]
    fn labels_are_read_as_people_write_them() {
        let expected =
            vec![row(2, None, "a", Some(true)), row(3, None, "b", None), row(4, None, "c", Some(false))];
        for text in [
            "trial,check,passed\nt-1,a,pass\nt-1,b,\nt-1,c,no\n",
            "\u{feff}Trial;Check;Passed;note\r\nt-1;a;TRUE;x\r\nt-1;b; ;\r\nt-1;c;0;y\r\n",
        ] {
            assert_eq!(read("labels.csv", text.as_bytes()), Ok(expected.clone()), "{text}");
        }
        let lines = "{\"trial\":\"t-1\",\"check\":\"a\",\"passed\":true}\n\n{\"run\":\"r\",\"trial\":\"t-1\",\"check\":\"b\",\"passed\":\"fail\"}\n";
        let expected = vec![row(1, None, "a", Some(true)), row(3, Some("r"), "b", Some(false))];
        assert_eq!(read("labels.jsonl", lines.as_bytes()), Ok(expected));
    }

    #[test]
    fn a_written_table_is_read_again() {
        let rows = || {
            ["=1+1", "a,b", "line\nbreak \"quoted\""].map(|check| LabelToFill {
                schema_version: 1,
                run: "r".into(),
                trial: "t-1".into(),
                check: check.into(),
                answer: "@SUM(A1)\r\n, \"x\"".into(),
                ..LabelToFill::default()
            })
        };
        for (name, format) in [("l.csv", ExportFormat::Csv), ("l.jsonl", ExportFormat::Jsonl)] {
            let mut out = Vec::new();
            write_table(rows(), format, &mut out).expect("written");
            let found = read(name, &out).expect("rows");
            let checks: Vec<&str> = found.iter().map(|row| row.check.as_str()).collect();
            assert_eq!(checks, ["=1+1", "a,b", "line\nbreak \"quoted\""], "{name}");
            assert!(found.iter().all(|row| row.passed.is_none() && row.run.as_deref() == Some("r")));
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_line() {
        for (name, text, part) in [
            ("l.csv", &b"trial,check\nt,c\n"[..], "/l.csv: it has no column \"passed\""),
            ("l.csv", b"trial,check,passed\nt,c,perhaps\n", "/l.csv, line 2: \"perhaps\" is no label"),
            ("l.csv", b"trial,check,passed\nt,c,pass\nt,c\n", "/l.csv, line 3: CSV error"),
            ("l.csv", b"\xff\xfe", "/l.csv: it is not UTF-8 text"),
            ("l.csv", b"", "/l.csv: it has no column \"trial\""),
            (
                "l.jsonl",
                b"{\"trial\":\"t\",\"check\":\"c\",\"passed\":1}\nx",
                "/l.jsonl, line 1: \"passed\" is none of",
            ),
            ("l.jsonl", b"{\"trial\":\"t\",\"check\":\"c\",\"passed\":true}\n{torn", "/l.jsonl, line 2: "),
            ("l.jsonl", b"{\"trial\":\"t\",\"check\":\"c\"}", "/l.jsonl, line 1: missing field `passed`"),
        ] {
            let why = read(name, text).expect_err(part);
            assert!(why.starts_with(part), "{why}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("huge.jsonl");
        std::fs::File::create(&path).and_then(|file| file.set_len(LARGEST_LABELS_FILE + 1)).expect("made");
        assert!(read_label_file(&path).expect_err("too large")[0].contains("MB"), "its limit is named");
        assert!(read_label_file(folder.path()).expect_err("a folder")[0].contains("folder"));
    }
}
