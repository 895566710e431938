//! The diagnosis of a skill for a terminal.

use super::figures;
use practicum_core::studies::{Blame, DiagnosisDocument};

/// Writes the verdict, the cells and the comparisons that decided.
pub fn render_text(of: &DiagnosisDocument) -> String {
    let found = &of.diagnosis;
    let mut out = format!("verdict: {}\n", found.blame.describe());
    for rate in &found.pass_rates {
        out.push_str(&format!(
            "  {:<10} pass rate {}\n",
            rate.cell,
            figures::format_estimate(rate.pass_rate)
        ));
    }
    out.push_str(&format!("  activated where present: {}\n", figures::format_estimate(found.activation)));
    for one in &found.comparisons {
        let [before, after] = &one.cells;
        out.push_str(&format!(
            "  {before} → {after}: {} ({}, p {:.3})\n",
            figures::format_difference(one.difference),
            one.verdict.name(),
            one.chance
        ));
    }
    if found.not_scored > 0 {
        out.push_str(&format!("  {} runs have no verdict\n", found.not_scored));
    }
    out.push_str(match found.blame {
        Blame::Helps => "",
        Blame::Harms => "next: practicum ablate shows which paragraphs do that\n",
        Blame::NotFound => {
            "next: practicum improve SKILL --description-only, and practicum route among other skills\n"
        }
        Blame::NotFollowed => {
            "next: say less and say it earlier; practicum ablate shows which paragraphs matter\n"
        }
        Blame::NotHelping => {
            "next: the agent does as well without it; write harder cases, or drop the skill\n"
        }
        Blame::CannotTell => "next: more cases, or --repeat 10\n",
    });
    out
}
