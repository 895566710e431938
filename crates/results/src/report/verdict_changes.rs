//! The verdicts that a regrade changed.

use super::{RegradeDocument, terminal_safe};
use practicum_core::model::Verdict;

/// Writes which verdicts a regrade changed, old and new, for a terminal.
pub fn render(regraded: &RegradeDocument) -> String {
    let shown = |text: &str| terminal_safe(text).replace('\n', " ");
    let RegradeDocument { graded_from, changes, .. } = regraded;
    if changes.is_empty() {
        return format!("\n  regraded from run {graded_from}: no verdict changed\n");
    }
    let mut out = format!("\n  regraded from run {graded_from}; what changed:\n");
    let mut trial = None;
    for change in changes {
        if trial != Some(&change.trial) {
            out.push_str(&format!("    {}\n", shown(change.trial.as_str())));
            trial = Some(&change.trial);
        }
        let what = change.check.as_deref().map_or_else(|| "the trial".to_owned(), shown);
        let (old, new) = (verdict_word(change.old.as_ref()), verdict_word(change.new.as_ref()));
        out.push_str(&format!("      {what}: {old} → {new}: {}\n", shown(&change.why)));
    }
    out
}

fn verdict_word(verdict: Option<&Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Pass) => "passed",
        Some(Verdict::Fail) => "failed",
        Some(Verdict::NotScored(_)) => "not scored",
        None => "not there",
    }
}
