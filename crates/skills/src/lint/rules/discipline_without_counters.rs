//! The rule that a skill that imposes discipline answers the excuses for breaking it.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::compile_pattern;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "discipline-without-counters",
    severity: Severity::Notice,
    summary: "A skill that imposes discipline answers the excuses for not keeping it.",
    rationale: "A rule in capitals is obeyed until there is a good reason not to, and under pressure an agent \
          finds one. Skills that hold name those reasons and answer them: a table of excuses, a list \
          of red flags, \"no exceptions\" with the exceptions people try.",
    bad_example: "NEVER commit without a test. You MUST run it. ALWAYS …",
    good_example: "NEVER commit without a test.\n\n| Excuse | Answer |\n|---|---|\n| \"It is only one line\" | One line broke the last release. |",
    convention: Some(Convention::TypeAlignment),
    check,
};

static RULES_IN_CAPITALS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"\b(?:MUST|NEVER|ALWAYS|FORBIDDEN|MANDATORY|DO NOT|DON'T|NO EXCEPTIONS)\b")
});

static EXCUSE_ANSWERS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix) \b (?: rationali[sz] \w* | excuses? | loopholes? | red \s flags? | no \s exceptions?
        | counter-? \s? arguments? | tempt(?: ed | ing | ation s? )
        | (?: you | it ) \s (?: might | may | will ) \s (?: think | seem | feel | say ) ) \b",
    )
});

/// The fewest rules in capitals that make a text impose discipline. A text with fewer only stresses a word here
/// and there.
const MIN_CAPITALISED_RULES: usize = 5;

/// Says whether the body imposes rules rather than showing how something is done.
pub(in crate::lint) fn imposes_discipline(draft: &SkillFileDraft) -> bool {
    let prose = draft.markdown.prose.iter().filter_map(|span| draft.text.get(span.start..span.end));
    prose.map(|text| RULES_IN_CAPITALS.find_iter(text).count()).sum::<usize>() >= MIN_CAPITALISED_RULES
}

pub(in crate::lint) fn answers_excuses(draft: &SkillFileDraft) -> bool {
    EXCUSE_ANSWERS.is_match(draft.body())
}

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    if imposes_discipline(draft) && !answers_excuses(draft) {
        findings.add_with_help(
            draft.first_body_line(),
            "many rules in capitals, and no answer to the excuses for breaking them",
            "add the excuses an agent makes under pressure, each with its answer",
        );
    }
}
