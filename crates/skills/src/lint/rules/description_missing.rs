//! The rule that the frontmatter has a description.

use super::blank_key_span;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-missing",
    severity: Severity::Error,
    summary: "The frontmatter describes the skill.",
    rationale: "The description is all an agent knows of a skill when it decides whether to take it up. \
          Without one the skill is refused, or never used.",
    bad_example: "---\nname: release-notes\n---",
    good_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if let Some(span) = blank_key_span(draft, "description") {
        findings.add_with_help(
            span,
            "the skill has no description",
            "add description: with what it does and when to use it",
        );
    }
}
