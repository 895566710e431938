//! Reports for GitHub Actions: annotations at the cases, a summary of the step, a comment for the pull request.

mod case_location;
mod summary;

use std::io::Write;

use self::case_location::CaseLocations;
use super::escaping::{to_one_line, truncate_text};
use super::run_results::ReportedFailure;
use super::{EnvironmentFileReport, ReportFormat, ReportOutput, RunResults, figures};
use practicum_core::model::{TrialRecord, Verdict, count_with_noun};

/// The report with annotations on standard output, and with the step's summary in the file that GitHub names.
pub static REPORT: ReportFormat = ReportFormat {
    name: "github",
    description: "annotations for GitHub Actions; adds to $GITHUB_STEP_SUMMARY",
    output: ReportOutput::File(write_annotations),
    environment_file: Some(EnvironmentFileReport {
        variable: "GITHUB_STEP_SUMMARY",
        write: summary::write_summary,
    }),
};

/// The report with a comment for the pull request, written to a file for whoever posts it.
pub static COMMENT_REPORT: ReportFormat = ReportFormat {
    name: "github-comment",
    description: "a comment for a pull request, with a marker to update it by",
    output: ReportOutput::File(summary::write_comment),
    environment_file: None,
};

/// The greatest number of annotations. GitHub shows ten of a kind for a step; a few more are useful in the log.
const MAX_ANNOTATIONS: usize = 50;

const MAX_MESSAGE_LENGTH: usize = 1000;

fn write_annotations(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    if let Some(sample) = &results.summary.sample {
        writeln!(out, "::notice::not all cases were run: {}", escape_data(&sample.describe()))?;
    }
    for note in figures::notes_of_passed(&results.summary).iter().take(MAX_ANNOTATIONS) {
        writeln!(out, "::notice::{}", escape_data(&truncate_text(&to_one_line(note), MAX_MESSAGE_LENGTH)))?;
    }
    let mut places = CaseLocations::new(results);
    let mut left = 0;
    for (index, trouble) in results.failures().enumerate() {
        let trouble = trouble?;
        if index >= MAX_ANNOTATIONS {
            left += 1;
            continue;
        }
        let (suite, case, level, message) = match &trouble {
            ReportedFailure::Case(case, rate) => {
                (&case.suite, &case.id, "error", truncate_text(&rate.description, MAX_MESSAGE_LENGTH))
            }
            ReportedFailure::NotRun(case) => {
                let trials = count_with_noun(case.not_run, "planned trial");
                let without = if case.is_under_test() { "" } else { ", without the skill" };
                let message = format!("not run: {trials} with {}{without}", to_one_line(&case.agent));
                (&case.suite, &case.id, "warning", message)
            }
            ReportedFailure::Trial(record) => {
                let level = match record.verdict {
                    Verdict::Fail => "error",
                    Verdict::NotScored(_) | Verdict::Pass => "warning",
                };
                (&record.suite, &record.case, level, failure_message(record))
            }
        };
        let place = places.locate(suite, case);
        let place = place.map(|place| format!("file={},line={},", escape_property(&place.file), place.line));
        let title = escape_property(&format!("{} of {}", to_one_line(case), to_one_line(suite)));
        writeln!(out, "::{level} {}title={title}::{}", place.unwrap_or_default(), escape_data(&message))?;
    }
    match left {
        0 => Ok(()),
        left => writeln!(out, "::notice::and {left} more trials did not pass"),
    }
}

/// Describes what was wrong, one line for each check.
fn failure_message(record: &TrialRecord) -> String {
    let mut lines = Vec::new();
    lines.extend(record.not_scored_reason().map(|why| format!("not scored: {why}")));
    let failed = record.checks.iter().filter(|check| check.verdict == Verdict::Fail);
    lines.extend(failed.map(|check| format!("{}: {}", check.title(), check.rationale)));
    lines.extend(record.notes.iter().map(|note| format!("note: {note}")));
    let without = if record.condition.arm.has_skill() { "" } else { ", without the skill" };
    lines.push(format!("run {} with {}{without}", record.attempt, record.condition.agent));
    let lines: Vec<String> =
        lines.iter().map(|line| truncate_text(&to_one_line(line), MAX_MESSAGE_LENGTH)).collect();
    lines.join("\n")
}

/// Escapes the message of a workflow command.
pub(super) fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property of a workflow command.
pub(super) fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_give_a_command() {
        assert_eq!(escape_data("a\n::error::b\r%0A"), "a%0A::error::b%0D%250A");
        assert_eq!(escape_property("a,line=1::b\n"), "a%2Cline=1%3A%3Ab%0A");
    }
}
