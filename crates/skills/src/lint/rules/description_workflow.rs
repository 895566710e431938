use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{beginning, own, unquoted};
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-workflow",
    severity: Severity::Warning,
    summary: "A description tells the occasions, not the steps.",
    why: "An agent that finds the steps in the description may follow them and never read the body, \
          where the whole of them stands. Say what the skill does and when to use it; leave how to \
          the body.",
    bad: "description: Use when executing plans. First dispatches a subagent per task, then reviews the code.",
    good: "description: Use when executing implementation plans with independent tasks.",
    convention: Some(Convention::Description),
    check,
};

/// Steps, whatever stands before them.
static STEPS: LazyLock<Regex> = LazyLock::new(|| {
    own(r"(?isx)
        \b step \s* (?: 1 | one ) \b
        | \b in \s+ (?: two | three | four | five | six | seven | [2-9] ) \s+ (?: steps | phases | stages ) \b
        | (?: → | -> | => ) [^.]{1,80} (?: → | -> | => )
        | \b (?: dispatch (?:es)? | spawns? | launch (?:es)? | delegates? \s+ to )
          \s+ (?: [\w-]+ \s+ ){0,3} (?: sub-? )? agents? \b")
});

/// A sequence: steps, unless it is one of occasions, as in "use when (1) …, (2) …".
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    own(r"(?isx)
        \b first (?:ly)? \b [^.!?]{0,200} \b then \b
        | \b then \b .{0,200} \b finally \b
        | (?: ^ | [\s(] ) 1 [.)] \s .{1,300} [\s(] 2 [.)] \s
        | [,;] \s+ (?: and \s+ )? then \s+ [a-z]+ (?: s | ing ) \b")
});

static OCCASION: LazyLock<Regex> =
    LazyLock::new(|| own(r"(?i)\b(?:if|when|whenever|unless|for|triggers?|includ(?:es|ing)|occasions?)\b"));

/// Where a part of a sentence can begin anew.
static PART: LazyLock<Regex> = LazyLock::new(|| own(r"[.!?;—–]\s|\s-\s"));

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((description, span)) = draft.said("description") else { return };
    if !draft.chosen_by_its_description() {
        return;
    }
    let words = unquoted(beginning(description));
    let steps = STEPS.find(&words).or_else(|| {
        SEQUENCE.find_iter(&words).find(|found| {
            let before = &words[..found.start()];
            let part = PART.find_iter(before).last().map_or(before, |end| &before[end.end()..]);
            !OCCASION.is_match(part)
        })
    });
    if let Some(found) = steps {
        let phrase = description.get(found.range()).unwrap_or_default().trim();
        findings.add_help(
            draft.locate(span, phrase),
            format!("the description tells the steps: \"{}\"", super::shortened(phrase)),
            "say when to use the skill; the steps belong into the body",
        );
    }
}
