use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::at_least::{DEFAULT, decode_count, finding};
use super::formats::{FORMATS, Format};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule};
use practicum_core::tree::{
    Node, Object,
    shape::{self, Mapping},
    text_of,
};

pub static KIND: RuleKind = RuleKind {
    key: "has_format",
    doc: "the text has at least `count` (1) values of a known format: a date, a phone number, a colour",
    schema,
    looks_at: LooksAt::Output,
    decode: |node, diagnostics| Some(Arc::new(HasFormat::decode(node, diagnostics)?)),
};

#[derive(Clone)]
pub struct HasFormat {
    format: &'static Format,
    count: i64,
}

impl HasFormat {
    /// Either the format's name or `{format, count}`.
    fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return Some(Self { format: decode_format(node, diagnostics)?, count: DEFAULT });
        }
        let mut object = Object::new(node, KIND.key, diagnostics)?;
        let format = object.given("format").map(|node| decode_format(node, diagnostics));
        let count = object.given("count").map(|node| decode_count("count", node, diagnostics));
        object.refuse_rest(KIND.key, diagnostics);
        if format.is_none() {
            object.missing("format", diagnostics);
        }
        Some(Self { format: format??, count: count.unwrap_or(Some(DEFAULT))? })
    }
}

fn decode_format(node: &Node, diagnostics: &mut Diagnostics) -> Option<&'static Format> {
    let name = text_of(node, "format", diagnostics)?;
    let format = Format::named(name);
    if format.is_none() {
        let help = match Format::near_miss(name) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                format!("the formats are {}", names.join(", "))
            }
        };
        diagnostics.error_help("unknown-format", node.span, format!("there is no format \"{name}\""), help);
    }
    format
}

impl Rule for HasFormat {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!({"format": self.format.name, "count": self.count})
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let Format { name, example, .. } = self.format;
        finding(evidence, |text| self.format.count(text), self.count, &format!("{name} (like {example})"))
    }
}

impl std::fmt::Debug for HasFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HasFormat({}, {})", self.format.name, self.count)
    }
}

fn schema() -> Value {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let counted = Mapping::closed().must("format", "The format's name.", shape::words(&names)).may(
        "count",
        "How many there must be at least.",
        shape::default(json!({"type": "integer"}), DEFAULT),
    );
    shape::either([shape::words(&names), counted.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rows::{check, decode};
    use super::KIND;

    #[test]
    fn rows() {
        check(
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
