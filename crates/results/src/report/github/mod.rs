//! For GitHub Actions: annotations at the cases, a summary of the step, a comment for the pull request.

mod place;
mod summary;

use std::io::Write;

use self::place::Places;
use super::markup::{cut, one_line};
use super::results::Trouble;
use super::{Addition, Form, Report, Results, figures};
use practicum_core::model::{TrialRecord, Verdict, counted};

/// Annotations on standard output, and the step's summary where GitHub says.
pub static REPORT: Report = Report {
    name: "github",
    about: "annotations for GitHub Actions; adds to $GITHUB_STEP_SUMMARY",
    form: Form::File(annotations),
    adds: Some(Addition { variable: "GITHUB_STEP_SUMMARY", write: summary::write }),
};

/// Written to a file, for whoever posts it.
pub static COMMENT: Report = Report {
    name: "github-comment",
    about: "a comment for a pull request, with a marker to update it by",
    form: Form::File(summary::comment),
    adds: None,
};

/// GitHub shows ten of a kind for a step; a few more do no harm where a log is read.
const MOST_ANNOTATIONS: usize = 50;

const LONGEST_MESSAGE: usize = 1000;

fn annotations(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    if let Some(sample) = &results.summary.sample {
        writeln!(out, "::notice::not all cases were run: {}", data(&sample.in_words()))?;
    }
    for note in figures::notes_of_passed(&results.summary).iter().take(MOST_ANNOTATIONS) {
        writeln!(out, "::notice::{}", data(&cut(&one_line(note), LONGEST_MESSAGE)))?;
    }
    let mut places = Places::new(results);
    let mut left = 0;
    for (index, trouble) in results.troubles().enumerate() {
        let trouble = trouble?;
        if index >= MOST_ANNOTATIONS {
            left += 1;
            continue;
        }
        let (suite, case, level, message) = match &trouble {
            Trouble::Case(case, rate) => {
                (&case.suite, &case.id, "error", cut(&rate.in_words(), LONGEST_MESSAGE))
            }
            Trouble::NotRun(case) => {
                let trials = counted(case.not_run, "planned trial");
                let without = if case.is_examined() { "" } else { ", without the skill" };
                let message = format!("not run: {trials} with {}{without}", one_line(&case.agent));
                (&case.suite, &case.id, "warning", message)
            }
            Trouble::Trial(record) => {
                let level = match record.verdict {
                    Verdict::Fail => "error",
                    Verdict::NotScored(_) | Verdict::Pass => "warning",
                };
                (&record.suite, &record.case, level, message(record))
            }
        };
        let place = places.of(suite, case);
        let place = place.map(|place| format!("file={},line={},", property(&place.file), place.line));
        let title = property(&format!("{} of {}", one_line(case), one_line(suite)));
        writeln!(out, "::{level} {}title={title}::{}", place.unwrap_or_default(), data(&message))?;
    }
    match left {
        0 => Ok(()),
        left => writeln!(out, "::notice::and {left} more trials did not pass"),
    }
}

/// What was wrong, a line a check.
fn message(record: &TrialRecord) -> String {
    let mut lines = Vec::new();
    lines.extend(record.why_not_scored().map(|why| format!("not scored: {why}")));
    let failed = record.checks.iter().filter(|check| check.verdict == Verdict::Fail);
    lines.extend(failed.map(|check| format!("{}: {}", check.title(), check.rationale)));
    lines.extend(record.notes.iter().map(|note| format!("note: {note}")));
    let without = if record.condition.arm.has_skill() { "" } else { ", without the skill" };
    lines.push(format!("run {} with {}{without}", record.attempt, record.condition.agent));
    let lines: Vec<String> = lines.iter().map(|line| cut(&one_line(line), LONGEST_MESSAGE)).collect();
    lines.join("\n")
}

/// The message of a workflow command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_give_a_command() {
        assert_eq!(data("a\n::error::b\r%0A"), "a%0A::error::b%0D%250A");
        assert_eq!(property("a,line=1::b\n"), "a%2Cline=1%3A%3Ab%0A");
    }
}
