use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

/// About a screen and a half. A shorter text can be taken in without a map.
const LONG: usize = 60;

pub static RULE: LintRule = LintRule {
    code: "no-headings",
    severity: Severity::Warning,
    summary: "A long body is divided by headings.",
    why: "Headings let an agent find the part that matters now and see which rule outranks which. \
          More than 60 lines without one read as one rule.",
    bad: "(80 lines of paragraphs)",
    good: "# Release notes\n\n## What to leave out\n\n…\n\n## Breaking changes\n\n…",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let lines = draft.body().lines().filter(|line| !line.trim().is_empty()).count();
    if lines > LONG && draft.page.headings.is_empty() {
        findings.add_help(
            draft.body_begins(),
            format!("{lines} lines and no heading"),
            "put headings above the parts, the most important part first",
        );
    }
}
