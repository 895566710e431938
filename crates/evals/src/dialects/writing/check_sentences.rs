//! Describes deterministic checks as sentences for a judge.

use serde_json::Value;

use practicum_core::model::CheckTarget;

/// Describes a deterministic check, given by its native key and value, as a sentence that a judge can decide.
pub fn describe_check(key: &str, value: &Value, looks_at: &CheckTarget) -> String {
    let what = match looks_at {
        CheckTarget::Output => "The response".to_owned(),
        CheckTarget::LastTurn => "What the agent said in its last turn".to_owned(),
        CheckTarget::AllText => "What the agent said".to_owned(),
        CheckTarget::File(path) => format!("The file {path}"),
        CheckTarget::Files(globs) | CheckTarget::Pictures(globs) => {
            format!("What was written to {}", globs.join(", "))
        }
        CheckTarget::WholeRun => "The run".to_owned(),
    };
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let needle = value.as_str().or_else(|| text("text")).unwrap_or_default();
    let case = if value.get("ignore_case") == Some(&Value::Bool(true)) { " in any letter case" } else { "" };
    match key {
        "contains" => format!("{what} contains \"{needle}\"{case}."),
        "not_contains" => format!("{what} does not contain \"{needle}\"{case}."),
        "starts_with" => format!("{what} starts with \"{needle}\"{case}."),
        "ends_with" => format!("{what} ends with \"{needle}\"{case}."),
        "regex" => format!("{what} matches the regular expression /{needle}/."),
        "transcript" => {
            let verb = if text("expect") == Some("absent") { "does not match" } else { "matches" };
            let pattern = text("pattern").unwrap_or(needle);
            format!("The transcript {verb} the regular expression /{pattern}/.")
        }
        "command" if value.is_string() => format!("In the workspace, the command `{needle}` would succeed."),
        "tool_used" if value.is_string() => format!("The agent used the tool {needle}."),
        "tool_not_used" if value.is_string() => format!("The agent did not use the tool {needle}."),
        "file" => describe_file_check(value),
        _ => format!("{what} holds to this: {key} {value}."),
    }
}

fn describe_file_check(value: &Value) -> String {
    let path = value.as_str().or_else(|| value.get("path")?.as_str()).unwrap_or_default();
    if value.get("exists") == Some(&Value::Bool(false)) {
        return format!("There is no file {path} in the workspace.");
    }
    let mut sentence = format!("The file {path} exists in the workspace");
    let needles = value.get("contains").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for needle in needles.iter().filter_map(Value::as_str) {
        sentence.push_str(&format!(" and contains \"{needle}\""));
    }
    if let Some(pattern) = value.get("matches").and_then(Value::as_str) {
        sentence.push_str(&format!(" and matches the regular expression /{pattern}/"));
    }
    sentence + "."
}
