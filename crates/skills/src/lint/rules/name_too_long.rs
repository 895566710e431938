use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub(super) const LONGEST: usize = 64;

pub static RULE: LintRule = LintRule {
    code: "name-too-long",
    severity: Severity::Error,
    summary: "A skill's name has at most 64 characters.",
    why: "The specification allows no more, and agents refuse a longer one.",
    bad: "name: writes-release-notes-for-people-from-a-list-of-commits-and-their-messages",
    good: "name: release-notes",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((name, span)) = draft.said("name") else { return };
    let length = name.chars().count();
    if length > LONGEST {
        findings.add(span, format!("the name has {length} characters; {LONGEST} are allowed"));
    }
}
