//! The check `ends_with`: a text ends with another text.

use std::sync::Arc;

use serde_json::Value;

use super::contains::{Needle, schema};
use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "ends_with",
    doc: "the text ends with this; blanks around the text do not matter unless this ends with one",
    schema,
    decode: |node, diagnostics| Some(Arc::new(EndsWithRule(Needle::decode(KIND.key, node, diagnostics)?))),
};

/// The rule of the check `ends_with`, with the text to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndsWithRule(pub Needle);

impl Rule for EndsWithRule {
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
        match evidence.texts.iter().find(|checked| !self.0.is_end_of(&checked.text)) {
            None => CheckFinding::new(true, format!("ends with \"{wanted}\"")),
            Some(checked) => CheckFinding::new(
                false,
                format!("does not end with \"{wanted}\"{}", checked.location_phrase()),
            )
            .with_evidence(last_characters(checked.text.trim_end(), 80)),
        }
    }
}

/// Gives the last characters of a text.
fn last_characters(text: &str, most: usize) -> String {
    let mut tail: Vec<char> = text.chars().rev().take(most).collect();
    tail.reverse();
    excerpt(&tail.into_iter().collect::<String>(), most)
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
                ("Ada", "Yours, Ada", "pass"),
                ("Ada", "Yours, ada", "fail"),
                ("{text: ADA, ignore_case: true}", "Yours, ada", "pass"),
                ("Ada", "Yours, Ada\n", "pass"),
                ("Ada", "Yours, Ada.", "fail"),
                ("\"Ada\\n\"", "Ada", "fail"),
                ("\"Ada\\n\"", "Ada\n", "pass"),
                ("''", "", "pass"),
                ("5", "", "refused"),
                ("{ignore_case: true}", "", "refused"),
            ],
        );
    }
}
