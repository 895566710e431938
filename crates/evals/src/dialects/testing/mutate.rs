//! Random changes to valid documents.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A change to one value of a document.
#[derive(Debug, Clone)]
pub enum DocumentChange {
    Delete,
    Replace(Value),
    Duplicate,
    Rename(String),
}

/// Gives a few changes, each at a position counted through the document.
pub fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, DocumentChange)>> {
    let change = prop_oneof![
        Just(DocumentChange::Delete),
        any_json().prop_map(DocumentChange::Replace),
        Just(DocumentChange::Duplicate),
        "[a-z_]{1,12}".prop_map(DocumentChange::Rename),
    ];
    vec((any::<prop::sample::Index>(), change), 1..4)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(|x| json!(x)),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["", " ", "../x", "/etc/passwd", "[", "(", "must", "a\u{0}b", "🦀", "."])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z_]{0,8}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

pub fn apply(document: &mut Value, changes: &[(prop::sample::Index, DocumentChange)]) {
    for (index, change) in changes {
        let mut left = index.index(count_values(document).max(1));
        change_at(document, &mut left, change);
    }
}

/// Counts the values below this one.
fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| 1 + count_values(item)).sum(),
        Value::Object(map) => map.values().map(|item| 1 + count_values(item)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Goes to the `left`-th value and changes it. Says whether it was found.
fn change_at(value: &mut Value, left: &mut usize, change: &DocumentChange) -> bool {
    match value {
        Value::Array(items) => {
            for at in 0..items.len() {
                if *left == 0 {
                    match change {
                        DocumentChange::Delete => {
                            items.remove(at);
                        }
                        DocumentChange::Replace(new) => items[at] = new.clone(),
                        DocumentChange::Duplicate | DocumentChange::Rename(_) => {
                            items.insert(at, items[at].clone())
                        }
                    }
                    return true;
                }
                *left -= 1;
                if change_at(&mut items[at], left, change) {
                    return true;
                }
            }
            false
        }
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                if *left == 0 {
                    match change {
                        DocumentChange::Delete => {
                            map.shift_remove(&key);
                        }
                        DocumentChange::Replace(new) => {
                            map.insert(key, new.clone());
                        }
                        DocumentChange::Duplicate => {
                            let copy = map[&key].clone();
                            map.insert(format!("{key}_2"), copy);
                        }
                        DocumentChange::Rename(name) => {
                            if let Some(value) = map.shift_remove(&key) {
                                map.insert(name.clone(), value);
                            }
                        }
                    }
                    return true;
                }
                *left -= 1;
                if map.get_mut(&key).is_some_and(|value| change_at(value, left, change)) {
                    return true;
                }
            }
            false
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
