//! Reads the tool calls in a session log of Codex, and gives them the names that Codex's stream has for them.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use practicum_core::model::ToolCall;

/// The names under which versions of Codex offer a shell to the model.
const SHELL_CALLS: [&str; 5] = ["exec_command", "shell", "shell_command", "local_shell", "container.exec"];

/// The name of the tool that runs a program of the model, which calls other tools.
pub const PROGRAM_CALL: &str = "exec";

fn call(name: &str, input: Value) -> ToolCall {
    ToolCall { name: name.to_owned(), input, result: None, ok: None }
}

/// Gives the calls that the model asked for with one item. A patch of several files is one call for each.
pub fn requested_calls(name: &str, arguments: &Value) -> Vec<ToolCall> {
    let text =
        arguments.as_str().or_else(|| arguments["input"].as_str()).or_else(|| arguments["patch"].as_str());
    if name == "apply_patch" {
        let changes = text.map(patched_files).unwrap_or_default();
        return match changes.is_empty() {
            true => vec![call(name, arguments.clone())],
            false => changes,
        };
    }
    let command = ["cmd", "command"].iter().find_map(|key| arguments.get(*key));
    match command.filter(|_| SHELL_CALLS.contains(&name)) {
        Some(command) => vec![command_call(command)],
        None => vec![call(name, arguments.clone())],
    }
}

/// Gives the call of a command, which is a script or a list of words.
fn command_call(command: &Value) -> ToolCall {
    let words: Vec<&str> = command.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let script = match (command.as_str(), words.as_slice()) {
        (Some(script), _) => script.to_owned(),
        (None, [_, flag, script]) if flag.starts_with('-') && flag.ends_with('c') => (*script).to_owned(),
        (None, words) => words.join(" "),
    };
    call("command_execution", json!({"command": script}))
}

/// Gives a call for each file of a patch.
fn patched_files(patch: &str) -> Vec<ToolCall> {
    let kinds = [("*** Add File: ", "add"), ("*** Update File: ", "update"), ("*** Delete File: ", "delete")];
    let change = |line: &str| {
        let (start, kind) = kinds.iter().find(|(start, _)| line.starts_with(start))?;
        Some(call("file_change", json!({"path": line[start.len()..].trim(), "kind": kind})))
    };
    patch.lines().filter_map(change).collect()
}

/// Gives the calls that a finished item stands for, with their result; `None` if the item is no call of a tool.
pub fn completed_calls(item: &Value) -> Option<Vec<ToolCall>> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let calls = match text("type") {
        "CommandExecution" => vec![command_call(&item["command"])],
        "FileChange" => {
            let changes = item["changes"].as_object().into_iter().flatten();
            changes
                .map(|(path, change)| call("file_change", json!({"path": path, "kind": change["type"]})))
                .collect()
        }
        "McpToolCall" => {
            let name = format!("mcp__{}__{}", text("server"), text("tool"));
            vec![call(&name, item["arguments"].clone())]
        }
        "CollabToolCall" | "CollabAgentToolCall" => {
            vec![call(text("tool"), json!({"prompt": item["prompt"]}))]
        }
        "WebSearch" => vec![call("web_search", json!({"query": item["query"]}))],
        _ => return None,
    };
    let result = match (&item["aggregated_output"], &item["stdout"]) {
        (Value::String(output), _) | (_, Value::String(output)) => Some(output.clone()),
        _ => match &item["result"] {
            Value::Null => item["error"]["message"].as_str().map(str::to_owned),
            result => Some(result.to_string()),
        },
    };
    // A search has no status.
    let ok = item["status"].as_str().map_or(Some(true), |status| match status {
        "completed" => Some(true),
        "in_progress" | "inProgress" => None,
        _ => Some(false),
    });
    Some(calls.into_iter().map(|call| ToolCall { result: result.clone(), ok, ..call }).collect())
}

/// The output that the model got for a call, and whether the call succeeded, if that can be told.
pub struct CallOutput {
    pub text: String,
    pub ok: Option<bool>,
}

/// Reads the output of a call as the model got it. Before the output of a command there are lines about its process.
pub fn read_output(output: &Value, is_command: bool) -> CallOutput {
    static EXIT_CODE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^(?:Process exited with code|Exit code:) (-?\d+)").expect("a pattern")
    });
    let told = match output {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        other => other["content"].as_str().or(other["output"].as_str()).unwrap_or_default().to_owned(),
    };
    let failed = told.starts_with("unsupported call") || told.ends_with("aborted by user");
    let success = output["success"].as_bool().or(failed.then_some(false));
    // Older versions wrap the output of a command into JSON.
    if let Ok(wrapped @ Value::Object(_)) = serde_json::from_str::<Value>(&told)
        && let (Some(text), Some(code)) =
            (wrapped["output"].as_str(), wrapped["metadata"]["exit_code"].as_i64())
    {
        return CallOutput { text: text.to_owned(), ok: Some(code == 0) };
    }
    if !is_command {
        return CallOutput { text: told, ok: success.or(Some(true)) };
    }
    let (head, body) = told.split_once("Output:\n").unwrap_or((told.as_str(), told.as_str()));
    let code = EXIT_CODE.captures(head).and_then(|found| found[1].parse::<i64>().ok());
    CallOutput { text: body.to_owned(), ok: success.or(code.map(|code| code == 0)) }
}
