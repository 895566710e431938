//! The rule that a description has at most 1024 characters.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const MAX_LENGTH: usize = 1024;

pub static RULE: LintRule = LintRule {
    code: "description-too-long",
    severity: Severity::Error,
    summary: "A description has at most 1024 characters.",
    rationale: "Every description of every installed skill is in every conversation. The specification \
          allows no more, and agents refuse or cut off a longer one.",
    bad_example: "description: (a page of text that explains how the skill goes about it)",
    good_example: "description: Writes release notes. Use when asked for a changelog or a \"what's new\" text.",
    convention: Some(Convention::Description),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((description, span)) = draft.nonblank_text("description") else { return };
    let length = description.chars().count();
    if length > MAX_LENGTH {
        findings.add_with_help(
            span,
            format!("the description has {length} characters; {MAX_LENGTH} are allowed"),
            "keep what it does and when to use it; the rest belongs into the body",
        );
    }
}
