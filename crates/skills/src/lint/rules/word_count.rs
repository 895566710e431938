//! The rule that a body has at most 500 words.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

/// The target of writing-skills for a skill that is not loaded into every conversation.
pub(in crate::lint) const TARGET_WORDS: usize = 500;

pub(in crate::lint) fn count_words(draft: &SkillFileDraft) -> usize {
    draft.body().split_whitespace().count()
}

pub static RULE: LintRule = LintRule {
    code: "word-count",
    severity: Severity::Notice,
    summary: "The body aims at no more than 500 words.",
    rationale: "Every word costs context in each conversation that takes the skill up. Authors who \
          measured it aim at 500 words, and below 200 for a skill that nearly every task loads. Say \
          what the agent would not know; give one example a pattern; leave options to --help.",
    bad_example: "A body of 1800 words that explains what a PDF is",
    good_example: "A body of 350 words with the commands that work and the mistakes that happen",
    convention: Some(Convention::Tokens),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let words = count_words(draft);
    if words > TARGET_WORDS {
        findings.add(
            draft.first_body_line(),
            format!("the body has {words} words; the target is {TARGET_WORDS}"),
        );
    }
}
