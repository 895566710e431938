//! The check `contains`: a text contains another text. Also `Needle`, the text to find, which other checks use.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, Diagnostics, Rule};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
};

pub static KIND: RuleKind = RuleKind {
    key: "contains",
    doc: "the text contains this, letter by letter unless `ignore_case` is true",
    schema,
    decode: |node, diagnostics| Some(Arc::new(ContainsRule(Needle::decode("contains", node, diagnostics)?))),
};

/// The rule of the check `contains`, with the text to find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainsRule(pub Needle);

impl Rule for ContainsRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        self.0.value()
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let wanted = excerpt(&self.0.text, 80);
        match self.0.find_in(evidence) {
            Some((place, line)) => {
                CheckFinding::new(true, format!("found \"{wanted}\"{place}")).with_evidence(line)
            }
            None => CheckFinding::new(false, format!("\"{wanted}\" does not occur")),
        }
    }
}

/// A text to find, with or without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needle {
    /// The text to look for.
    pub text: String,
    /// Whether upper and lower case count as the same.
    pub ignore_case: bool,
}

impl Needle {
    /// Makes a text to find exactly as it is written.
    pub fn exact(text: impl Into<String>) -> Self {
        Self { text: text.into(), ignore_case: false }
    }

    /// Makes a text to find in upper or lower case.
    pub fn ignoring_case(text: impl Into<String>) -> Self {
        Self { text: text.into(), ignore_case: true }
    }

    /// Reads either the text itself or `{text, ignore_case}`.
    pub fn decode(key: &'static str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return practicum_core::tree::node_text(node, key, diagnostics).map(Self::exact);
        }
        let mut object = ObjectReader::new(node, key, diagnostics)?;
        let text = object.get("text").map(|text| practicum_core::tree::node_text(text, "text", diagnostics));
        let ignore_case = object.bool("ignore_case", diagnostics).unwrap_or(false);
        object.reject_unknown_keys(key, diagnostics);
        match text {
            Some(text) => Some(Self { text: text?.to_owned(), ignore_case }),
            None => {
                object.report_missing("text", diagnostics);
                None
            }
        }
    }

    /// Gives the text as a native file has it.
    pub fn value(&self) -> Value {
        if self.ignore_case {
            json!({"text": self.text, "ignore_case": true})
        } else {
            Value::String(self.text.clone())
        }
    }

    /// Gives the byte offset of the first occurrence. If case is ignored, the offset is one into the lower-case
    /// text, which may have another length: use it only for an excerpt.
    pub fn find(&self, text: &str) -> Option<usize> {
        if self.ignore_case {
            lowercase_letters(text).find(&lowercase_letters(&self.text))
        } else {
            text.find(&self.text)
        }
    }

    /// Gives a description of the first place where one of the texts has the needle, and the line there.
    pub fn find_in(&self, evidence: &CheckEvidence<'_>) -> Option<(String, String)> {
        evidence.texts.iter().find_map(|checked| {
            let at = self.find(&checked.text)?;
            Some((checked.location_phrase(), line_around(&checked.text, at)))
        })
    }

    /// Says whether the text begins with the needle. An agent's message often begins or ends with a newline that
    /// nobody sees, so blanks count only if the needle has them.
    pub fn is_start_of(&self, text: &str) -> bool {
        let text = if self.text.starts_with(char::is_whitespace) { text } else { text.trim_start() };
        if self.ignore_case {
            lowercase_letters(text).starts_with(&lowercase_letters(&self.text))
        } else {
            text.starts_with(&self.text)
        }
    }

    /// Says whether a text ends with this one.
    pub fn is_end_of(&self, text: &str) -> bool {
        let text = if self.text.ends_with(char::is_whitespace) { text } else { text.trim_end() };
        if self.ignore_case {
            lowercase_letters(text).ends_with(&lowercase_letters(&self.text))
        } else {
            text.ends_with(&self.text)
        }
    }
}

/// Lowers each letter by itself. Lowering whole words would make a Greek sigma depend on the letter after it, and
/// then a part of a word would not be found in the word.
fn lowercase_letters(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}

pub fn schema() -> Value {
    let needle =
        MappingSchema::closed().required("text", "The text to look for.", json_schema::text()).optional(
            "ignore_case",
            "Whether capital and small letters are the same.",
            json_schema::with_default(json_schema::boolean(), false),
        );
    json_schema::any_of([json_schema::text(), needle.into()])
}

/// Gives the line around a position, shortened.
pub fn line_around(text: &str, at: usize) -> String {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    let line = &text[start..end];
    if line.chars().count() <= 160 {
        return excerpt(line, 160);
    }
    let before: Vec<char> = text[start..at].chars().rev().take(60).collect();
    let shown: String = before.into_iter().rev().chain(text[at..end].chars()).collect();
    excerpt(&shown, 160)
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
                ("World", "Hello World", "pass"),
                ("world", "Hello World", "fail"),
                ("{text: world, ignore_case: true}", "Hello World", "pass"),
                ("{text: ΟΔΟΣ, ignore_case: true}", "ΟΔΟΣΑ", "pass"),
                ("{text: οδος, ignore_case: true}", "ΟΔΟΣ", "pass"),
                ("{text: İ, ignore_case: true}", "x İ", "pass"),
                ("''", "", "pass"),
                ("x", "", "fail"),
                ("é", "e\u{301}", "fail"),
                ("\"a\\nb\"", "a\nb", "pass"),
                ("5", "5", "refused"),
                ("{text: x, case: true}", "", "refused"),
                ("{ignore_case: true}", "", "refused"),
            ],
        );
    }
}
