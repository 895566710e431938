//! The check `min_length`: a text has at least so many characters.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};
use practicum_core::tree::node_int;

pub static KIND: RuleKind = RuleKind {
    key: "min_length",
    doc: "the text has at least so many characters (code points)",
    schema: || json!({"type": "integer"}),
    decode: |node, diagnostics| {
        let length = node_int(node, KIND.key, i64::MIN, i64::MAX, diagnostics)?;
        if length < 1 {
            diagnostics.warning(
                "cannot-fail",
                node.span,
                "every text is long enough: this check cannot fail",
            );
        }
        Some(Arc::new(MinLengthRule(length)))
    },
};

/// The rule of the check `min_length`, with the number of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinLengthRule(i64);

impl Rule for MinLengthRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let length = evidence.total_length();
        let message = format!("{length} characters, at least {} wanted", self.0);
        CheckFinding::new(length as i128 >= i128::from(self.0), message)
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
                ("6", "hello", "fail"),
                ("1", "é", "pass"),
                ("2", "é", "fail"),
                ("7", "👨\u{200d}👩\u{200d}👧\u{200d}👦", "pass"),
                ("0", "", "pass"),
                ("-1", "", "pass"),
                ("'5'", "", "refused"),
                ("true", "", "refused"),
                ("1.5", "", "refused"),
                ("~", "", "refused"),
            ],
        );
    }
}
