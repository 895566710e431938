//! Exact checks built by their native key, so that a dialect needs to know no rule's type.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{Diagnostics, LooksAt, Rule, Span};
use crate::score::rule_kind;
use crate::tree::{Data, Entry, Node};

pub enum Built {
    Rule(Arc<dyn Rule>, LooksAt),
    /// There is such a check, and this is not how it is said; the diagnostics tell.
    Wrong,
    NoSuchKind,
}

/// The rule that stands behind `key` in a native file, with its value as that file would have it.
/// Whatever is wrong with the value is told at `span`.
pub fn build(key: &str, value: &Value, span: Span, diagnostics: &mut Diagnostics) -> Built {
    let Some(kind) = rule_kind(key) else { return Built::NoSuchKind };
    match (kind.decode)(&node(value, span), diagnostics) {
        Some(rule) => Built::Rule(rule, kind.looks_at.clone()),
        None => Built::Wrong,
    }
}

/// A value as if it stood in a file, all of it at one place.
fn node(value: &Value, span: Span) -> Node {
    let data = match value {
        Value::Null => Data::Null,
        Value::Bool(value) => Data::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(int), _) => Data::Int(int),
            (None, Some(float)) => Data::Float(float),
            (None, None) => Data::Null,
        },
        Value::String(text) => Data::Text(text.clone()),
        Value::Array(items) => Data::List(items.iter().map(|item| node(item, span)).collect()),
        Value::Object(map) => Data::Map(
            map.iter()
                .map(|(key, value)| Entry { key: key.clone(), key_span: span, value: node(value, span) })
                .collect(),
        ),
    };
    Node { span, data }
}
