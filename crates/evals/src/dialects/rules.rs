//! Exact checks built by their native key, so that a dialect needs to know no rule's type.

use std::sync::Arc;

use serde_json::Value;

use crate::checks::rule_kind;
use practicum_core::model::{CheckTarget, Diagnostics, Rule, Span};
use practicum_core::tree::TreeNode;

pub enum BuiltRule {
    Rule(Arc<dyn Rule>, CheckTarget),
    /// There is such a check, and this is not how it is said; the diagnostics tell.
    Invalid,
    NoSuchKind,
}

/// The rule that stands behind `key` in a native file, with its value as that file would have it.
/// Whatever is wrong with the value is told at `span`.
pub fn build_rule(key: &str, value: &Value, span: Span, diagnostics: &mut Diagnostics) -> BuiltRule {
    let Some(kind) = rule_kind(key) else { return BuiltRule::NoSuchKind };
    match (kind.decode)(&TreeNode::from_value(value, span), diagnostics) {
        Some(rule) => BuiltRule::Rule(rule, kind.looks_at.clone()),
        None => BuiltRule::Invalid,
    }
}
