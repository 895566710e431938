use std::sync::Arc;

use serde_json::Value;

use super::{Flags, Pattern, RuleKind, excerpt};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule, Why};
use practicum_core::tree::{Node, shape, text_of};

pub static KIND: RuleKind = RuleKind {
    key: "regex",
    doc: "the text matches this pattern somewhere (Python's `re` syntax)",
    schema: shape::text,
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| {
        Some(Arc::new(RegexRule { pattern: decode_pattern("regex", node, diagnostics)? }))
    },
};

#[derive(Debug, Clone)]
pub struct RegexRule {
    pub pattern: Pattern,
}

impl Rule for RegexRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        Value::String(self.pattern.source().to_owned())
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let shown = excerpt(self.pattern.source(), 80);
        let mut unanswered = None;
        for checked in evidence.texts {
            match self.pattern.find(&checked.text) {
                Ok(Some(range)) => {
                    return Finding::new(true, format!("/{shown}/ matches{}", checked.place()))
                        .with_evidence(excerpt(&checked.text[range], 160));
                }
                Ok(None) => {}
                Err(too_hard) => unanswered = Some(format!("/{shown}/ {too_hard}{}", checked.place())),
            }
        }
        match unanswered {
            None => Finding::new(false, format!("/{shown}/ matches nowhere")),
            Some(why) => Finding::not_scored(Why::CheckFailed(why)),
        }
    }
}

/// A pattern that must compile, with its error at its place.
pub fn decode_pattern(key: &str, node: &Node, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    decode_pattern_with(key, Flags::default(), node, diagnostics)
}

pub fn decode_pattern_with(
    key: &str,
    flags: Flags,
    node: &Node,
    diagnostics: &mut Diagnostics,
) -> Option<Pattern> {
    let text = text_of(node, key, diagnostics)?;
    match Pattern::with(text, flags) {
        Ok(pattern) => Some(pattern),
        Err(problem) => {
            diagnostics.error(
                "invalid-pattern",
                node.span,
                format!("the pattern does not compile: {problem}"),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::check;
    use super::KIND;

    #[test]
    fn rows() {
        check(
            &KIND,
            &[
                ("'^b'", "a\nb", "fail"),
                ("'(?m)^b'", "a\nb", "pass"),
                ("'b$'", "ab\n", "pass"),
                ("''", "", "pass"),
                ("'hello'", "Hello", "fail"),
                ("'['", "", "refused"),
                ("5", "5", "refused"),
                ("'(?=(a+)+$)a'", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", "not_scored"),
            ],
        );
    }
}
