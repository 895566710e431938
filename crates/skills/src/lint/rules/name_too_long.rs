//! The rule that a name has at most 64 characters.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub(super) const MAX_NAME_LENGTH: usize = 64;

pub static RULE: LintRule = LintRule {
    code: "name-too-long",
    severity: Severity::Error,
    summary: "A skill's name has at most 64 characters.",
    rationale: "The specification allows no more, and agents refuse a longer one.",
    bad_example: "name: writes-release-notes-for-people-from-a-list-of-commits-and-their-messages",
    good_example: "name: release-notes",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((name, span)) = draft.nonblank_text("name") else { return };
    let length = name.chars().count();
    if length > MAX_NAME_LENGTH {
        findings.add(span, format!("the name has {length} characters; {MAX_NAME_LENGTH} are allowed"));
    }
}
