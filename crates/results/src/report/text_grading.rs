//! The grading of a captured text for a terminal.

use super::styles::{self, BAD, FAINT, GOOD, UNSURE};
use super::{figures, terminal_safe};
use practicum_core::model::{CheckResult, GateResult, Outcome, Verdict, count_with_noun, title};

/// Writes the results of grading a captured text for a terminal: the verdict first.
pub fn render(
    outcome: Outcome,
    results: &[(String, CheckResult)],
    gates: &[GateResult],
    notes: &[String],
) -> String {
    let shown = |text: &str| terminal_safe(text).replace('\n', " ");
    let (style, word) = match outcome {
        Outcome::Passed => (GOOD, "PASS"),
        Outcome::Failed => (BAD, "FAIL"),
        Outcome::Invalid | Outcome::Incomplete | Outcome::OverBudget | Outcome::Interrupted => {
            (UNSURE, "INCOMPLETE")
        }
    };
    let count = |name: &str| results.iter().filter(|(_, result)| result.verdict.name() == name).count();
    let mut out = format!(
        "{style}{word}{style:#}  {} of {} passed",
        count("pass"),
        count_with_noun(results.len(), "check")
    );
    for (name, words) in [("fail", "failed"), ("not_scored", "not scored")] {
        if count(name) > 0 {
            out.push_str(&format!(", {} {words}", count(name)));
        }
    }
    out.push_str("\n\n");
    for (id, result) in results {
        let (style, symbol) = match result.verdict {
            Verdict::Pass => (GOOD, "✓"),
            Verdict::Fail => (BAD, "✗"),
            Verdict::NotScored(_) => (UNSURE, "?"),
        };
        let weight = result.describe_weight();
        out.push_str(&format!(
            "  {style}{symbol}{style:#} {}{weight}: {}\n",
            shown(&title(id, result.name.as_deref())),
            shown(&result.rationale)
        ));
        for line in result.evidence.iter().filter(|_| result.verdict != Verdict::Pass) {
            out.push_str(&format!("      {FAINT}{}{FAINT:#}\n", shown(line)));
        }
        for flag in &result.flags {
            out.push_str(&format!("      {UNSURE}{}{UNSURE:#}\n", shown(flag)));
        }
    }
    out.push('\n');
    for gate in gates {
        let (figures, word) = figures::describe_gate(gate);
        let style = styles::gate_style(gate);
        out.push_str(&format!("  gate {}: {figures} {style}{word}{style:#}\n", gate.name.name()));
    }
    for note in notes {
        out.push_str(&format!("  {UNSURE}note{UNSURE:#}: {}\n", shown(note)));
    }
    out
}
