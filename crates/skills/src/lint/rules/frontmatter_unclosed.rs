//! The rule that the frontmatter ends with a line of three hyphens.

use crate::lint::{Convention, DraftFrontmatter, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "frontmatter-unclosed",
    severity: Severity::Error,
    summary: "The frontmatter ends with a line of three hyphens.",
    rationale: "Without the second --- no agent knows where the frontmatter ends and the body begins, so \
          neither is read.",
    bad_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n\n# Release notes",
    good_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---\n\n# Release notes",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if matches!(draft.frontmatter, DraftFrontmatter::Unclosed) {
        findings.add_with_help(
            draft.opening_fence(),
            "the frontmatter that begins here is never closed",
            "put a line --- below its last key",
        );
    }
}
