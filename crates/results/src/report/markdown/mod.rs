//! The whole report as a Markdown document: activation first if a case asks about it, then each case.

mod activation;
mod cases;

use std::io::Write;

use super::agent_matrix::agent_matrix;
use super::escaping::{escape_markdown as plain, truncate_text};
use super::{ReportFormat, ReportOutput, RunResults, figures, timestamps};
use practicum_core::model::{Estimate, RunStatus, SkillJudgement, TrialTotals};
use practicum_skills::own_files::OWN_FILE_MARK;

pub static REPORT: ReportFormat = ReportFormat {
    name: "md",
    description: "a Markdown document: metrics, failing cases, method",
    output: ReportOutput::File(write),
    environment_file: None,
};

const MAX_FINDING_LENGTH: usize = 1000;

fn write(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    let names: Vec<String> = results.suite_names().iter().map(|name| plain(name)).collect();
    writeln!(out, "# Evaluation of {}\n", figures::list_suites(&names))?;
    let verdict = match summary.status() {
        RunStatus::Passed if !summary.has_gate() => "Passed; no gate was set.".to_owned(),
        RunStatus::Passed => "Passed: every gate holds.".to_owned(),
        RunStatus::Failed => "Failed: a gate does not hold.".to_owned(),
        RunStatus::Ungated => format!("No gate: {}.", plain(&summary.describe_missing_gate())),
        RunStatus::Incomplete => "Could not be completed.".to_owned(),
        RunStatus::OverBudget => "Stopped by its budget.".to_owned(),
        RunStatus::Interrupted => "Interrupted before its end.".to_owned(),
    };
    writeln!(
        out,
        "**{verdict}** Run `{}`, begun {}.\n",
        summary.run,
        plain(&timestamps::format_for_people(&results.info.started))
    )?;
    if let Some(sample) = &summary.sample {
        writeln!(out, "**Not all cases were run: {}.**\n", plain(&sample.describe()))?;
    }
    write_totals(results, out)?;
    write_gates(results, out)?;
    if summary.activation.is_some() {
        activation::write(results, out)?;
    }
    if let Some(predicted) = &summary.predicted_activation {
        activation::write_predicted(predicted, out)?;
    }
    if let Some(arms) = &summary.arms {
        writeln!(out, "\n## {} against {}\n", plain(&arms.after), plain(&arms.before))?;
        for line in figures::describe_arms(arms) {
            writeln!(out, "- {}", plain(&line))?;
        }
    }
    write_agent_matrix(results, out)?;
    cases::write(results, out)?;
    write_doubts(results, out)?;
    write_eval_findings(results, out)?;
    write_methodology(results, out)?;
    writeln!(out, "\n{OWN_FILE_MARK}")
}

fn write_totals(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let summary = &results.summary;
    writeln!(
        out,
        "| | trials | passed | failed | not scored | not run | reused |\n|---|---|---|---|---|---|---|"
    )?;
    let row = |title: &str, of: &TrialTotals| {
        let TrialTotals { trials, passed, failed, not_scored, not_run, reused } = of;
        format!("| {title} | {trials} | {passed} | {failed} | {not_scored} | {not_run} | {reused} |")
    };
    let (examined, without) = results.totals();
    if without.trials + without.not_run > 0 {
        writeln!(out, "{}\n{}", row("with the skill", &examined), row("without the skill", &without))?;
    }
    writeln!(out, "{}\n", row("all", &summary.totals))?;
    let reliability =
        figures::describe_reliability(&summary.reliability).map(|text| format!(" · {}", plain(&text)));
    let rate = figures::describe_pass_rate(&summary.pass_rate);
    writeln!(out, "- Pass rate: {rate}{}", reliability.unwrap_or_default())?;
    let cost = plain(&figures::describe_cost(summary));
    let tokens = summary.tokens.input + summary.tokens.output;
    writeln!(out, "- Time and cost: {:.1} s, {tokens} tokens, {cost}", summary.seconds)?;
    if let Some(words) = figures::describe_variance(summary) {
        writeln!(out, "- {}", plain(&words))?;
    }
    if !summary.frontier.is_empty() {
        writeln!(out, "\n## Cost against quality\n")?;
    }
    for line in figures::describe_frontier(&summary.frontier) {
        writeln!(out, "- {}", plain(&line))?;
    }
    Ok(())
}

fn write_gates(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    if results.summary.gates.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Gates\n\n| gate | suite | value | |\n|---|---|---|---|")?;
    for gate in &results.summary.gates {
        let (figures, word) = figures::describe_gate(gate);
        let name = plain(gate.name.name());
        writeln!(out, "| {name} | {} | {} | {word} |", plain(&gate.subject()), plain(&figures))?;
    }
    Ok(())
}

/// Writes the cases side by side, if several agents worked on them.
fn write_agent_matrix(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let Some(matrix) = agent_matrix(&results.summary) else { return Ok(()) };
    let heads: Vec<String> = matrix.columns.iter().map(|name| plain(name)).collect();
    writeln!(out, "\n## Agents side by side\n\nPass rates with their intervals.\n")?;
    writeln!(out, "| suite | case | {} |\n|---|---|{}", heads.join(" | "), "---|".repeat(heads.len()))?;
    for row in &matrix.rows {
        let cells: Vec<String> = row.cells.iter().map(|cell| plain(cell.as_deref().unwrap_or("–"))).collect();
        writeln!(out, "| {} | {} | {} |", plain(&row.suite), plain(&row.case), cells.join(" | "))?;
    }
    Ok(())
}

/// Writes an estimate as cells of a table: value and interval.
fn estimate_cells(of: Estimate) -> String {
    let value = of.value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
    let interval = of.low.zip(of.high).map(|(low, high)| format!("{low:.2} – {high:.2}"));
    format!("{value} | {}", interval.unwrap_or_else(|| "–".to_owned()))
}

/// Writes the doubts about grades.
fn write_doubts(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    let doubts = results.summary.doubts.describe();
    if doubts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Doubts\n")?;
    doubts.iter().try_for_each(|doubt| writeln!(out, "- {doubt}"))
}

/// Writes the judges' findings about the evals: a check that any answer meets proves nothing.
fn write_eval_findings(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    if results.summary.eval_findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Findings about the evals\n")?;
    for finding in &results.summary.eval_findings {
        writeln!(out, "- {}", plain(&truncate_text(&finding.describe(), MAX_FINDING_LENGTH)))?;
    }
    Ok(())
}

fn write_methodology(results: &RunResults, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "\n## Methodology\n")?;
    for asked in results.info.suites.iter() {
        let setting = |name: &str| asked.setting(name).unwrap_or("–");
        let own_limit = asked.suite.cases.iter().any(|case| case.timeout.is_some());
        let line = format!(
            "{}: format {}, agent {}, model {}, mode {}, arm {}, repeat {}, at most {} each{}.",
            asked.suite.name,
            asked.suite.origin.dialect,
            setting("agent"),
            setting("model"),
            setting("mode"),
            setting("arm"),
            setting("repeat"),
            setting("timeout"),
            if own_limit { ", unless the case says otherwise" } else { "" },
        );
        writeln!(out, "- {}", plain(&line))?;
    }
    for notice in &results.info.notices {
        writeln!(out, "- {}", plain(notice))?;
    }
    for rivals in &results.summary.rivals {
        writeln!(out, "- {}", plain(&rivals.describe()))?;
    }
    for probe in &results.summary.probes {
        writeln!(out, "- {}", plain(&probe.describe()))?;
    }
    for line in results.summary.skills_judged.iter().flat_map(SkillJudgement::describe) {
        writeln!(out, "- {}", plain(&line))?;
    }
    if let Some(words) = figures::describe_failed_teardowns(&results.summary) {
        writeln!(out, "- {}", plain(&words))?;
    }
    for words in results.info.model_stand_ins() {
        writeln!(out, "- {words}")?;
    }
    write!(out, "{METHOD}")
}

const METHOD: &str = "\
- Each trial ran in a new workspace without the evals.
- Activation is observed: the agent called its skill tool, or read the SKILL.md.
- Brackets are 95 % intervals; runs of one case count as one cluster.
- Agreement is the share of runs that have the most frequent result of a check.
- An error, a time-out or an unusable answer of a judge is not scored: it is in no rate, and neither passed nor
  failed. Undefined rates are shown as –.
- Precision = TP / (TP + FP), recall = TP / (TP + FN), F1 is their harmonic mean, accuracy = (TP + TN) /
  all four. Cases in which either outcome is acceptable are in none of them. Without a run that must not
  activate the skill, precision, F1 and accuracy are undefined.
";
