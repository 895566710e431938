//! The key `about_skill` of native files: statements about the skill's own text, for a judge.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::decode::decode_one_of;
use practicum_core::model::{Diagnostics, JudgedStatement, ScoreScale, SkillStatement};
use practicum_core::tree::{ObjectReader, TreeNode};

pub fn decode(nodes: &[TreeNode], diagnostics: &mut Diagnostics) -> Vec<SkillStatement> {
    let mut ids = HashSet::new();
    nodes.iter().filter_map(|node| decode_statement(node, &mut ids, diagnostics)).collect()
}

fn decode_statement(
    node: &TreeNode,
    ids: &mut HashSet<String>,
    diagnostics: &mut Diagnostics,
) -> Option<SkillStatement> {
    let mut object = ObjectReader::new(node, "a statement about the skill", diagnostics)?;
    let id = object.required_text("id", diagnostics).map(str::to_owned);
    let statement = object.required_text("statement", diagnostics).map(str::to_owned);
    let context = object.text("context", diagnostics).map(str::to_owned);
    let scales = ScoreScale::ALL.map(|scale| (scale.name(), scale));
    let scale = decode_one_of(&mut object, "scale", &scales, diagnostics).unwrap_or(ScoreScale::PassFail);
    object.reject_unknown_keys("a statement about the skill", diagnostics);
    let (id, statement) = (id?, statement?);
    if !ids.insert(id.clone()) {
        let message = format!("another statement about the skill is already called \"{id}\"");
        diagnostics.error("duplicate-id", node.span, message);
    }
    Some(SkillStatement { id, judged: JudgedStatement { statement, context, scale } })
}

pub fn encode(about: &SkillStatement) -> Value {
    let SkillStatement { id, judged: JudgedStatement { statement, context, scale } } = about;
    let mut map = Map::new();
    map.insert("id".to_owned(), json!(id));
    map.insert("statement".to_owned(), json!(statement));
    if let Some(context) = context {
        map.insert("context".to_owned(), json!(context));
    }
    if *scale != ScoreScale::PassFail {
        map.insert("scale".to_owned(), json!(scale.name()));
    }
    Value::Object(map)
}
