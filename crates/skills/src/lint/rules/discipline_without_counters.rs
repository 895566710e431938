use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::own;
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "discipline-without-counters",
    severity: Severity::Notice,
    summary: "A skill that imposes discipline answers the excuses for not keeping it.",
    why: "A rule in capitals is obeyed until there is a good reason not to, and under pressure an agent \
          finds one. Skills that hold name those reasons and answer them: a table of excuses, a list \
          of red flags, \"no exceptions\" with the exceptions people try.",
    bad: "NEVER commit without a test. You MUST run it. ALWAYS …",
    good: "NEVER commit without a test.\n\n| Excuse | Answer |\n|---|---|\n| \"It is only one line\" | One line broke the last release. |",
    convention: Some(Convention::TypeAlignment),
    check,
};

static RULES_IN_CAPITALS: LazyLock<Regex> =
    LazyLock::new(|| own(r"\b(?:MUST|NEVER|ALWAYS|FORBIDDEN|MANDATORY|DO NOT|DON'T|NO EXCEPTIONS)\b"));

static COUNTERS: LazyLock<Regex> = LazyLock::new(|| {
    own(r"(?ix) \b (?: rationali[sz] \w* | excuses? | loopholes? | red \s flags? | no \s exceptions?
        | counter-? \s? arguments? | tempt(?: ed | ing | ation s? )
        | (?: you | it ) \s (?: might | may | will ) \s (?: think | seem | feel | say ) ) \b")
});

/// A text with fewer rules in capitals than this only stresses a word here and there.
const MANY: usize = 5;

/// Whether the body imposes rules rather than showing how something is done.
pub(in crate::lint) fn imposes_discipline(draft: &Draft) -> bool {
    let prose = draft.page.prose.iter().filter_map(|span| draft.text.get(span.start..span.end));
    prose.map(|text| RULES_IN_CAPITALS.find_iter(text).count()).sum::<usize>() >= MANY
}

pub(in crate::lint) fn answers_excuses(draft: &Draft) -> bool {
    COUNTERS.is_match(draft.body())
}

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    if imposes_discipline(draft) && !answers_excuses(draft) {
        findings.add_help(
            draft.body_begins(),
            "many rules in capitals, and no answer to the excuses for breaking them",
            "add the excuses an agent makes under pressure, each with its answer",
        );
    }
}
