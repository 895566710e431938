//! The rule that a description is in the third person.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{blank_quotations, compile_pattern, truncate_description};
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-person",
    severity: Severity::Warning,
    summary: "A description speaks of the skill in the third person.",
    rationale: "The text lands in the agent's system prompt, among those of other skills. There \"I\" is \
          nobody and \"you\" is the agent, which makes a description harder to match with a task. \
          What users would say can be quoted.",
    bad_example: "description: I can help you write release notes.",
    good_example: "description: Writes release notes. Use when the user says \"write me a changelog\".",
    convention: Some(Convention::Description),
    check,
};

/// "I" at the beginning of a sentence or a clause, or before a word that shows it is a pronoun; elsewhere it may
/// be a numeral.
static FIRST_PERSON: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?x)
        (?: ^ | [.!?;:,] \s+ | \b (?: when | if | that | and | so | what | because ) \s+ )
            (?P<clause> I (?: ['’] [a-z]+ )? \s+ [a-z]+ )
        | \b (?P<verb> I (?: ['’] (?: m | ll | ve | d ) | \s+ (?: can | will | am | help | have | need | want ) ) ) \b
        | (?P<we> (?i: \b (?: let | helps? ) \s+ me \b | \b we \s+ (?: can | will | help | use | are ) \b ) )
        | (?P<you> (?i: \b you \s+ can \b | \b (?: helps? | lets? | allows? | enables? ) \s+ you \b ) )",
    )
});

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((description, span)) = draft.nonblank_text("description") else { return };
    let words = blank_quotations(truncate_description(description));
    let phrase = FIRST_PERSON
        .captures(&words)
        .and_then(|found| ["clause", "verb", "we", "you"].into_iter().find_map(|name| found.name(name)));
    if let Some(found) = phrase {
        findings.add_with_help(
            draft.find_phrase(span, found.as_str()),
            format!("the description is not in the third person: \"{}\"", found.as_str()),
            "begin with a verb: \"Writes …\", \"Use when …\"",
        );
    }
}
