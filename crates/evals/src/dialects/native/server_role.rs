//! Reads and writes `model` of a mocked server: the server that a model plays.

use serde_json::{Map, Value, json};

use practicum_core::model::{Diagnostics, ServerRole};
use practicum_core::tree::json_schema::{self, MappingSchema};
use practicum_core::tree::{ObjectReader, TreeNode};

/// What the key means.
pub const DOC: &str = "The server that a model plays, which answers.";

/// Reads the role alone, or `{role, facts, fail_when}`.
pub fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<ServerRole> {
    let role = match node.as_text() {
        Some(text) => ServerRole { role: text.to_owned(), facts: Vec::new(), fail_when: None },
        None => {
            let mut object = ObjectReader::new(node, "model", diagnostics)?;
            let role = object.required_text("role", diagnostics).map(str::to_owned);
            let facts = object.texts("facts", diagnostics).unwrap_or_default();
            let fail_when = object.text("fail_when", diagnostics).map(str::to_owned);
            object.reject_unknown_keys("model", diagnostics);
            let facts = facts.into_iter().map(|(text, _)| text.to_owned()).collect();
            ServerRole { role: role?, facts, fail_when: fail_when.filter(|text| !text.trim().is_empty()) }
        }
    };
    if role.role.trim().is_empty() {
        diagnostics.error("empty-text", node.span, "\"role\" must not be blank");
        return None;
    }
    Some(role)
}

/// Writes a role as it is read.
pub fn encode(role: &ServerRole) -> Value {
    let ServerRole { role, facts, fail_when } = role;
    let mut map = Map::new();
    map.insert("role".to_owned(), json!(role));
    if !facts.is_empty() {
        map.insert("facts".to_owned(), json!(facts));
    }
    map.extend(fail_when.as_ref().map(|text| ("fail_when".to_owned(), json!(text))));
    Value::Object(map)
}

/// Moves a role that several tools of a written server have to the server, so that it is written once.
pub fn share(mut server: Value) -> Value {
    let tools = || server["tools"].as_object().into_iter().flat_map(Map::values);
    let role_of = |tool: &Value| tool.get("model").cloned();
    let mut roles = tools().filter_map(role_of);
    let shared = roles.find(|role| tools().filter(|tool| tool.get("model") == Some(role)).count() > 1);
    let Some(shared) = shared else { return server };
    if let Some(tools) = server["tools"].as_object_mut() {
        for tool in tools.values_mut().filter_map(Value::as_object_mut) {
            if tool.get("model") == Some(&shared) {
                tool.remove("model");
            }
        }
    }
    server["model"] = shared;
    server
}

/// Gives the schema of a role.
pub fn schema() -> Value {
    let role = MappingSchema::closed()
        .required("role", "What the server is and how it answers.", json_schema::nonempty_text())
        .optional("facts", "What the server knows.", json_schema::text_or_texts())
        .optional(
            "fail_when",
            "When a call is a mistake of the agent, which fails the trial. The model decides whether it is.",
            json_schema::text(),
        );
    json_schema::any_of([json_schema::nonempty_text(), role.into()])
}
