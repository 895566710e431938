use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{english, own};
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-vague",
    severity: Severity::Warning,
    summary: "A description says what the skill does, in words that a task would have in common with it.",
    why: "An agent compares the task with the description. \"Helps with PDFs\" fits everything a \
          little and nothing well; the deeds, file types and words that users say are what decides.",
    bad: "description: Helps with PDFs.",
    good: "description: Extracts text and tables from PDF files and fills PDF forms. Use when the user mentions PDFs, forms or scanned documents.",
    convention: Some(Convention::Description),
    check,
};

static FILLER: LazyLock<Regex> = LazyLock::new(|| {
    own(
        r"(?i)^(?:an? |the |this )?(?:\w+ )?(?:skill|helper|tool|utility|guide)?\s*(?:that |which |to )?(?:helps?|assists?|handles?|deals?|works?|for|about|useful)\b",
    )
});

const FEWEST_WORDS: usize = 4;

/// A sentence that begins with a filler needs at least this many words to say something.
const FEWEST_AFTER_FILLER: usize = 8;

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    let Some((description, span)) = draft.said("description") else { return };
    if !draft.chosen_by_its_description() || !description.is_ascii() && !english(description) {
        return;
    }
    let words = description.split_whitespace().count();
    if words < FEWEST_WORDS || words < FEWEST_AFTER_FILLER && FILLER.is_match(description.trim_start()) {
        findings.add_help(
            span,
            "the description is too vague to decide by",
            "name the deeds, the file types and the words that users say",
        );
    }
}
