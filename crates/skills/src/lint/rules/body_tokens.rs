//! The rule that a skill's body has at most about 5000 tokens.

use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

const MAX_TOKENS: usize = 5000;

/// A rough measure for English and code, the same for every model.
const CHARACTERS_PER_TOKEN: usize = 4;

pub static RULE: LintRule = LintRule {
    code: "body-tokens",
    severity: Severity::Warning,
    summary: "The body costs at most about 5000 tokens.",
    rationale: "The whole body is loaded whenever the skill is activated, and stays in the context. The \
          specification recommends a budget of 5000 tokens; four characters are counted as one.",
    bad_example: "SKILL.md with 40,000 characters",
    good_example: "SKILL.md with 8,000 characters, and references/api.md with the rest",
    convention: Some(Convention::Tokens),
    check,
};

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let body = draft.body();
    let tokens = body.chars().count().div_ceil(CHARACTERS_PER_TOKEN);
    if tokens > MAX_TOKENS {
        let at = body.char_indices().nth(MAX_TOKENS * CHARACTERS_PER_TOKEN).map_or(0, |(at, _)| at);
        findings.add_with_help(
            draft.body_span_at(at),
            format!("the body costs about {tokens} tokens; here the budget of {MAX_TOKENS} is spent"),
            "move details into files below references/ and link to them",
        );
    }
}
