//! Exact checks built by their native key, so that a dialect needs to know no rule's type.

use std::sync::Arc;

use serde_json::Value;

use crate::score::rule_kind;
use practicum_core::model::{Diagnostics, LooksAt, Rule, Span};
use practicum_core::tree::Node;

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
    match (kind.decode)(&Node::from_value(value, span), diagnostics) {
        Some(rule) => Built::Rule(rule, kind.looks_at.clone()),
        None => Built::Wrong,
    }
}
