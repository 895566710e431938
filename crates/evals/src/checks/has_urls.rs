//! The check `has_urls`: a text has enough web addresses.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::counting::{check_count, decode_count};
use super::formats::URL_FORMAT;
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "has_urls",
    doc: "the text has at least so many http or https addresses (1 if no number is given); the same one twice counts twice",
    schema: || json!({"type": ["integer", "null"]}),
    decode: |node, diagnostics| Some(Arc::new(HasUrlsRule(decode_count(KIND.key, node, diagnostics)?))),
};

/// The rule of the check `has_urls`, with the required count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HasUrlsRule(i64);

impl Rule for HasUrlsRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        check_count(evidence, |text| URL_FORMAT.count(text), self.0, "a URL (like https://example.org/)")
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
                ("2", "https://a.org and http://b.org/x", "pass"),
                ("2", "https://a.org https://a.org", "pass"),
                ("2", "[x](https://a.org) ftp://b.org", "fail"),
                ("~", "see https://a.org.", "pass"),
                ("~", "HTTPS://A.ORG", "fail"),
                ("0", "", "pass"),
                ("-3", "", "pass"),
                ("two", "", "refused"),
                ("true", "", "refused"),
            ],
        );
    }
}
