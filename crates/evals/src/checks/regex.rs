//! The check `regex`: a pattern matches somewhere in a text.

use std::sync::Arc;

use serde_json::Value;

use super::{PatternFlags, PythonPattern, RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Diagnostics, NotScoredReason, Rule};
use practicum_core::tree::{TreeNode, json_schema, node_text};

pub static KIND: RuleKind = RuleKind {
    key: "regex",
    doc: "the text matches this pattern somewhere (Python's `re` syntax)",
    schema: json_schema::text,
    decode: |node, diagnostics| {
        Some(Arc::new(RegexRule { pattern: decode_pattern("regex", node, diagnostics)? }))
    },
};

/// The rule of the check `regex`, with the pattern.
#[derive(Debug, Clone)]
pub struct RegexRule {
    /// The pattern to look for.
    pub pattern: PythonPattern,
}

impl Rule for RegexRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        Value::String(self.pattern.source().to_owned())
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let shown = excerpt(self.pattern.source(), 80);
        let mut unanswered = None;
        for checked in evidence.texts {
            match self.pattern.find(&checked.text) {
                Ok(Some(range)) => {
                    return CheckFinding::new(
                        true,
                        format!("/{shown}/ matches{}", checked.location_phrase()),
                    )
                    .with_evidence(excerpt(&checked.text[range], 160));
                }
                Ok(None) => {}
                Err(too_hard) => {
                    unanswered = Some(format!("/{shown}/ {too_hard}{}", checked.location_phrase()))
                }
            }
        }
        match unanswered {
            None => CheckFinding::new(false, format!("/{shown}/ matches nowhere")),
            Some(why) => CheckFinding::not_scored(NotScoredReason::CheckFailed(why)),
        }
    }
}

/// Reads a pattern and compiles it. An error in it is reported at its position.
pub fn decode_pattern(key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<PythonPattern> {
    decode_pattern_with(key, PatternFlags::default(), node, diagnostics)
}

/// Reads a pattern and compiles it with these flags. An error in it is reported at its position.
pub fn decode_pattern_with(
    key: &str,
    flags: PatternFlags,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) -> Option<PythonPattern> {
    let text = node_text(node, key, diagnostics)?;
    match PythonPattern::with_flags(text, flags) {
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
    use super::super::rule_tests::check_rows;
    use super::KIND;

    #[test]
    fn rows() {
        check_rows(
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
