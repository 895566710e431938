//! The command `practicum compare A B --spec SPEC`: compares two captured texts by the same deterministic checks.

use std::path::Path;

use anyhow::Context;

use super::grade::read_text;
use super::{print, print_json};
use crate::model::Outcome;
use crate::report::{TextComparisonDocument, terminal_safe};
use crate::testing::Spec;

/// Compares two texts and prints the checks whose results differ. Gives the exit code.
pub fn compare(
    (before, after): (&Path, &Path),
    spec: &Path,
    case: Option<&str>,
    json: bool,
) -> anyhow::Result<Outcome> {
    let mut checks = Spec::load(spec)?;
    if let Some(case) = case {
        checks = checks.case(case)?;
    }
    let grade = |path: &Path| -> anyhow::Result<_> {
        let text = read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(checks.grade(&text)?)
    };
    let (old, new) = (grade(before)?, grade(after)?);
    let (flips, [pass_in_both, fail_in_both, not_scored_in_both]) = new.flips_since(&old);
    let has = |outcome: Outcome| flips.iter().any(|flip| flip.outcome() == outcome);
    // If no check has a result for both texts, nothing was compared.
    let nothing_compared = flips.is_empty() && pass_in_both + fail_in_both == 0;
    let outcome = match () {
        () if has(Outcome::Failed) => Outcome::Failed,
        () if has(Outcome::Incomplete) || nothing_compared => Outcome::Incomplete,
        () => Outcome::Passed,
    };
    let compared = TextComparisonDocument {
        schema_version: 1,
        before: before.to_owned(),
        after: after.to_owned(),
        spec: spec.to_owned(),
        flips,
        pass_in_both,
        fail_in_both,
        not_scored_in_both,
        ok: outcome == Outcome::Passed,
    };
    if json {
        print_json(&compared)?;
    } else {
        print(&render_comparison(&compared))?;
    }
    Ok(outcome)
}

fn render_comparison(compared: &TextComparisonDocument) -> String {
    let TextComparisonDocument {
        before, after, flips, pass_in_both, fail_in_both, not_scored_in_both, ..
    } = compared;
    let shown = |text: &str| terminal_safe(text).replace('\n', " ");
    let path = |path: &Path| shown(&path.display().to_string());
    let mut out = format!("{} → {}\n\n", path(before), path(after));
    for flip in flips {
        let (word, check) = (flip.describe(), shown(&flip.check));
        out.push_str(&format!("  {word:<12} {check}: {}\n", shown(&flip.why)));
    }
    if flips.is_empty() {
        let nothing_compared = pass_in_both + fail_in_both == 0;
        out.push_str(if nothing_compared { "  nothing could be compared\n" } else { "  nothing flipped\n" });
    }
    out.push_str(&format!(
        "\n  in both: {pass_in_both} pass, {fail_in_both} fail, {not_scored_in_both} not scored\n"
    ));
    if *not_scored_in_both > 0 {
        out.push_str("  what is not scored needs a judge (--blind) or a run\n");
    }
    out
}
