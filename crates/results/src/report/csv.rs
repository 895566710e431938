//! The CSV report.

use std::io::Write;

use super::escaping::truncate_text;
use super::{ReportFormat, ReportOutput, RunResults, terminal_safe};
use practicum_core::model::{CaseSummary, CheckResult, TrialRecord, count_with_noun};
use practicum_engine::store::history::write_csv_row;

/// The report for spreadsheets: one row for each check of each trial, and one for a trial that has none. A case
/// with trials that were not run has one more row, whose `trial_verdict` is `not_run`.
pub static REPORT: ReportFormat = ReportFormat {
    name: "csv",
    description: "one row for each check of each trial, for spreadsheets",
    output: ReportOutput::File(write),
    environment_file: None,
};

const COLUMNS: [&str; 33] = [
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
    "reused_from",
    "scripted",
    "replayed",
];

/// The longest text in a cell. Spreadsheets allow about thirty thousand characters.
const MAX_CELL_LENGTH: usize = 4000;

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    write_csv_row(COLUMNS, out)?;
    for trial in results.all_trials() {
        let record = trial?;
        if record.checks.is_empty() {
            write_csv_row(check_cells(results, &record, None), out)?;
        }
        for check in &record.checks {
            write_csv_row(check_cells(results, &record, Some(check)), out)?;
        }
    }
    for case in results.summary.cases.iter().filter(|case| case.not_run > 0) {
        write_csv_row(not_run_cells(results, case), out)?;
    }
    Ok(())
}

fn check_cells(
    results: &RunResults,
    record: &TrialRecord,
    check: Option<&CheckResult>,
) -> [String; COLUMNS.len()] {
    let condition = &record.condition;
    let why = record.not_scored_reason().unwrap_or_default();
    let of_check = |cell: fn(&CheckResult) -> String| check.map(cell).unwrap_or_default();
    [
        text_cell(&results.summary.run),
        text_cell(&record.suite),
        text_cell(&record.case),
        text_cell(&condition.agent),
        text_cell(record.model.as_deref().or(condition.model.as_deref()).unwrap_or_default()),
        condition.arm.name(),
        text_cell(condition.mode.name()),
        record.attempt.to_string(),
        text_cell(record.trial.as_str()),
        record.verdict.name().to_owned(),
        text_cell(&why),
        record.ended.name().to_owned(),
        format!("{:.3}", record.seconds),
        record.cost_usd.map(|cost| cost.to_string()).unwrap_or_default(),
        record.usage.input.to_string(),
        record.usage.output.to_string(),
        record.expect.map(|expect| expect.name().to_owned()).unwrap_or_default(),
        record.was_activated().map(|fired| fired.to_string()).unwrap_or_default(),
        record.activation_outcome().map(|outcome| outcome.name().to_owned()).unwrap_or_default(),
        text_cell(&record.skills.activated.join(", ")),
        of_check(|check| text_cell(&check.check)),
        of_check(|check| check.required.to_string()),
        of_check(|check| check.verdict.name().to_owned()),
        of_check(|check| check.score.map(|score| score.to_string()).unwrap_or_default()),
        of_check(|check| check.scale.map(|scale| scale.name().to_owned()).unwrap_or_default()),
        of_check(|check| text_cell(&check.rationale)),
        of_check(|check| text_cell(&check.evidence.join("\n"))),
        of_check(|check| text_cell(&check.flags.join("\n"))),
        text_cell(&record.notes.join("\n")),
        of_check(|check| text_cell(check.name.as_deref().unwrap_or_default())),
        text_cell(record.reused_from.as_deref().unwrap_or_default()),
        results.info.scripted.to_string(),
        results.info.replayed.to_string(),
    ]
}

/// Gives the row that says how many planned trials of a case were not run.
fn not_run_cells(results: &RunResults, case: &CaseSummary) -> [String; COLUMNS.len()] {
    COLUMNS.map(|column| match column {
        "run" => text_cell(&results.summary.run),
        "suite" => text_cell(&case.suite),
        "case" => text_cell(&case.id),
        "agent" => text_cell(&case.agent),
        "model" => text_cell(case.model.as_deref().unwrap_or_default()),
        "arm" => text_cell(&case.arm),
        "mode" => text_cell(&case.mode),
        "trial_verdict" => "not_run".to_owned(),
        "scripted" => results.info.scripted.to_string(),
        "replayed" => results.info.replayed.to_string(),
        "why_not_scored" => format!("{} not run", count_with_noun(case.not_run, "trial")),
        _ => String::new(),
    })
}

/// Makes a cell that a spreadsheet treats as text, whatever it begins with.
fn text_cell(text: &str) -> String {
    let clean = truncate_text(&terminal_safe(text), MAX_CELL_LENGTH);
    let is_formula =
        clean.trim_start_matches([' ', '\n']).starts_with(['=', '+', '-', '@', '\t', '\u{fffd}']);
    if is_formula { format!("'{clean}") } else { clean }
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
            assert_eq!(text_cell(cell), expected);
        }
    }
}
