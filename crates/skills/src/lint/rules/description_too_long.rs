use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

const LONGEST: usize = 1024;

pub static RULE: LintRule = LintRule {
    code: "description-too-long",
    severity: Severity::Error,
    summary: "A description has at most 1024 characters.",
    why: "Every description of every installed skill is in every conversation. The specification \
          allows no more, and agents refuse or cut off a longer one.",
    bad: "description: (a page of text that explains how the skill goes about it)",
    good: "description: Writes release notes. Use when asked for a changelog or a \"what's new\" text.",
    convention: Some(Convention::Description),
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((description, span)) = draft.said("description") else { return };
    let length = description.chars().count();
    if length > LONGEST {
        findings.add_help(
            span,
            format!("the description has {length} characters; {LONGEST} are allowed"),
            "keep what it does and when to use it; the rest belongs into the body",
        );
    }
}
