//! The rule that name and description contain no XML tags.

use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::compile_pattern;
use crate::lint::{Convention, LintFindings, LintRule, SkillFileDraft};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "xml-tag",
    severity: Severity::Error,
    summary: "Name and description contain no XML tags.",
    rationale: "Agents put both into their system prompt, between tags of their own. A tag in the text can \
          end that part early or pose as another, so agents refuse it or are misled by it.",
    bad_example: "description: Renders <template> files. Use when asked for a page.",
    good_example: "description: Renders template files. Use when asked for a page.",
    convention: Some(Convention::Description),
    check,
};

static TAG: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"</?[A-Za-z][A-Za-z0-9_.-]*(?:\s[^<>]*)?/?>"));

fn check(draft: &SkillFileDraft, findings: &mut LintFindings<'_>) {
    for key in ["name", "description"] {
        let Some((text, span)) = draft.nonblank_text(key) else { continue };
        if let Some(tag) = TAG.find(text) {
            findings.add_with_help(
                draft.find_phrase(span, tag.as_str()),
                format!("the {key} contains an XML tag, {}", super::shorten_quote(tag.as_str())),
                "say it in words",
            );
        }
    }
}
