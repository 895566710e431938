//! `about_skill`: what a judge is to decide of the skill's own text.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::decode::one_of;
use practicum_core::model::{Diagnostics, Judged, Scale, SkillStatement};
use practicum_core::tree::{Node, Object};

pub fn decode(nodes: &[Node], diagnostics: &mut Diagnostics) -> Vec<SkillStatement> {
    let mut ids = HashSet::new();
    nodes.iter().filter_map(|node| statement(node, &mut ids, diagnostics)).collect()
}

fn statement(
    node: &Node,
    ids: &mut HashSet<String>,
    diagnostics: &mut Diagnostics,
) -> Option<SkillStatement> {
    let mut object = Object::new(node, "a statement about the skill", diagnostics)?;
    let id = object.required_text("id", diagnostics).map(str::to_owned);
    let statement = object.required_text("statement", diagnostics).map(str::to_owned);
    let context = object.text("context", diagnostics).map(str::to_owned);
    let scales = Scale::ALL.map(|scale| (scale.name(), scale));
    let scale = one_of(&mut object, "scale", &scales, diagnostics).unwrap_or(Scale::PassFail);
    object.refuse_rest("a statement about the skill", diagnostics);
    let (id, statement) = (id?, statement?);
    if !ids.insert(id.clone()) {
        let message = format!("another statement about the skill is already called \"{id}\"");
        diagnostics.error("duplicate-id", node.span, message);
    }
    Some(SkillStatement { id, judged: Judged { statement, context, scale } })
}

pub fn encode(about: &SkillStatement) -> Value {
    let SkillStatement { id, judged: Judged { statement, context, scale } } = about;
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(id));
    map.insert("statement".to_owned(), json!(statement));
    if let Some(context) = context {
        map.insert("context".to_owned(), json!(context));
    }
    if *scale != Scale::PassFail {
        map.insert("scale".to_owned(), json!(scale.name()));
    }
    Value::Object(map)
}
