use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use practicum_core::model::{Evidence, Finding, LooksAt, Rule};
use practicum_core::tree::int_of;

pub static KIND: RuleKind = RuleKind {
    key: "max_length",
    doc: "the text has at most so many characters (code points)",
    schema: || json!({"type": "integer"}),
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| {
        let length = int_of(node, KIND.key, i64::MIN, i64::MAX, diagnostics)?;
        if length < 0 {
            diagnostics.warning("cannot-pass", node.span, "no text is so short: this check cannot pass");
        }
        Some(Arc::new(MaxLength(length)))
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaxLength(i64);

impl Rule for MaxLength {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn is_about_every_text(&self) -> bool {
        true
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let length = evidence.length();
        let message = format!("{length} characters, at most {} wanted", self.0);
        Finding::new(length as i128 <= i128::from(self.0), message)
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
