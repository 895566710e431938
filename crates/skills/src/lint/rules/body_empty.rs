//! The rule that a skill's body contains instructions.

use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "body-empty",
    severity: Severity::Warning,
    summary: "There are instructions below the frontmatter.",
    rationale: "What an agent gets when it takes the skill up is the body. Without one it has read the \
          description a second time.",
    bad_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---",
    good_example: "---\nname: release-notes\ndescription: Writes release notes. Use when asked for a changelog.\n---\n\nRead the commits you are given. Write NOTES.md: …",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if draft.frontmatter_entries().is_some() && draft.body().trim().is_empty() {
        findings.add(draft.opening_fence(), "the skill has no instructions below its frontmatter");
    }
}
