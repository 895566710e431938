//! Exports trials and checks as tables for other programs.

use std::io::Write;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::store::{CheckRow, Index, IndexError, TrialFilter, TrialRow};

/// The table to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportTable {
    /// One row for each trial.
    Trials,
    /// One row for each check of each trial.
    Checks,
}

/// The file format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Jsonl,
    Csv,
}

/// A trial: a line of `export`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(title = "A trial (a line of export)")]
pub struct ExportedTrial {
    #[serde(flatten)]
    pub of: TrialIdentity,
    pub verdict: String,
    /// Why the trial is not scored.
    pub why: Option<String>,
    /// What happened to the agent's process.
    pub ended: String,
    /// Whether the case requires activation of the skill, forbids it or accepts both.
    pub expect: Option<String>,
    pub fired: Option<bool>,
    pub cost_usd: Option<f64>,
    pub seconds: f64,
    /// The number of input and output tokens.
    pub tokens: u64,
    /// Whether the result was reused from an earlier run.
    pub reused: bool,
}

/// A check of a trial: a line of `export --table checks`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(title = "A check of a trial (a line of export --table checks)")]
pub struct ExportedCheck {
    #[serde(flatten)]
    pub of: TrialIdentity,
    pub check: String,
    pub required: bool,
    pub judged: bool,
    pub verdict: String,
    /// The score on the check's own scale.
    pub score: Option<f64>,
}

/// The columns that identify a trial.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TrialIdentity {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub run: String,
    pub trial: String,
    pub suite: String,
    pub case: String,
    pub agent: String,
    /// The requested model; `None` leaves the choice to the agent.
    pub model: Option<String>,
    pub arm: String,
    pub mode: String,
    pub attempt: u32,
}

/// Writes a table, one row at a time.
pub fn export(
    index: &Index,
    filter: &TrialFilter,
    table: ExportTable,
    format: ExportFormat,
    out: &mut dyn Write,
) -> Result<std::io::Result<()>, IndexError> {
    if let Err(error) = write_header(table, format, out) {
        return Ok(Err(error));
    }
    let mut failed = None;
    let written = index.each_trial(filter, |trial| match table {
        ExportTable::Trials => row(format, &exported_trial(trial), out),
        ExportTable::Checks => match index.checks_of(trial.n) {
            Ok(checks) => {
                checks.into_iter().try_for_each(|check| row(format, &exported_check(&trial, check), out))
            }
            Err(error) => {
                failed = Some(error);
                Err(std::io::ErrorKind::Other.into())
            }
        },
    });
    match failed {
        Some(error) => Err(error),
        None => written,
    }
}

/// Writes the names of the columns, if the format has such a line.
fn write_header(table: ExportTable, format: ExportFormat, out: &mut dyn Write) -> std::io::Result<()> {
    let empty = match (format, table) {
        (ExportFormat::Jsonl, _) => return Ok(()),
        (ExportFormat::Csv, ExportTable::Trials) => serde_json::to_value(ExportedTrial::default())?,
        (ExportFormat::Csv, ExportTable::Checks) => serde_json::to_value(ExportedCheck::default())?,
    };
    write_csv_row(table_columns(&empty).map(|(name, _)| name), out)
}

/// Writes rows, after the names of their columns if the format has such a line.
pub fn write_table<T: Serialize + Default>(
    rows: impl IntoIterator<Item = T>,
    format: ExportFormat,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    if format == ExportFormat::Csv {
        let empty = serde_json::to_value(T::default())?;
        write_csv_row(table_columns(&empty).map(|(name, _)| name), out)?;
    }
    rows.into_iter().try_for_each(|of| row(format, &of, out))
}

fn row(format: ExportFormat, row: &impl Serialize, out: &mut dyn Write) -> std::io::Result<()> {
    match format {
        ExportFormat::Jsonl => writeln!(out, "{}", serde_json::to_string(row)?),
        ExportFormat::Csv => {
            let value = serde_json::to_value(row)?;
            write_csv_row(table_columns(&value).map(|(_, value)| cell(value)), out)
        }
    }
}

/// Writes a row as in RFC 4180.
pub fn write_csv_row(
    cells: impl IntoIterator<Item = impl AsRef<[u8]>>,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    // In memory first, because the crate hides the kind of an error of `out`, and a closed pipe is no error.
    let mut row = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    row.write_record(cells)?;
    row.flush()?;
    out.write_all(row.get_ref())
}

/// Gives the columns of a row: all except the schema version, which is for readers of JSON.
fn table_columns(row: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let all = row.as_object().into_iter().flatten();
    all.map(|(name, value)| (name.as_str(), value)).filter(|(name, _)| *name != "schema_version")
}

fn verdict_name(passed: Option<bool>) -> String {
    let name = match passed {
        Some(true) => "pass",
        Some(false) => "fail",
        None => "not_scored",
    };
    name.to_owned()
}

fn identity(trial: &TrialRow) -> TrialIdentity {
    TrialIdentity {
        schema_version: 1,
        run: trial.run.clone(),
        trial: trial.id.clone(),
        suite: trial.suite.clone(),
        case: trial.case.clone(),
        agent: trial.agent.clone(),
        model: trial.model.clone(),
        arm: trial.arm.clone(),
        mode: trial.mode.clone(),
        attempt: trial.attempt,
    }
}

fn exported_trial(trial: TrialRow) -> ExportedTrial {
    ExportedTrial {
        of: identity(&trial),
        verdict: verdict_name(trial.passed),
        why: trial.why,
        ended: trial.ended,
        expect: trial.expect,
        fired: trial.fired,
        cost_usd: trial.cost_usd,
        seconds: trial.seconds,
        tokens: trial.tokens,
        reused: trial.reused,
    }
}

fn exported_check(trial: &TrialRow, check: CheckRow) -> ExportedCheck {
    ExportedCheck {
        of: identity(trial),
        check: check.id,
        required: check.required,
        judged: check.judged,
        verdict: verdict_name(check.passed),
        score: check.score,
    }
}

/// Gives a value as a cell. A text that a spreadsheet would take for a formula gets an apostrophe first, as
/// spreadsheets do it themselves.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows() {
        for (values, expected) in [
            (json!([null, "plain", -1.5, true]), ",plain,-1.5,true\r\n"),
            (json!(["a,\"b\"\nc", ""]), "\"a,\"\"b\"\"\nc\",\r\n"),
            (json!(["a\rb", " é "]), "\"a\rb\", é \r\n"),
            (json!(["=HYPERLINK(\"x\")"]), "\"'=HYPERLINK(\"\"x\"\")\"\r\n"),
        ] {
            let mut out = Vec::new();
            write_csv_row(values.as_array().expect("cells").iter().map(cell), &mut out).expect("written");
            assert_eq!(String::from_utf8_lossy(&out), expected, "{values}");
        }
    }

    #[test]
    fn a_closed_pipe_is_known_as_one() {
        struct ClosedPipe;
        impl Write for ClosedPipe {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let error = write_csv_row(["a"], &mut ClosedPipe).expect_err("closed");
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}
