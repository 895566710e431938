//! The check `has_entries`: a text has enough numbered entries in bold.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::counting::{check_count, decode_count};
use super::{PythonPattern, RuleKind};
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "has_entries",
    doc: "the text has at least so many numbered entries in bold, as in `**1. Name**` (1 if no number is given)",
    schema: || json!({"type": ["integer", "null"]}),
    decode: |node, diagnostics| Some(Arc::new(HasEntriesRule(decode_count(KIND.key, node, diagnostics)?))),
};

/// The pattern of the beginning of an entry.
static ENTRY_START: LazyLock<PythonPattern> = LazyLock::new(|| {
    PythonPattern::new(r"\*\*\d+\.\s+").expect("a constant, and the test below compiles it")
});

/// The rule of the check `has_entries`, with the required count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HasEntriesRule(i64);

impl Rule for HasEntriesRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        check_count(
            evidence,
            |text| ENTRY_START.count(text),
            self.0,
            "a numbered entry in bold (like **1. Name**)",
        )
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
                ("2", "**1. One**\n**2. Two**", "pass"),
                ("2", "**1. One**\n2. Two", "fail"),
                ("~", "**12.\tName", "pass"),
                ("~", "**1.Name**", "fail"),
                ("~", "1. Name", "fail"),
                ("0", "", "pass"),
                ("two", "", "refused"),
                ("true", "", "refused"),
            ],
        );
    }
}
