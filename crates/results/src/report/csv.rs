use std::io::Write;

use super::markup::cut;
use super::{Form, Report, Results, safe};
use practicum_core::model::{CaseSummary, CheckResult, TrialRecord, counted};

/// For spreadsheets: one row for each check of each trial, and one for a trial that has none. A case with trials that
/// were not run has one more row, whose `trial_verdict` is `not_run`.
pub static REPORT: Report = Report {
    name: "csv",
    about: "one row for each check of each trial, for spreadsheets",
    form: Form::File(write),
    adds: None,
};

const COLUMNS: [&str; 30] = [
    "run",
    "suite",
    "case",
    "agent",
    "model",
    "arm",
    "mode",
    "attempt",
    "trial",
    "trial_verdict",
    "why_not_scored",
    "ended",
    "seconds",
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "expect",
    "fired",
    "outcome",
    "activated",
    "check",
    "required",
    "verdict",
    "score",
    "scale",
    "rationale",
    "evidence",
    "flags",
    "notes",
    "check_name",
];

/// Spreadsheets take about thirty thousand characters in a cell.
const LONGEST_CELL: usize = 4000;

fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    row(COLUMNS.map(str::to_owned), out)?;
    for trial in results.all_trials() {
        let record = trial?;
        if record.checks.is_empty() {
            row(cells(results, &record, None), out)?;
        }
        for check in &record.checks {
            row(cells(results, &record, Some(check)), out)?;
        }
    }
    for case in results.summary.cases.iter().filter(|case| case.not_run > 0) {
        row(cells_of_not_run(results, case), out)?;
    }
    Ok(())
}

fn cells(results: &Results, record: &TrialRecord, check: Option<&CheckResult>) -> [String; COLUMNS.len()] {
    let condition = &record.condition;
    let why = record.why_not_scored().unwrap_or_default();
    let of_check = |cell: fn(&CheckResult) -> String| check.map(cell).unwrap_or_default();
    [
        text(&results.summary.run),
        text(&record.suite),
        text(&record.case),
        text(&condition.agent),
        text(record.model.as_deref().or(condition.model.as_deref()).unwrap_or_default()),
        condition.arm.name(),
        text(condition.mode.name()),
        record.attempt.to_string(),
        text(record.trial.as_str()),
        record.verdict.name().to_owned(),
        text(&why),
        record.ended.name().to_owned(),
        format!("{:.3}", record.seconds),
        record.cost_usd.map(|cost| cost.to_string()).unwrap_or_default(),
        record.usage.input.to_string(),
        record.usage.output.to_string(),
        record.expect.map(|expect| expect.name().to_owned()).unwrap_or_default(),
        record.observed_firing().map(|fired| fired.to_string()).unwrap_or_default(),
        record.activation().map(|outcome| outcome.name().to_owned()).unwrap_or_default(),
        text(&record.skills.activated.join(", ")),
        of_check(|check| text(&check.check)),
        of_check(|check| check.required.to_string()),
        of_check(|check| check.verdict.name().to_owned()),
        of_check(|check| check.score.map(|score| score.to_string()).unwrap_or_default()),
        of_check(|check| check.scale.map(|scale| scale.name().to_owned()).unwrap_or_default()),
        of_check(|check| text(&check.rationale)),
        of_check(|check| text(&check.evidence.join("\n"))),
        of_check(|check| text(&check.flags.join("\n"))),
        text(&record.notes.join("\n")),
        of_check(|check| text(check.name.as_deref().unwrap_or_default())),
    ]
}

/// How many planned trials of a case were not run.
fn cells_of_not_run(results: &Results, case: &CaseSummary) -> [String; COLUMNS.len()] {
    COLUMNS.map(|column| match column {
        "run" => text(&results.summary.run),
        "suite" => text(&case.suite),
        "case" => text(&case.id),
        "agent" => text(&case.agent),
        "model" => text(case.model.as_deref().unwrap_or_default()),
        "arm" => text(&case.arm),
        "mode" => text(&case.mode),
        "trial_verdict" => "not_run".to_owned(),
        "why_not_scored" => format!("{} not run", counted(case.not_run, "trial")),
        _ => String::new(),
    })
}

/// Text that a spreadsheet takes for text, whatever it begins with.
fn text(text: &str) -> String {
    let clean = cut(&safe(text), LONGEST_CELL);
    let is_formula =
        clean.trim_start_matches([' ', '\n']).starts_with(['=', '+', '-', '@', '\t', '\u{fffd}']);
    if is_formula { format!("'{clean}") } else { clean }
}

/// As RFC 4180 has it: quotes where they are needed, doubled within.
fn row(cells: [String; COLUMNS.len()], out: &mut dyn Write) -> std::io::Result<()> {
    let quoted = cells.map(|cell| match cell.contains(['"', ',', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    });
    write!(out, "{}\r\n", quoted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (cell, expected) in [
            ("=HYPERLINK(\"x\")", "'=HYPERLINK(\"x\")"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\u{fffd}=1"),
            (" \n=1", "' \n=1"),
            ("plain = text", "plain = text"),
            ("", ""),
        ] {
            assert_eq!(text(cell), expected);
        }
    }
}
