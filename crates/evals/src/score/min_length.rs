use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use practicum_core::model::{Evidence, Finding, LooksAt, Rule};
use practicum_core::tree::int_of;

pub static KIND: RuleKind = RuleKind {
    key: "min_length",
    doc: "the text has at least so many characters (code points)",
    schema: || json!({"type": "integer"}),
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| {
        let length = int_of(node, KIND.key, i64::MIN, i64::MAX, diagnostics)?;
        if length < 1 {
            diagnostics.warning(
                "cannot-fail",
                node.span,
                "every text is long enough: this check cannot fail",
            );
        }
        Some(Arc::new(MinLength(length)))
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinLength(i64);

impl Rule for MinLength {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let length = evidence.length();
        let message = format!("{length} characters, at least {} wanted", self.0);
        Finding::new(length as i128 >= i128::from(self.0), message)
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
