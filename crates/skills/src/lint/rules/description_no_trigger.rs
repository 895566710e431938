//! The rule that a description says when to use the skill.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{compile_pattern, is_english};
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-no-trigger",
    severity: Severity::Warning,
    summary: "A description says when to use the skill, not only what it does.",
    rationale: "The description answers one question of the agent: should I read this skill now? Only the \
          occasions answer it. Descriptions in other languages than English are not judged, nor \
          those of skills that only users can start.",
    bad_example: "description: Writes release notes from a list of commits.",
    good_example: "description: Writes release notes from a list of commits. Use when asked for a changelog or a \"what's new\" text.",
    convention: Some(Convention::Description),
    check,
};

static OCCASION_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)
        \b(?: when | whenever | while | if | before | after | during | upon | once
            | trigger(?:s|ed|ing)? | invoke[ds]? | activate[ds]? | asks? | asked | asking | mentions?
            | requests? | occasions? | situations? | scenarios? )\b
        | \b use[ds]? \s+ (?: this | it | for | to | in | on | as | with | proactively )\b
        | \b (?: useful | helpful | intended | designed | meant ) \s+ (?: for | in )\b",
    )
});

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((description, span)) = draft.nonblank_text("description") else { return };
    let elsewhere = draft.nonblank_text("when_to_use").is_some() || !draft.is_model_invocable();
    if !elsewhere && is_english(description) && !OCCASION_WORDS.is_match(description) {
        findings.add_with_help(
            span,
            "the description does not say when to use the skill",
            "add a sentence: \"Use when …\"",
        );
    }
}
