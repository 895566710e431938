//! The rule that a long body has headings.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

/// The most lines that need no heading: about a screen and a half, which a reader can survey.
const MAX_LINES_WITHOUT_HEADING: usize = 60;

pub static RULE: LintRule = LintRule {
    code: "no-headings",
    severity: Severity::Warning,
    summary: "A long body is divided by headings.",
    rationale: "Headings let an agent find the part that matters now and see which rule outranks which. \
          More than 60 lines without one read as one rule.",
    bad_example: "(80 lines of paragraphs)",
    good_example: "# Release notes\n\n## What to leave out\n\n…\n\n## Breaking changes\n\n…",
    convention: Some(Convention::Disclosure),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let lines = draft.body().lines().filter(|line| !line.trim().is_empty()).count();
    if lines > MAX_LINES_WITHOUT_HEADING && draft.markdown.headings.is_empty() {
        findings.add_with_help(
            draft.first_body_line(),
            format!("{lines} lines and no heading"),
            "put headings above the parts, the most important part first",
        );
    }
}
