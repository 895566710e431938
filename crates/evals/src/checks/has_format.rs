//! The check `has_format`: a text has enough values of a named format.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::counting::{DEFAULT_COUNT, check_count, decode_count};
use super::formats::{FORMATS, NamedFormat};
use practicum_core::model::{CheckEvidence, CheckFinding, Diagnostics, Rule};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text,
};

pub static KIND: RuleKind = RuleKind {
    key: "has_format",
    doc: "the text has at least `count` (1) values of a known format: a date, a phone number, a colour",
    schema,
    decode: |node, diagnostics| Some(Arc::new(HasFormatRule::decode(node, diagnostics)?)),
};

/// The rule of the check `has_format`: a format, and the required count.
#[derive(Clone)]
pub struct HasFormatRule {
    format: &'static NamedFormat,
    count: i64,
}

impl HasFormatRule {
    /// Reads either the format's name or `{format, count}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return Some(Self { format: decode_format(node, diagnostics)?, count: DEFAULT_COUNT });
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let format = object.get_non_null("format").map(|node| decode_format(node, diagnostics));
        let count = object.get_non_null("count").map(|node| decode_count("count", node, diagnostics));
        object.reject_unknown_keys(KIND.key, diagnostics);
        if format.is_none() {
            object.report_missing("format", diagnostics);
        }
        Some(Self { format: format??, count: count.unwrap_or(Some(DEFAULT_COUNT))? })
    }
}

fn decode_format(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<&'static NamedFormat> {
    let name = node_text(node, "format", diagnostics)?;
    let format = NamedFormat::find_format(name);
    if format.is_none() {
        let help = match NamedFormat::near_miss(name) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                format!("the formats are {}", names.join(", "))
            }
        };
        diagnostics.error_with_help(
            "unknown-format",
            node.span,
            format!("there is no format \"{name}\""),
            help,
        );
    }
    format
}

impl Rule for HasFormatRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!({"format": self.format.name, "count": self.count})
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let NamedFormat { name, example, .. } = self.format;
        check_count(evidence, |text| self.format.count(text), self.count, &format!("{name} (like {example})"))
    }
}

impl std::fmt::Debug for HasFormatRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HasFormat({}, {})", self.format.name, self.count)
    }
}

fn schema() -> Value {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let counted = MappingSchema::closed()
        .required("format", "The format's name.", json_schema::one_of_words(&names))
        .optional(
            "count",
            "How many there must be at least.",
            json_schema::with_default(json!({"type": "integer"}), DEFAULT_COUNT),
        );
    json_schema::any_of([json_schema::one_of_words(&names), counted.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_rows, decode};
    use super::KIND;

    #[test]
    fn rows() {
        check_rows(
            &KIND,
            &[
                ("email", "write to a@b.org", "pass"),
                ("{format: email}", "nobody", "fail"),
                ("{format: phone_us, count: 2}", "415-555-0132 or (415) 555-0133", "pass"),
                ("{format: phone_us, count: 3}", "415-555-0132 or (415) 555-0133", "fail"),
                ("{format: currency_usd}", "costs $1,000.00", "pass"),
                ("{format: email, count: 0}", "", "pass"),
                ("{format: nope}", "", "refused"),
                ("{count: 1}", "", "refused"),
                ("{format: email, count: x}", "", "refused"),
                ("{format: email, min: 1}", "", "refused"),
                ("5", "", "refused"),
            ],
        );
    }

    #[test]
    fn an_unknown_format_is_named() {
        let problems = decode(&KIND, "{format: emial}").expect_err("there is no such format");
        assert_eq!(problems, ["there is no format \"emial\""]);
    }
}
