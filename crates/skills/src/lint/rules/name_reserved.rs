use crate::lint::{Draft, Findings, LintRule};
use practicum_core::model::Severity;

const RESERVED: &[&str] = &["anthropic", "claude"];

pub static RULE: LintRule = LintRule {
    code: "name-reserved",
    severity: Severity::Warning,
    summary: "A skill's name does not contain \"anthropic\" or \"claude\".",
    why: "Anthropic reserves both words: its API and apps refuse to take such a skill in. Claude Code \
          and other agents load it nevertheless, so this is a warning.",
    bad: "name: claude-helper",
    good: "name: review-helper",
    convention: None,
    check,
};

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((name, span)) = draft.said("name") else { return };
    let lower = name.to_lowercase();
    if let Some(word) = RESERVED.iter().find(|word| lower.contains(*word)) {
        findings.add(span, format!("\"{word}\" is a reserved word"));
    }
}
