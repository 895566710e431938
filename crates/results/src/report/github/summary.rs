use std::io::Write;

use crate::report::figures;
use crate::report::markup::{cut, markdown};
use crate::report::results::Results;
use practicum_core::model::{
    CaseStanding, CaseSummary, CheckResult, FireRate, Standing, Totals, Verdict, counted,
};
use practicum_skills::own_files::MARK;

/// How many cases are told with why they did not pass. GitHub cuts comments at 65,536 characters.
const MOST_CASES: usize = 25;
const MOST_CHECKS: usize = 5;
const LONGEST_TEXT: usize = 300;

/// The same with a line by which a later comment finds this one and takes its place.
pub fn comment(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "<!-- practicum:{} -->", marker(&results.suites().join(",")))?;
    write(results, out)?;
    writeln!(out, "{MARK}")
}

/// A name that cannot end the comment it stands in.
fn marker(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b',' => out.push(char::from(byte)),
            b'-' if !out.ends_with('-') => out.push('-'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

pub fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    let (examined, without) = results.totals();
    let (mark, word) = match summary.standing() {
        Standing::Passed if !summary.has_gate() => ("✅", "passed, and no gate was set".to_owned()),
        Standing::Passed => ("✅", "passed".to_owned()),
        Standing::Failed => ("❌", "failed".to_owned()),
        Standing::Ungated => ("⚠️", format!("no gate, because {}", summary.why_no_gate())),
        Standing::Incomplete | Standing::OverBudget | Standing::Interrupted => {
            ("⚠️", "could not be completed".to_owned())
        }
    };
    let names: Vec<String> = results.suites().iter().map(|name| markdown(name)).collect();
    writeln!(out, "## {mark} {}: {word}\n", figures::suites(&names))?;
    writeln!(out, "| | trials run | passed | failed | not scored | not run |\n|---|---|---|---|---|---|")?;
    for (title, of) in [("with the skill", examined), ("without the skill", without)] {
        let Totals { trials, passed, failed, not_scored, not_run } = of;
        if trials + not_run > 0 {
            writeln!(out, "| {title} | {trials} | {passed} | {failed} | {not_scored} | {not_run} |")?;
        }
    }
    writeln!(out, "\n- pass rate {}", figures::pass_rate(&summary.pass_rate))?;
    if let Some(words) = figures::by_rate(summary) {
        writeln!(out, "- {words}")?;
    }
    if let Some(sample) = &summary.sample {
        writeln!(out, "- not all cases were run: {}", markdown(&sample.in_words()))?;
    }
    let activation = summary.activation.as_ref().map(figures::activation);
    let predicted = summary.predicted_activation.as_ref().map(figures::predicted);
    let arms = summary.arms.as_ref().map(figures::arms);
    for line in activation.into_iter().chain(predicted).chain(arms).flatten() {
        writeln!(out, "- {}", markdown(&line))?;
    }
    let (gates, others) = figures::gates(&summary.gates);
    for gate in gates {
        let (figures, word) = figures::gate(gate);
        let name = gate.name.name();
        writeln!(out, "- {}", markdown(&format!("gate {name} of {}: {figures} {word}", gate.about())))?;
    }
    if let Some(others) = others {
        writeln!(out, "- {others}")?;
    }
    let doubts = summary.doubts.in_words();
    if !doubts.is_empty() {
        writeln!(out, "- doubts: {}", doubts.join(", "))?;
    }
    writeln!(out, "- {:.1} s, {}", summary.seconds, markdown(&figures::cost(summary)))?;
    if let Some(words) = figures::failed_teardowns(summary) {
        writeln!(out, "- {}", markdown(&cut(&words, LONGEST_TEXT)))?;
    }
    let notes = figures::notes_of_passed(summary);
    for note in notes.iter().take(MOST_CASES) {
        writeln!(out, "- note: {}", markdown(&cut(note, LONGEST_TEXT)))?;
    }
    if let Some(more) = notes.len().checked_sub(MOST_CASES + 1) {
        writeln!(out, "- and {}", counted(more + 1, "more note"))?;
    }
    for words in results.info.stand_ins() {
        writeln!(out, "- {words}")?;
    }
    troubles(results, out)?;
    findings(results, out)?;
    writeln!(out, "\n<sub>Run {} by practicum {}.</sub>", summary.run, markdown(&results.info.practicum))
}

/// The cases that did not pass, folded, each with what was wrong the first time.
fn troubles(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let troubled: Vec<&CaseSummary> = results
        .summary
        .cases
        .iter()
        .filter(|case| {
            results.summary.has_to_pass(case) && case.standing() != CaseStanding::Passed && case.trials() > 0
        })
        .collect();
    if troubled.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Did not pass\n\n| case | passed | what was wrong |\n|---|---|---|")?;
    for case in troubled.iter().take(MOST_CASES) {
        let mut wrong: Vec<String> = case.deciding_rate().map(FireRate::in_words).into_iter().collect();
        for trial in results.trials(case) {
            let record = trial?;
            if record.verdict == Verdict::Pass {
                continue;
            }
            wrong.extend(record.why_not_scored().map(|why| format!("not scored: {why}")));
            let failed = record.checks.iter().filter(|check| check.verdict == Verdict::Fail);
            wrong.extend(failed.take(MOST_CHECKS).map(in_words));
            wrong.extend(case.notes.iter().map(|note| format!("note: {note}")));
            break;
        }
        let wrong: Vec<String> = wrong.iter().map(|text| markdown(&cut(text, LONGEST_TEXT))).collect();
        let name = markdown(&format!("{} ({})", case.id, case.agent));
        writeln!(out, "| {name} | {} | {} |", figures::passed(case), wrong.join("<br>"))?;
    }
    match troubled.len().saturating_sub(MOST_CASES) {
        0 => Ok(()),
        more => writeln!(out, "\nand {more} more cases"),
    }
}

/// What judges said of the evals: a check that anything meets is no victory.
fn findings(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let findings = &results.summary.eval_findings;
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n### Findings about the evals\n")?;
    for finding in findings.iter().take(MOST_CASES) {
        writeln!(out, "- {}", markdown(&cut(&finding.in_words(), LONGEST_TEXT)))?;
    }
    match findings.len().saturating_sub(MOST_CASES) {
        0 => Ok(()),
        more => writeln!(out, "- and {}", counted(more, "more finding")),
    }
}

fn in_words(check: &CheckResult) -> String {
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
            ("größe", "gr%C3%B6%C3%9Fe"),
        ] {
            assert_eq!(marker(name), expected);
            assert!(!marker(name).contains("--"));
        }
    }
}
