use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::at_least::{decode_count, finding};
use super::{Pattern, RuleKind};
use practicum_core::model::{Evidence, Finding, LooksAt, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "has_entries",
    doc: "the text has at least so many numbered entries in bold, as in `**1. Name**` (1 if no number is given)",
    schema: || json!({"type": ["integer", "null"]}),
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| Some(Arc::new(HasEntries(decode_count(KIND.key, node, diagnostics)?))),
};

/// How an entry begins.
static ENTRY: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(r"\*\*\d+\.\s+").expect("a constant, and the test below compiles it"));

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HasEntries(i64);

impl Rule for HasEntries {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        finding(evidence, |text| ENTRY.count(text), self.0, "a numbered entry in bold (like **1. Name**)")
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
