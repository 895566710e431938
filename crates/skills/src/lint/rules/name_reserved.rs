//! The rule that a name does not contain a reserved word.

use crate::lint::{LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const RESERVED_WORDS: &[&str] = &["anthropic", "claude"];

pub static RULE: LintRule = LintRule {
    code: "name-reserved",
    severity: Severity::Warning,
    summary: "A skill's name does not contain \"anthropic\" or \"claude\".",
    rationale: "Anthropic reserves both words: its API and apps refuse to take such a skill in. Claude Code \
          and other agents load it nevertheless, so this is a warning.",
    bad_example: "name: claude-helper",
    good_example: "name: review-helper",
    convention: None,
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((name, span)) = draft.nonblank_text("name") else { return };
    let lower = name.to_lowercase();
    if let Some(word) = RESERVED_WORDS.iter().find(|word| lower.contains(*word)) {
        findings.add(span, format!("\"{word}\" is a reserved word"));
    }
}
