//! A suite as Skillet files, one a case.

use serde_json::{Map, Value, json};

use super::super::{Raised, RaisedFile};
use crate::model::{Case, CheckKind, Stimulus, Suite};
use crate::tree::Syntax;

pub fn raise(suite: &Suite) -> Raised {
    let mut losses = Vec::new();
    if !suite.skills.is_empty() {
        losses.push("the skill: Skillet takes it from the command line".to_owned());
    }
    let files = suite.cases.iter().map(|case| file(case, &suite.name, &mut losses)).collect();
    Raised { files, losses }
}

fn file(case: &Case, suite: &str, losses: &mut Vec<String>) -> RaisedFile {
    let mut lose = |what: String| losses.push(format!("case {}: {what}", case.id));
    let mut map = Map::new();
    // Required by the format. A case from elsewhere has no date of its own, so it gets the epoch,
    // which nobody takes for a real one and which does not change from run to run.
    let timestamp = case.meta.get("timestamp").cloned().unwrap_or_else(|| json!("1970-01-01T00:00:00Z"));
    map.insert("timestamp".to_owned(), timestamp);
    map.insert("name".to_owned(), json!(case.group.as_deref().unwrap_or(suite)));
    match &case.stimulus {
        Stimulus::Turns(turns) => {
            let prompt = if let [one] = turns.as_slice() { json!(one) } else { json!(turns) };
            map.insert("prompt".to_owned(), prompt);
        }
        Stimulus::SkillCommand { args } => {
            lose("the skill command became a prompt".to_owned());
            map.insert("prompt".to_owned(), json!(args));
        }
    }
    let mut statements = Vec::new();
    let mut assertions = Vec::new();
    for check in &case.checks {
        match &check.kind {
            CheckKind::Judged(judged) => statements.push(judged.statement.as_str()),
            CheckKind::Exact(rule) => match assertion(rule.key(), &rule.value()) {
                Some(assertion) => assertions.push(assertion),
                None => lose(format!("check {} ({})", check.id, rule.key())),
            },
            CheckKind::Sections(_) => lose(format!("check {} (sections)", check.id)),
            CheckKind::Activation(_) => lose(format!("check {} (activation)", check.id)),
        }
    }
    if !assertions.is_empty() && !statements.is_empty() {
        lose("the judged checks, because assertions replace the judge".to_owned());
    }
    let expected =
        if statements.is_empty() { case.context.clone().unwrap_or_default() } else { statements.join("\n") };
    let expected = if expected.trim().is_empty() { "See the assertions.".to_owned() } else { expected };
    map.insert("expected".to_owned(), json!(expected));
    if !assertions.is_empty() {
        map.insert("assertions".to_owned(), Value::Array(assertions));
    }
    for (key, script) in [("setup", &case.room.setup), ("teardown", &case.room.teardown)] {
        if let Some(script) = script {
            map.insert(key.to_owned(), json!(script));
        }
    }
    for (key, value) in &case.meta {
        map.entry(key.clone()).or_insert_with(|| value.clone());
    }
    if !case.room.files.is_empty() || !case.room.overlays.is_empty() {
        lose("its files".to_owned());
    }
    RaisedFile { name: format!("{}.yaml", case.id), syntax: Syntax::Yaml, document: Value::Object(map) }
}

/// Skillet's assertions ignore case, except patterns.
fn assertion(key: &str, value: &Value) -> Option<Value> {
    let (kind, wants_ignored_case) = match key {
        "contains" | "not_contains" | "starts_with" | "ends_with" => (key, true),
        "regex" => (key, false),
        "tool_used" => ("tool_called", false),
        "tool_not_used" => ("tool_not_called", false),
        _ => return None,
    };
    let text = match value {
        Value::String(text) if !wants_ignored_case => text,
        Value::Object(map) if wants_ignored_case && map.get("ignore_case") == Some(&json!(true)) => {
            map.get("text")?.as_str()?
        }
        _ => return None,
    };
    Some(json!({"type": kind, "value": text}))
}
