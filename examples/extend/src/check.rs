//! A check: the output has a certain number of lines.

use std::sync::Arc;

use practicum::checks::RuleKind;
use practicum::model::{CheckEvidence, CheckFinding, Rule};
use practicum::tree::node_int;
use serde_json::{Value, json};

/// The kind of check. Native eval files use it as `line_count: 2`.
pub static LINE_COUNT: RuleKind = RuleKind {
    key: "line_count",
    doc: "the text has this number of lines",
    schema: || json!({"type": "integer", "minimum": 1}),
    decode: |node, diagnostics| {
        let lines = node_int(node, LINE_COUNT.key, 1, 1_000, diagnostics)?;
        Some(Arc::new(LineCount(lines)))
    },
};

/// The rule, with the number of lines.
#[derive(Debug)]
pub struct LineCount(pub i64);

impl Rule for LineCount {
    fn key(&self) -> &'static str {
        LINE_COUNT.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let lines: usize = evidence.texts.iter().map(|checked| checked.text.lines().count()).sum();
        CheckFinding::new(lines as i64 == self.0, format!("{lines} lines, {} wanted", self.0))
    }
}
