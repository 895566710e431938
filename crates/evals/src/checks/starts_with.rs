//! The check `starts_with`: a text starts with another text.

use std::sync::Arc;

use serde_json::Value;

use super::contains::{Needle, schema};
use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "starts_with",
    doc: "the text starts with this; blanks around the text do not matter unless this starts with one",
    schema,
    decode: |node, diagnostics| Some(Arc::new(StartsWithRule(Needle::decode(KIND.key, node, diagnostics)?))),
};

/// The rule of the check `starts_with`, with the text to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartsWithRule(pub Needle);

impl Rule for StartsWithRule {
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
        let wanted = excerpt(&self.0.text, 80);
        match evidence.texts.iter().find(|checked| !self.0.is_start_of(&checked.text)) {
            None => CheckFinding::new(true, format!("starts with \"{wanted}\"")),
            Some(checked) => CheckFinding::new(
                false,
                format!("does not start with \"{wanted}\"{}", checked.location_phrase()),
            )
            .with_evidence(excerpt(checked.text.trim_start(), 80)),
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
                ("Dear", "Dear Ada,", "pass"),
                ("Dear", "dear Ada,", "fail"),
                ("{text: DEAR, ignore_case: true}", "dear Ada,", "pass"),
                ("Dear", "\n  Dear Ada,", "pass"),
                ("' Dear'", "Dear", "fail"),
                ("' Dear'", " Dear", "pass"),
                ("' Dear'", "\n Dear", "fail"),
                ("''", "", "pass"),
                ("Dear", "", "fail"),
                ("{text: STRASSE, ignore_case: true}", "straße", "fail"),
                ("5", "", "refused"),
                ("{ignore_case: true}", "", "refused"),
            ],
        );
    }
}
