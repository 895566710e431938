//! Keys of a spec that have no effect: unknown keys, and known keys that decide nothing in this spec. They are
//! kept at their place, so that writing the spec again loses nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::reading::UnusedKeys;
use practicum_core::model::Diagnostics;
use practicum_core::tree::{NodeData, ObjectReader, TreeNode};

/// A tree that has only the kept keys: lists become mappings from position to entry.
#[derive(Default)]
pub struct UnusedSpecKeys {
    unused_keys: UnusedKeys,
    tree: BTreeMap<String, Value>,
}

/// The path of an object in a spec, from the top: `sections`, `0`, `tiers`, `1`.
pub type SpecPath<'a> = &'a [&'a str];

impl UnusedSpecKeys {
    /// Keeps the keys of an object that no reader used. `what` names the object: "a tier".
    pub fn keep_rest(
        &mut self,
        object: &ObjectReader<'_>,
        what: &'static str,
        at: SpecPath<'_>,
        diagnostics: &mut Diagnostics,
    ) {
        let rest = self.unused_keys.collect_unused(object, what, diagnostics);
        let Some((top, below)) = at.split_first() else {
            self.tree.extend(rest);
            return;
        };
        if rest.is_empty() {
            return;
        }
        let mut place = self.tree.entry((*top).to_owned()).or_insert_with(empty_object);
        for step in below {
            place = match place {
                Value::Object(map) => map.entry((*step).to_owned()).or_insert_with(empty_object),
                // Every step above made a mapping, so this cannot happen.
                _ => return,
            };
        }
        if let Value::Object(map) = place {
            map.extend(rest);
        }
    }

    /// Keeps a key that would have an effect in another spec.
    pub fn keep_key(
        &mut self,
        spec: &mut ObjectReader<'_>,
        key: &'static str,
        why: &str,
        diagnostics: &mut Diagnostics,
    ) {
        // An error elsewhere may be the reason why nothing seems to use the key.
        if diagnostics.has_errors() {
            return;
        }
        if let Some(node) = spec.get_non_null(key).filter(|node| !is_empty(node)) {
            self.tree.insert(key.to_owned(), TreeNode::to_value(node));
            diagnostics.notice("unused-key", node.span, format!("\"{key}\" is kept and not used: {why}"));
        }
    }

    pub fn into_meta(self) -> BTreeMap<String, Value> {
        self.tree
    }
}

/// Says whether a value is empty. An empty value has the same effect as none.
fn is_empty(node: &TreeNode) -> bool {
    match &node.data {
        NodeData::Text(text) => text.is_empty(),
        NodeData::List(items) => items.is_empty(),
        NodeData::Map(entries) => entries.is_empty(),
        NodeData::Null | NodeData::Bool(_) | NodeData::Int(_) | NodeData::Float(_) => false,
    }
}

fn empty_object() -> Value {
    Value::Object(Map::new())
}

/// Puts the kept keys back at their place in a document. Gives `None` if there is something else at that place.
pub fn restore_keys(into: &Value, kept: &Value) -> Option<Value> {
    let Value::Object(kept) = kept else { return None };
    let mut into = into.clone();
    for (step, value) in kept {
        match &mut into {
            Value::Object(map) => {
                let new = match map.get(step) {
                    Some(there) => restore_keys(there, value)?,
                    None => value.clone(),
                };
                map.insert(step.clone(), new);
            }
            Value::Array(items) => {
                let item = items.get_mut(step.parse::<usize>().ok()?)?;
                *item = restore_keys(item, value)?;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        }
    }
    Some(into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_put_back_replaces_nothing() {
        let into = json!({"a": [{"b": 1}, {}], "c": 3});
        for (kept, expected) in [
            (json!({"d": 4}), Some(json!({"a": [{"b": 1}, {}], "c": 3, "d": 4}))),
            (json!({"a": {"1": {"e": 5}}}), Some(json!({"a": [{"b": 1}, {"e": 5}], "c": 3}))),
            (json!({"a": {"0": {"b": 5}}}), None),
            (json!({"a": {"2": {"b": 5}}}), None),
            (json!({"c": 3}), None),
            (json!(3), None),
        ] {
            assert_eq!(restore_keys(&into, &kept), expected, "{kept}");
        }
    }
}
