use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{english, own};
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-no-trigger",
    severity: Severity::Warning,
    summary: "A description says when to use the skill, not only what it does.",
    why: "The description answers one question of the agent: should I read this skill now? Only the \
          occasions answer it. Descriptions in other languages than English are not judged, nor \
          those of skills that only users can start.",
    bad: "description: Writes release notes from a list of commits.",
    good: "description: Writes release notes from a list of commits. Use when asked for a changelog or a \"what's new\" text.",
    convention: Some(Convention::Description),
    check,
};

static OCCASION: LazyLock<Regex> = LazyLock::new(|| {
    own(r"(?ix)
        \b(?: when | whenever | while | if | before | after | during | upon | once
            | trigger(?:s|ed|ing)? | invoke[ds]? | activate[ds]? | asks? | asked | asking | mentions?
            | requests? | occasions? | situations? | scenarios? )\b
        | \b use[ds]? \s+ (?: this | it | for | to | in | on | as | with | proactively )\b
        | \b (?: useful | helpful | intended | designed | meant ) \s+ (?: for | in )\b")
});

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((description, span)) = draft.said("description") else { return };
    let elsewhere = draft.said("when_to_use").is_some() || !draft.chosen_by_its_description();
    if !elsewhere && english(description) && !OCCASION.is_match(description) {
        findings.add_help(
            span,
            "the description does not say when to use the skill",
            "add a sentence: \"Use when …\"",
        );
    }
}
