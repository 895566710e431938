//! A report: one line for each case.

use std::io::Write;

use practicum::report::{ReportFormat, ReportOutput, RunResults};

/// The kind of report.
pub static LINES: ReportFormat = ReportFormat {
    name: "lines",
    description: "one line for each case",
    output: ReportOutput::File(write),
    environment_file: None,
};

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    for case in &results.summary.cases {
        writeln!(out, "{} {}: {} of {}", case.suite, case.id, case.passed, case.trials())?;
    }
    Ok(())
}
