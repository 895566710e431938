//! The rule that a description says specifically what the skill does.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::{compile_pattern, is_english};
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "description-vague",
    severity: Severity::Warning,
    summary: "A description says what the skill does, in words that a task would have in common with it.",
    rationale: "An agent compares the task with the description. \"Helps with PDFs\" fits everything a \
          little and nothing well; the deeds, file types and words that users say are what decides.",
    bad_example: "description: Helps with PDFs.",
    good_example: "description: Extracts text and tables from PDF files and fills PDF forms. Use when the user mentions PDFs, forms or scanned documents.",
    convention: Some(Convention::Description),
    check,
};

static FILLER: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^(?:an? |the |this )?(?:\w+ )?(?:skill|helper|tool|utility|guide)?\s*(?:that |which |to )?(?:helps?|assists?|handles?|deals?|works?|for|about|useful)\b",
    )
});

const MIN_WORDS: usize = 4;

/// The fewest words that a sentence which begins with a filler needs to be specific.
const MIN_WORDS_WITH_FILLER: usize = 8;

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    let Some((description, span)) = draft.nonblank_text("description") else { return };
    if !draft.is_model_invocable() || !description.is_ascii() && !is_english(description) {
        return;
    }
    let words = description.split_whitespace().count();
    if words < MIN_WORDS || words < MIN_WORDS_WITH_FILLER && FILLER.is_match(description.trim_start()) {
        findings.add_with_help(
            span,
            "the description is too vague to decide by",
            "name the deeds, the file types and the words that users say",
        );
    }
}
