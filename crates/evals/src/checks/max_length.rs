//! The check `max_length`: a text has at most so many characters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};
use practicum_core::tree::node_int;

pub static KIND: RuleKind = RuleKind {
    key: "max_length",
    doc: "the text has at most so many characters (code points)",
    schema: || json!({"type": "integer"}),
    decode: |node, diagnostics| {
        let length = node_int(node, KIND.key, i64::MIN, i64::MAX, diagnostics)?;
        if length < 0 {
            diagnostics.warning("cannot-pass", node.span, "no text is so short: this check cannot pass");
        }
        Some(Arc::new(MaxLengthRule(length)))
    },
};

/// The rule of the check `max_length`, with the number of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaxLengthRule(i64);

impl Rule for MaxLengthRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn is_about_every_text(&self) -> bool {
        true
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let length = evidence.total_length();
        let message = format!("{length} characters, at most {} wanted", self.0);
        CheckFinding::new(length as i128 <= i128::from(self.0), message)
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
                ("5", "hello", "pass"),
                ("4", "hello", "fail"),
                ("1", "é", "pass"),
                ("0", "", "pass"),
                ("0", "\n", "fail"),
                ("-1", "", "fail"),
                ("'5'", "", "refused"),
                ("true", "", "refused"),
                ("1.5", "", "refused"),
                ("~", "", "refused"),
            ],
        );
    }
}
