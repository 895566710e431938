use std::io::Write;

use super::styles::{BAD, FAINT, GOOD, UNSURE};
use super::{Report, Results, figures, safe, styles};
use crate::model::{CaseSummary, Doubts, Summary, TrialRecord, Verdict};

/// The closing summary for a terminal: the verdict first.
pub struct Text;

impl Report for Text {
    fn name(&self) -> &'static str {
        "text"
    }

    fn write(&self, results: &Results<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        let summary = results.summary;
        writeln!(out)?;
        verdict_line(summary, out)?;
        writeln!(out)?;
        for case in &summary.cases {
            case_line(case, out)?;
        }
        for record in results.troubles {
            trouble(record, out)?;
        }
        if !results.troubles.is_empty() {
            let run = &results.summary.run;
            writeln!(out, "\n  {FAINT}more: practicum show {run} CASE{FAINT:#}")?;
        }
        writeln!(out)?;
        figures_lines(summary, out)?;
        for gate in &summary.gates {
            let (figures, word) = figures::gate(gate);
            let (name, style) = (gate.name.name(), styles::gate(gate));
            writeln!(out, "  gate {name} of {}: {figures} {style}{word}{style:#}", safe(&gate.suite))?;
        }
        let doubts = in_words(&summary.doubts);
        if !doubts.is_empty() {
            writeln!(out, "  {UNSURE}doubts{UNSURE:#}: {}", doubts.join(", "))?;
        }
        let cost = summary.cost_usd.map_or_else(|| "cost unknown".to_owned(), |cost| format!("${cost:.4}"));
        let tokens = summary.tokens.input + summary.tokens.output;
        writeln!(out, "  {FAINT}{:.1} s · {tokens} tokens · {cost}{FAINT:#}", summary.seconds)?;
        if results.scripted {
            writeln!(
                out,
                "  {UNSURE}scripted{UNSURE:#}: the model's answers came from a script, so this run tests the evals, not a model"
            )?;
        }
        if results.replayed {
            writeln!(
                out,
                "  {UNSURE}replayed{UNSURE:#}: the model's answers were recorded earlier, and so were tokens and cost"
            )?;
        }
        writeln!(out, "  {FAINT}record: {}{FAINT:#}", results.run_dir.display())
    }
}

/// What a judge left in doubt, as far as there is any.
fn in_words(doubts: &Doubts) -> Vec<String> {
    let Doubts { weak_checks, unsupported_marks, uncovered, unverified_claims } = *doubts;
    let told = [
        (weak_checks, "weak check", "weak checks"),
        (unsupported_marks, "mark without support", "marks without support"),
        (uncovered, "uncovered behaviour", "uncovered behaviours"),
        (unverified_claims, "claim not borne out", "claims not borne out"),
    ];
    let some = told.into_iter().filter(|(count, ..)| *count > 0);
    some.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect()
}

fn verdict_line(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let (style, word) = match summary.exit {
        0 => (GOOD, "PASS"),
        1 => (BAD, "FAIL"),
        130 => (UNSURE, "INTERRUPTED"),
        4 => (UNSURE, "OVER BUDGET"),
        _ => (UNSURE, "INCOMPLETE"),
    };
    let totals = &summary.totals;
    write!(out, "{style}{word}{style:#}  {} of {} trials passed", totals.passed, totals.trials)?;
    if totals.failed > 0 {
        write!(out, ", {} failed", totals.failed)?;
    }
    if totals.not_scored > 0 {
        write!(out, ", {} not scored", totals.not_scored)?;
    }
    writeln!(out)
}

/// What the trials come to, with how sure that is.
fn figures_lines(summary: &Summary, out: &mut dyn Write) -> std::io::Result<()> {
    let reliability = figures::reliability(&summary.reliability).map(|text| format!(" · {text}"));
    let rate = figures::pass_rate(&summary.pass_rate);
    writeln!(out, "  pass rate {rate}{}", reliability.unwrap_or_default())?;
    if let Some(left_out) = summary.left_out.filter(|count| *count > 0) {
        writeln!(out, "  {left_out} trials were not needed: those before them told enough")?;
    }
    let activation = summary.activation.as_ref().map(figures::activation);
    let arms = summary.arms.as_ref().map(figures::arms);
    for line in activation.into_iter().chain(arms).flatten() {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn case_line(case: &CaseSummary, out: &mut dyn Write) -> std::io::Result<()> {
    let (style, mark) = match (case.failed, case.not_scored, case.passed) {
        (0, 0, 1..) => (GOOD, "✓"),
        (1.., _, _) => (BAD, "✗"),
        _ => (UNSURE, "?"),
    };
    let runs = case.passed + case.failed + case.not_scored;
    let arm = if case.arm == "with" { String::new() } else { format!(" {}", case.arm) };
    let fired = match (case.fired.yes, case.fired.no) {
        (0, 0) => String::new(),
        (yes, no) => format!(" · fired {yes}/{}", yes + no),
    };
    let interval = match (case.pass_rate.rate.low, case.pass_rate.rate.high) {
        (Some(low), Some(high)) if runs > 1 => format!(" [{low:.2}, {high:.2}]"),
        _ => String::new(),
    };
    writeln!(
        out,
        "  {style}{mark}{style:#} {} {FAINT}{}{arm} · {}/{runs} passed{interval}{fired}{FAINT:#}",
        safe(&case.id),
        safe(&case.agent),
        case.passed,
    )
}

fn trouble(record: &TrialRecord, out: &mut dyn Write) -> std::io::Result<()> {
    let shown = |text: &str| safe(text).replace('\n', " ");
    writeln!(out)?;
    let run = format!("{} #{} ({})", shown(&record.case), record.attempt, shown(&record.condition.agent));
    match &record.verdict {
        Verdict::Fail | Verdict::Pass => writeln!(out, "  {BAD}failed{BAD:#} {run}")?,
        Verdict::NotScored(why) => {
            let because =
                record.ended_because.as_deref().map(|why| format!(": {}", shown(why))).unwrap_or_default();
            writeln!(out, "  {UNSURE}not scored{UNSURE:#} {run}: {}{because}", shown(&why.in_words()))?;
        }
    }
    for check in record.checks.iter().filter(|check| check.verdict != Verdict::Pass) {
        let (style, word) = match check.verdict {
            Verdict::Fail => (BAD, "✗"),
            Verdict::NotScored(_) | Verdict::Pass => (UNSURE, "?"),
        };
        let optional = if check.required { "" } else { " (optional)" };
        writeln!(
            out,
            "    {style}{word}{style:#} {}{optional}: {}",
            shown(&check.check),
            shown(&check.rationale)
        )?;
        for line in &check.evidence {
            writeln!(out, "      {FAINT}{}{FAINT:#}", shown(line))?;
        }
    }
    for note in &record.notes {
        writeln!(out, "    {FAINT}note: {}{FAINT:#}", shown(note))?;
    }
    Ok(())
}
