//! The JSON report.

use std::io::Write;

use super::{ReportFormat, ReportOutput, RunResults};

/// The report with the summary document.
pub static REPORT: ReportFormat = ReportFormat {
    name: "json",
    description: "the summary document",
    output: ReportOutput::File(write),
    environment_file: None,
};

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &results.summary)?;
    out.write_all(b"\n")
}
