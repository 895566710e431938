//! The rule that a description names the occasions and not the steps.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{blank_quotations, compile_pattern, truncate_description};
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-workflow",
    severity: Severity::Warning,
    summary: "A description says when to use the skill, not how it works.",
    rationale: "An agent that finds the steps in the description may follow them and never read the body, \
          which has all of them. Say what the skill does and when to use it; leave how to \
          the body.",
    bad_example: "description: Use when executing plans. First dispatches a subagent per task, then reviews the code.",
    good_example: "description: Use when executing implementation plans with independent tasks.",
    convention: Some(Convention::Description),
    check,
};

/// Words that introduce steps, whatever comes before them.
static STEPS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?isx)
        \b step \s* (?: 1 | one ) \b
        | \b in \s+ (?: two | three | four | five | six | seven | [2-9] ) \s+ (?: steps | phases | stages ) \b
        | (?: → | -> | => ) [^.]{1,80} (?: → | -> | => )
        | \b (?: dispatch (?:es)? | spawns? | launch (?:es)? | delegates? \s+ to )
          \s+ (?: [\w-]+ \s+ ){0,3} (?: sub-? )? agents? \b",
    )
});

/// Words that make a sequence. It is one of steps, unless it lists occasions, as in "use when (1) …, (2) …".
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?isx)
        \b first (?:ly)? \b [^.!?]{0,200} \b then \b
        | \b then \b .{0,200} \b finally \b
        | (?: ^ | [\s(] ) 1 [.)] \s .{1,300} [\s(] 2 [.)] \s
        | [,;] \s+ (?: and \s+ )? then \s+ [a-z]+ (?: s | ing ) \b",
    )
});

static OCCASION_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)\b(?:if|when|whenever|unless|for|triggers?|includ(?:es|ing)|occasions?)\b")
});

/// Places where a part of a sentence can begin anew.
static CLAUSE_START: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"[.!?;—–]\s|\s-\s"));

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((description, span)) = draft.nonblank_text("description") else { return };
    if !draft.is_model_invocable() {
        return;
    }
    let words = blank_quotations(truncate_description(description));
    let steps = STEPS.find(&words).or_else(|| {
        SEQUENCE.find_iter(&words).find(|found| {
            let before = &words[..found.start()];
            let part = CLAUSE_START.find_iter(before).last().map_or(before, |end| &before[end.end()..]);
            !OCCASION_WORDS.is_match(part)
        })
    });
    if let Some(found) = steps {
        let phrase = description.get(found.range()).unwrap_or_default().trim();
        findings.add_with_help(
            draft.find_phrase(span, phrase),
            format!("the description lists steps: \"{}\"", super::shorten_quote(phrase)),
            "say when to use the skill; the steps belong into the body",
        );
    }
}
