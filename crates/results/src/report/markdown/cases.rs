//! The cases of the Markdown report: how often each passed, the results of its checks, and the evidence of
//! failures.

use std::io::Write;

use super::plain;
use crate::report::escaping::truncate_text;
use crate::report::figures;
use crate::report::run_results::{CaseTexts, RunResults};
use practicum_core::model::{CaseStatus, CaseSummary, CheckResult, TrialRecord, Verdict, count_with_noun};

/// The greatest number of trials of a case that are shown with their problems.
const MAX_TRIALS: u64 = 3;
const MAX_EVIDENCE: usize = 5;
const MAX_TEXT_LENGTH: usize = 600;

pub fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let questions = results.case_texts();
    // The section on activation already shows everything about the other cases.
    let listed: Vec<&CaseSummary> =
        results.summary.cases.iter().filter(|case| !case.is_only_about_activation()).collect();
    if listed.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Cases")?;
    for case in listed {
        write_case(results, &questions, case, out)?;
    }
    Ok(())
}

fn write_case(
    results: &RunResults,
    questions: &CaseTexts<'_>,
    case: &CaseSummary,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let mut words = vec![case.agent.clone()];
    words.extend(case.model.clone());
    words.extend([case.arm.clone(), case.mode.clone()]);
    writeln!(out, "\n### {}\n", plain(&format!("{} ({})", case.id, words.join(", "))))?;
    let runs = case.trials();
    let rate = figures::describe_pass_rate(&case.pass_rate);
    let not_run = if case.not_run > 0 { format!(", {} not run", case.not_run) } else { String::new() };
    let reused = if case.reused > 0 { format!(", {} reused", case.reused) } else { String::new() };
    writeln!(
        out,
        "{} of {} passed{not_run}{reused}; pass rate {rate}.\n",
        case.passed,
        count_with_noun(runs, "run")
    )?;
    if let Some(words) = describe_rate_verdict(case) {
        writeln!(out, "{}\n", plain(&words))?;
    }
    if !case.checks.is_empty() {
        writeln!(
            out,
            "| check | passed | failed | not scored | agreement | mean score |\n|---|---|---|---|---|---|"
        )?;
    }
    for check in &case.checks {
        let wording = questions.check_wording(&case.suite, &case.id, &check.id);
        let name = wording.map_or_else(|| check.id.clone(), |words| format!("{}: {words}", check.id));
        let figure = |of: Option<f64>| of.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
        let (agreement, mut mean) = (figure(check.agreement), figure(check.mean_score));
        if let Some(why) = &check.not_scored_because {
            let why = plain(&truncate_text(why, MAX_TEXT_LENGTH));
            mean = if check.mean_score.is_some() {
                format!("{mean}; {why}")
            } else {
                format!("no score: {why}")
            };
        }
        let name = plain(&truncate_text(&name, MAX_TEXT_LENGTH));
        writeln!(
            out,
            "| {name} | {} | {} | {} | {agreement} | {mean} |",
            check.passed, check.failed, check.not_scored
        )?;
    }
    // If a case did not pass, each of its trials shows its notes below.
    if !case.needs_attention() {
        let notes = case
            .notes
            .iter()
            .map(|note| format!("\n- note: {}", plain(&truncate_text(note, MAX_TEXT_LENGTH))));
        writeln!(out, "{}", notes.collect::<String>())?;
    }
    let (troubled, mut listed) = (case.failed + case.not_scored, 0);
    if troubled > 0 && !case.checks.is_empty() {
        writeln!(out)?;
    }
    for trial in results.trials(case) {
        let record = trial?;
        if record.verdict == Verdict::Pass {
            continue;
        }
        if listed == MAX_TRIALS {
            return writeln!(
                out,
                "- and {} that did not pass",
                count_with_noun(troubled.saturating_sub(listed), "more run")
            );
        }
        listed += 1;
        write_failed_trial(&record, out)?;
    }
    Ok(())
}

/// Describes the status of a case that a rate decides, and why.
pub fn describe_rate_verdict(case: &CaseSummary) -> Option<String> {
    let rate = case.deciding_rate()?;
    let word = match case.status() {
        CaseStatus::Passed => "passes",
        CaseStatus::Failed => "fails",
        CaseStatus::Unscored => "is not measured",
    };
    Some(format!("The case {word}: {}.", rate.description))
}

fn write_failed_trial(record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    let said = |text: &str| plain(&truncate_text(text, MAX_TEXT_LENGTH));
    let head = match record.not_scored_reason() {
        Some(why) => format!("not scored: {why}"),
        None => "failed".to_owned(),
    };
    let reused = record.reused_from.as_ref().map(|run| format!(" (reused from {})", plain(run)));
    writeln!(out, "- Run {} {}{}", record.attempt, said(&head), reused.unwrap_or_default())?;
    if let Some(criteria) = TrialRecord::describe_total(&record.checks) {
        writeln!(out, "  - criteria: {}", said(&criteria))?;
    }
    let troubled = |check: &&CheckResult| check.verdict != Verdict::Pass;
    for check in record.checks.iter().filter(troubled) {
        let weight = check.describe_weight();
        writeln!(out, "  - {}{weight}: {}", said(&check.title()), said(&check.rationale))?;
        for line in check.evidence.iter().chain(&check.flags).take(MAX_EVIDENCE) {
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
