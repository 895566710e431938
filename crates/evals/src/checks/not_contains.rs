//! The check `not_contains`: a text does not contain another text.

use std::sync::Arc;

use serde_json::Value;

use super::contains::{Needle, schema};
use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "not_contains",
    doc: "the text does not contain this",
    schema,
    decode: |node, diagnostics| {
        Some(Arc::new(NotContainsRule(Needle::decode("not_contains", node, diagnostics)?)))
    },
};

/// The rule of the check `not_contains`, with the forbidden text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotContainsRule(pub Needle);

impl Rule for NotContainsRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        self.0.value()
    }

    fn is_about_every_text(&self) -> bool {
        true
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let unwanted = excerpt(&self.0.text, 80);
        match self.0.find_in(evidence) {
            Some((place, line)) => {
                CheckFinding::new(false, format!("found \"{unwanted}\"{place}, which must not occur"))
                    .with_evidence(line)
            }
            None => CheckFinding::new(true, format!("\"{unwanted}\" does not occur")),
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
                ("World", "Hello World", "fail"),
                ("world", "Hello World", "pass"),
                ("{text: world, ignore_case: true}", "Hello World", "fail"),
                ("''", "", "fail"),
                ("[]", "", "refused"),
            ],
        );
    }
}
