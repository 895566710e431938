//! The rule that a given compatibility has between 1 and 500 characters.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const MAX_LENGTH: usize = 500;

pub static RULE: LintRule = LintRule {
    code: "compatibility-length",
    severity: Severity::Error,
    summary: "A given compatibility has between 1 and 500 characters.",
    rationale: "The specification sets both ends. Most skills do not need the key; leave it out where \
          there is nothing to say.",
    bad_example: "compatibility: \"\"",
    good_example: "compatibility: Requires git and access to the internet",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some(node) = draft.frontmatter_value("compatibility") else { return };
    let Some(text) = node.as_text() else { return };
    let length = text.chars().count();
    if text.trim().is_empty() {
        findings.add_with_help(node.span, "the compatibility is empty", "leave the key out");
    } else if length > MAX_LENGTH {
        findings
            .add(node.span, format!("the compatibility has {length} characters; {MAX_LENGTH} are allowed"));
    }
}
