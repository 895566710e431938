//! Builds deterministic checks by their native key, so that a dialect need not know the types of rules.

use std::sync::Arc;

use serde_json::Value;

use crate::checks::rule_kind;
use practicum_core::model::{CheckTarget, Diagnostics, Rule, Span};
use practicum_core::tree::TreeNode;

/// The result of building a rule by its key.
pub enum BuiltRule {
    Rule(Arc<dyn Rule>, CheckTarget),
    /// There is such a check, but its value is wrong; the diagnostics say why.
    Invalid,
    NoSuchKind,
}

/// Builds the rule for `key` in a native file, with the value that the file would have. Errors in the value are
/// reported at `span`.
pub fn build_rule(key: &str, value: &Value, span: Span, diagnostics: &mut Diagnostics) -> BuiltRule {
    let Some(kind) = rule_kind(key) else { return BuiltRule::NoSuchKind };
    match (kind.decode)(&TreeNode::from_value(value, span), diagnostics) {
        Some(rule) => {
            let target = rule.default_target();
            BuiltRule::Rule(rule, target)
        }
        None => BuiltRule::Invalid,
    }
}
