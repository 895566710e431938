use std::sync::LazyLock;

use regex::Regex;

use crate::lint::prose::own;
use crate::lint::{Convention, Draft, Findings, LintRule};
use practicum_core::model::Severity;

pub static RULE: LintRule = LintRule {
    code: "xml-tag",
    severity: Severity::Error,
    summary: "Name and description contain no XML tags.",
    why: "Agents put both into their system prompt, between tags of their own. A tag in the text can \
          end that part early or pose as another, so agents refuse it or are misled by it.",
    bad: "description: Renders <template> files. Use when asked for a page.",
    good: "description: Renders template files. Use when asked for a page.",
    convention: Some(Convention::Description),
    check,
};

static TAG: LazyLock<Regex> = LazyLock::new(|| own(r"</?[A-Za-z][A-Za-z0-9_.-]*(?:\s[^<>]*)?/?>"));

fn check(draft: &Draft, findings: &mut Findings<'_>) {
    for key in ["name", "description"] {
        let Some((text, span)) = draft.said(key) else { continue };
        if let Some(tag) = TAG.find(text) {
            findings.add_help(
                draft.locate(span, tag.as_str()),
                format!("the {key} contains an XML tag, {}", super::shortened(tag.as_str())),
                "say it in words",
            );
        }
    }
}
