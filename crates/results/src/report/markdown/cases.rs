//! Each case: how often it passed, what became of its checks, and the evidence where they failed.

use std::io::Write;

use super::plain;
use crate::report::figures;
use crate::report::markup::cut;
use crate::report::results::{Questions, Results};
use practicum_core::model::{
    CaseStanding, CaseSummary, CheckResult, CriteriaThresholds, TrialRecord, Verdict, counted,
};

/// How many trials of a case are told with what was wrong.
const MOST_TRIALS: u64 = 3;
const MOST_EVIDENCE: usize = 5;
const LONGEST_TEXT: usize = 600;

pub fn write(results: &Results, out: &mut dyn Write) -> std::io::Result<()> {
    let questions = results.questions();
    // All there is to say of the others stands under activation.
    let told: Vec<&CaseSummary> =
        results.summary.cases.iter().filter(|case| !case.is_only_about_activation()).collect();
    if told.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Cases")?;
    for case in told {
        one(results, &questions, case, out)?;
    }
    Ok(())
}

fn one(
    results: &Results,
    questions: &Questions<'_>,
    case: &CaseSummary,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut words = vec![case.agent.clone()];
    words.extend(case.model.clone());
    words.extend([case.arm.clone(), case.mode.clone()]);
    writeln!(out, "\n### {}\n", plain(&format!("{} ({})", case.id, words.join(", "))))?;
    let runs = case.trials();
    let rate = figures::pass_rate(&case.pass_rate);
    let not_run = if case.not_run > 0 { format!(", {} not run", case.not_run) } else { String::new() };
    writeln!(out, "{} of {} passed{not_run}; pass rate {rate}.\n", case.passed, counted(runs, "run"))?;
    if let Some(words) = by_rate(case) {
        writeln!(out, "{}\n", plain(&words))?;
    }
    if !case.checks.is_empty() {
        writeln!(
            out,
            "| check | passed | failed | not scored | agreement | mean score |\n|---|---|---|---|---|---|"
        )?;
    }
    for check in &case.checks {
        let wording = questions.wording(&case.suite, &case.id, &check.id);
        let name = wording.map_or_else(|| check.id.clone(), |words| format!("{}: {words}", check.id));
        let figure = |of: Option<f64>| of.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
        let (agreement, mut mean) = (figure(check.agreement), figure(check.mean_score));
        if let Some(why) = &check.not_scored_because {
            let why = plain(&cut(why, LONGEST_TEXT));
            mean = if check.mean_score.is_some() {
                format!("{mean}; {why}")
            } else {
                format!("no score: {why}")
            };
        }
        let name = plain(&cut(&name, LONGEST_TEXT));
        writeln!(
            out,
            "| {name} | {} | {} | {} | {agreement} | {mean} |",
            check.passed, check.failed, check.not_scored
        )?;
    }
    // Of a case that did not pass, each run says its own below.
    if !case.is_troubled() {
        let notes = case.notes.iter().map(|note| format!("\n- note: {}", plain(&cut(note, LONGEST_TEXT))));
        writeln!(out, "{}", notes.collect::<String>())?;
    }
    let (troubled, mut told) = (case.failed + case.not_scored, 0);
    if troubled > 0 && !case.checks.is_empty() {
        writeln!(out)?;
    }
    for trial in results.trials(case) {
        let record = trial?;
        if record.verdict == Verdict::Pass {
            continue;
        }
        if told == MOST_TRIALS {
            return writeln!(
                out,
                "- and {} that did not pass",
                counted(troubled.saturating_sub(told), "more run")
            );
        }
        told += 1;
        trouble(&record, out)?;
    }
    Ok(())
}

/// How a case stands that a rate decides, and why.
pub fn by_rate(case: &CaseSummary) -> Option<String> {
    let rate = case.deciding_rate()?;
    let word = match case.standing() {
        CaseStanding::Passed => "passes",
        CaseStanding::Failed => "fails",
        CaseStanding::Unscored => "is not measured",
    };
    Some(format!("The case {word}: {}.", rate.in_words()))
}

fn trouble(record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    let said = |text: &str| plain(&cut(text, LONGEST_TEXT));
    let head = match record.why_not_scored() {
        Some(why) => format!("not scored: {why}"),
        None => "failed".to_owned(),
    };
    writeln!(out, "- Run {} {}", record.attempt, said(&head))?;
    if let Some(criteria) = CriteriaThresholds::in_words(&record.checks) {
        writeln!(out, "  - criteria: {}", said(&criteria))?;
    }
    let troubled = |check: &&CheckResult| check.verdict != Verdict::Pass;
    for check in record.checks.iter().filter(troubled) {
        let weight = check.weight();
        writeln!(out, "  - {}{weight}: {}", said(&check.title()), said(&check.rationale))?;
        for line in check.evidence.iter().chain(&check.flags).take(MOST_EVIDENCE) {
            writeln!(out, "    - {}", said(line))?;
        }
    }
    for note in &record.notes {
        writeln!(out, "  - note: {}", said(note))?;
    }
    for claim in record.remarks.claims.iter().filter(|claim| !claim.verified) {
        let words = format!("claims without support: {} ({})", claim.claim, claim.evidence);
        writeln!(out, "  - {}", said(&words))?;
    }
    Ok(())
}
