//! The summary of a run for GitHub, as a step summary and as a comment.

use std::io::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::report::escaping::{escape_markdown, truncate_text};
use crate::report::figures;
use crate::report::run_results::RunResults;
use practicum_core::model::{
    CaseStatus, CaseSummary, CheckResult, RunStatus, TrialTotals, Verdict, count_with_noun,
};
use practicum_skills::own_files::OWN_FILE_MARK;

/// The greatest number of cases that are listed with why they did not pass. GitHub cuts comments at 65,536
/// characters.
const MAX_CASES: usize = 25;
const MAX_CHECKS: usize = 5;
const MAX_TEXT_LENGTH: usize = 300;

/// Writes the summary with a line by which a later comment finds this one and replaces it.
pub fn write_comment(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<!-- practicum:{} -->", comment_marker(&results.suite_names().join(",")))?;
    write_summary(results, out)?;
    writeln!(out, "{OWN_FILE_MARK}")
}

/// Encodes a name so that it cannot end the HTML comment that contains it.
fn comment_marker(name: &str) -> String {
    const ENCODED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'_').remove(b'.').remove(b'/').remove(b',').remove(b'-');
    utf8_percent_encode(name, ENCODED).to_string().replace("--", "-%2D")
}

pub fn write_summary(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    let (examined, without) = results.totals();
    let (symbol, word) = match summary.status() {
        RunStatus::Passed if !summary.has_gate() => ("✅", "passed, and no gate was set".to_owned()),
        RunStatus::Passed => ("✅", "passed".to_owned()),
        RunStatus::Failed => ("❌", "failed".to_owned()),
        RunStatus::Ungated => {
            ("⚠️", format!("no gate, because {}", escape_markdown(&summary.describe_missing_gate())))
        }
        RunStatus::Incomplete | RunStatus::OverBudget | RunStatus::Interrupted => {
            ("⚠️", "could not be completed".to_owned())
        }
    };
    let names: Vec<String> = results.suite_names().iter().map(|name| escape_markdown(name)).collect();
    writeln!(out, "## {symbol} {}: {word}\n", figures::list_suites(&names))?;
    writeln!(
        out,
        "| | trials run | passed | failed | not scored | not run | reused |\n|---|---|---|---|---|---|---|"
    )?;
    for (title, of) in [("with the skill", examined), ("without the skill", without)] {
        let TrialTotals { trials, passed, failed, not_scored, not_run, reused } = of;
        if trials + not_run > 0 {
            writeln!(
                out,
                "| {title} | {trials} | {passed} | {failed} | {not_scored} | {not_run} | {reused} |"
            )?;
        }
    }
    writeln!(out, "\n- pass rate {}", figures::describe_pass_rate(&summary.pass_rate))?;
    if let Some(words) = figures::describe_cases_by_rate(summary) {
        writeln!(out, "- {words}")?;
    }
    if let Some(sample) = &summary.sample {
        writeln!(out, "- not all cases were run: {}", escape_markdown(&sample.describe()))?;
    }
    let activation = summary.activation.as_ref().map(figures::describe_activation);
    let predicted = summary.predicted_activation.as_ref().map(figures::describe_predicted_activation);
    let arms = summary.arms.as_ref().map(figures::describe_arms);
    for line in activation.into_iter().chain(predicted).chain(arms).flatten() {
        writeln!(out, "- {}", escape_markdown(&line))?;
    }
    let (gates, others) = figures::select_gates(&summary.gates);
    for gate in gates {
        let (figures, word) = figures::describe_gate(gate);
        let name = gate.name.name();
        writeln!(
            out,
            "- {}",
            escape_markdown(&format!("gate {name} of {}: {figures} {word}", gate.subject()))
        )?;
    }
    if let Some(others) = others {
        writeln!(out, "- {others}")?;
    }
    let variance = figures::describe_variance(summary);
    for line in variance.into_iter().chain(figures::describe_frontier(&summary.frontier)) {
        writeln!(out, "- {}", escape_markdown(&line))?;
    }
    let doubts = summary.doubts.describe();
    if !doubts.is_empty() {
        writeln!(out, "- doubts: {}", doubts.join(", "))?;
    }
    writeln!(out, "- {:.1} s, {}", summary.seconds, escape_markdown(&figures::describe_cost(summary)))?;
    if let Some(words) = figures::describe_failed_teardowns(summary) {
        writeln!(out, "- {}", escape_markdown(&truncate_text(&words, MAX_TEXT_LENGTH)))?;
    }
    let notes = figures::notes_of_passed(summary);
    for note in notes.iter().take(MAX_CASES) {
        writeln!(out, "- note: {}", escape_markdown(&truncate_text(note, MAX_TEXT_LENGTH)))?;
    }
    if let Some(more) = notes.len().checked_sub(MAX_CASES + 1) {
        writeln!(out, "- and {}", count_with_noun(more + 1, "more note"))?;
    }
    for words in results.info.model_stand_ins() {
        writeln!(out, "- {words}")?;
    }
    write_failed_cases(results, out)?;
    write_eval_findings(results, out)?;
    writeln!(
        out,
        "\n<sub>Run {} by practicum {}.</sub>",
        summary.run,
        escape_markdown(&results.info.practicum)
    )
}

/// Writes the cases that did not pass, folded, each with the first problem.
fn write_failed_cases(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let troubled: Vec<&CaseSummary> = results
        .summary
        .cases
        .iter()
        .filter(|case| {
            results.summary.has_to_pass(case) && case.status() != CaseStatus::Passed && case.trials() > 0
        })
        .collect();
    if troubled.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Did not pass\n\n| case | passed | what was wrong |\n|---|---|---|")?;
    for case in troubled.iter().take(MAX_CASES) {
        let mut wrong: Vec<String> = case.deciding_rate().map(|rate| rate.description).into_iter().collect();
        for trial in results.trials(case) {
            let record = trial?;
            if record.verdict == Verdict::Pass {
                continue;
            }
            wrong.extend(record.not_scored_reason().map(|why| format!("not scored: {why}")));
            let failed = record.checks.iter().filter(|check| check.verdict == Verdict::Fail);
            wrong.extend(failed.take(MAX_CHECKS).map(describe_check));
            wrong.extend(case.notes.iter().map(|note| format!("note: {note}")));
            break;
        }
        let wrong: Vec<String> =
            wrong.iter().map(|text| escape_markdown(&truncate_text(text, MAX_TEXT_LENGTH))).collect();
        let name = escape_markdown(&format!("{} ({})", case.id, case.agent));
        writeln!(out, "| {name} | {} | {} |", figures::passed(case), wrong.join("<br>"))?;
    }
    match troubled.len().saturating_sub(MAX_CASES) {
        0 => Ok(()),
        more => writeln!(out, "\nand {more} more cases"),
    }
}

/// Writes the judges' findings about the evals: a check that any answer meets proves nothing.
fn write_eval_findings(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let findings = &results.summary.eval_findings;
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Findings about the evals\n")?;
    for finding in findings.iter().take(MAX_CASES) {
        writeln!(out, "- {}", escape_markdown(&truncate_text(&finding.describe(), MAX_TEXT_LENGTH)))?;
    }
    match findings.len().saturating_sub(MAX_CASES) {
        0 => Ok(()),
        more => writeln!(out, "- and {}", count_with_noun(more, "more finding")),
    }
}

fn describe_check(check: &CheckResult) -> String {
    format!("{}: {}", check.title(), check.rationale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_stays_in_its_comment() {
        for (name, expected) in [
            ("release-notes", "release-notes"),
            ("a --> <script>", "a%20-%2D%3E%20%3Cscript%3E"),
            ("one,two/three.four", "one,two/three.four"),
            ("a---b----", "a-%2D-b-%2D-%2D"),
            ("größe", "gr%C3%B6%C3%9Fe"),
        ] {
            assert_eq!(comment_marker(name), expected);
            assert!(!comment_marker(name).contains("--"));
        }
    }
}
