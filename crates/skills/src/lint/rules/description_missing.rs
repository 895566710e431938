use super::blank;
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-missing",
    severity: Severity::Error,
    summary: "The frontmatter describes the skill.",
    why: "The description is all an agent knows of a skill when it decides whether to take it up. \
          Without one the skill is refused, or never used.",
    bad: "---\nname: release-notes\n---",
    good: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    if let Some(span) = blank(draft, "description") {
        findings.add_help(
            span,
            "the skill has no description",
            "add description: with what it does and when to use it",
        );
    }
}
