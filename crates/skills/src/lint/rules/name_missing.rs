//! The rule that the frontmatter has a name.

use super::blank_key_span;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "name-missing",
    severity: Severity::Error,
    summary: "The frontmatter gives the skill a name.",
    rationale: "The specification requires it. Some agents fall back to the folder's name, others do not \
          load the skill.",
    bad_example: "---\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    good_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if let Some(span) = blank_key_span(draft, "name") {
        findings.add_with_help(span, "the skill has no name", "add name: with the name of its folder");
    }
}
