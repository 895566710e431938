use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

const LONGEST: usize = 500;

pub static RULE: LintRule = LintRule {
    code: "compatibility-length",
    severity: Severity::Error,
    summary: "A given compatibility has between 1 and 500 characters.",
    why: "The specification sets both ends. Most skills do not need the key; leave it out where \
          there is nothing to say.",
    bad: "compatibility: \"\"",
    good: "compatibility: Requires git and access to the internet",
    convention: Some(Convention::Frontmatter),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some(node) = draft.get("compatibility") else { return };
    let Some(text) = node.as_text() else { return };
    let length = text.chars().count();
    if text.trim().is_empty() {
        findings.add_help(node.span, "the compatibility is empty", "leave the key out");
    } else if length > LONGEST {
        findings.add(node.span, format!("the compatibility has {length} characters; {LONGEST} are allowed"));
    }
}
