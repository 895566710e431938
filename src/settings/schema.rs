//! The project file for editors.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::agents::KEYS;
use super::knobs::KNOBS;
use crate::tree::shape::{self, Mapping};

/// What practicum.toml may hold, as JSON Schema over the same data.
pub fn schema() -> Value {
    let mut top = Mapping::closed();
    let mut tables: BTreeMap<&str, Mapping> = BTreeMap::new();
    for knob in KNOBS {
        match knob.name.split_once('.') {
            Some((table, key)) => {
                let known = tables.remove(table).unwrap_or_else(Mapping::closed);
                tables.insert(table, spelled(known, key, knob.doc, knob.shape));
            }
            None => top = spelled(top, knob.name, knob.doc, knob.shape),
        }
    }
    for (table, keys) in tables {
        top = top.may(table, &format!("Settings of the {table}."), keys);
    }
    let agents = json!({"type": "object", "additionalProperties": agent()});
    let modes = json!({"type": "object", "additionalProperties": shape::text()});
    let top = top.may("agents", "Agents of your own, by name.", agents).may(
        "modes",
        "System prompts of your own, by the mode's name.",
        modes,
    );
    shape::document(
        "Project settings (practicum.toml)",
        "Settings of a project. An eval file, a variable or a flag says more.",
        top,
        [],
    )
}

/// A key with its dashes; underscores are read the same.
fn spelled(mapping: Mapping, key: &str, doc: &str, shape: fn() -> Value) -> Mapping {
    let mapping = mapping.may(key, doc, shape());
    let other = key.replace('-', "_");
    if other == key { mapping } else { mapping.may(&other, &format!("The same as {key}."), shape()) }
}

fn agent() -> Value {
    let [(command, doc, shape), rest @ ..] = KEYS;
    let agent = Mapping::closed().must(command, doc, shape());
    rest.into_iter().fold(agent, |agent, (key, doc, shape)| agent.may(key, doc, shape())).into()
}
