//! Tools by their roles. Agents have different names for the same tool; an eval file names its role once.

use serde_json::{Map, Value, json};

use super::regex::decode_pattern;
use super::{PythonPattern, excerpt};
use practicum_core::model::{CheckFinding, Diagnostics, NotScoredReason, Observation, Step, ToolCall};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text, report_wrong_type,
};

/// The roles of tools, and what agents call the tools in each role. One name may have two roles: a patch writes
/// new files and edits old ones.
pub static TOOL_ROLES: &[(&str, &[&str])] = &[
    ("read", &["Read", "NotebookRead", "read", "read_file", "read_many_files"]),
    ("write", &["Write", "write", "write_file", "apply_patch", "file_change"]),
    ("edit", &["Edit", "MultiEdit", "NotebookEdit", "edit", "replace", "apply_patch", "file_change"]),
    (
        "shell",
        &[
            "Bash",
            "bash",
            "shell",
            "local_shell",
            "exec",
            "exec_command",
            "command_execution",
            "run_shell_command",
        ],
    ),
    ("skill", &["Skill", "skill", "activate_skill"]),
];

/// Groups of argument names that mean the same for different agents.
static ARGUMENT_ALIASES: &[&[&str]] = &[
    &["file_path", "path", "filePath", "absolute_path", "notebook_path"],
    &["command", "cmd"],
    &["skill", "name"],
];

/// A tool as an eval file names it: by its role, or exactly as one agent calls it. `*` and `?` match any
/// characters, for the tools of MCP servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolName(String);

impl ToolName {
    /// Makes the name of a tool. `None` if no tool can have it.
    pub fn new(name: &str) -> Option<Self> {
        (!name.trim().is_empty()).then(|| Self(name.trim().to_owned()))
    }

    /// Reads the name of a tool, and reports what is wrong with it.
    pub fn decode(key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let tool = Self::new(node_text(node, key, diagnostics)?);
        if tool.is_none() {
            diagnostics.error("empty-text", node.span, format!("\"{key}\" must name a tool"));
        }
        tool
    }

    /// Gives the name as it was written.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Says whether a tool that an agent called has this name.
    pub fn matches(&self, called: &str) -> bool {
        let role = TOOL_ROLES.iter().find(|(role, _)| *role == self.0);
        glob_matches(&self.0, called) || role.is_some_and(|(_, names)| names.contains(&called))
    }
}

/// The calls that an eval file describes: a tool, and patterns for its arguments.
#[derive(Debug, Clone)]
pub struct CallPattern {
    pub tool: ToolName,
    /// Pairs of argument and glob; all must match.
    pub args: Vec<(String, String)>,
    /// A pattern that must match somewhere in the arguments, written as JSON.
    pub input: Option<PythonPattern>,
}

impl CallPattern {
    /// Reads `name` and `args` from a mapping.
    pub fn decode(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let tool = match object.get_non_null("name") {
            Some(node) => ToolName::decode("name", node, diagnostics),
            None => {
                object.report_missing("name", diagnostics);
                None
            }
        };
        let args = match object.get_non_null("args") {
            Some(node) => decode_args(node, diagnostics),
            None => Some(Vec::new()),
        };
        let input = object.get_non_null("input").map(|node| decode_pattern("input", node, diagnostics));
        let input = match input {
            Some(pattern) => Some(pattern?),
            None => None,
        };
        Some(Self { tool: tool?, args: args?, input })
    }

    /// Makes the pattern of all calls of a tool.
    pub fn of_tool(tool: ToolName) -> Self {
        Self { tool, args: Vec::new(), input: None }
    }

    pub fn value(&self) -> Map<String, Value> {
        let mut map = Map::new();
        map.insert("name".to_owned(), json!(self.tool.name()));
        if !self.args.is_empty() {
            let args: Map<String, Value> =
                self.args.iter().map(|(name, glob)| (name.clone(), json!(glob))).collect();
            map.insert("args".to_owned(), Value::Object(args));
        }
        if let Some(input) = &self.input {
            map.insert("input".to_owned(), json!(input.source()));
        }
        map
    }

    pub fn matches(&self, call: &ToolCall) -> bool {
        self.tool.matches(&call.name) && self.arguments_match(call)
    }

    fn arguments_match(&self, call: &ToolCall) -> bool {
        let fits = |(name, wanted): &(String, String)| {
            argument_texts(&call.input, name).iter().any(|found| glob_matches(wanted, found))
        };
        self.args.iter().all(fits) && self.input.as_ref().is_none_or(|pattern| input_matches(pattern, call))
    }

    /// Finds the calls that a check forbids. The case of the tool's name does not matter: a check that forbids
    /// "bash" does not allow "Bash".
    pub fn find_forbidden<'o>(&self, observation: &'o Observation) -> Vec<&'o ToolCall> {
        let lower = ToolName(self.tool.0.to_lowercase());
        let is_tool =
            |call: &ToolCall| self.tool.matches(&call.name) || lower.matches(&call.name.to_lowercase());
        tool_calls(observation).filter(|call| is_tool(call) && self.arguments_match(call)).collect()
    }

    /// Gives the finding for a run in which the pattern for arguments needs too many steps; `None` otherwise.
    pub fn too_hard_finding(&self, observation: &Observation) -> Option<CheckFinding> {
        let pattern = self.input.as_ref()?;
        let is_hard = |call: &ToolCall| pattern.is_match(&call.input.to_string()).is_err();
        let shown = excerpt(pattern.source(), 80);
        let why = || NotScoredReason::CheckFailed(format!("/{shown}/ needs too many steps"));
        tool_calls(observation).any(is_hard).then(|| CheckFinding::not_scored(why()))
    }

    pub fn find_calls<'o>(&self, observation: &'o Observation) -> Vec<&'o ToolCall> {
        tool_calls(observation).filter(|call| self.matches(call)).collect()
    }

    pub fn describe(&self) -> String {
        let args: Vec<String> =
            self.args.iter().map(|(name, glob)| format!("{name}: {}", excerpt(glob, 60))).collect();
        let input = self.input.as_ref().map(|input| format!("input /{}/", excerpt(input.source(), 60)));
        let args: Vec<String> = args.into_iter().chain(input).collect();
        if args.is_empty() {
            self.tool.name().to_owned()
        } else {
            format!("{} with {}", self.tool.name(), args.join(", "))
        }
    }
}

/// Gives the schema of what `CallPattern::decode` reads.
pub fn call_schema() -> MappingSchema {
    let roles: Vec<&str> = TOOL_ROLES.iter().map(|(role, _)| *role).collect();
    let doc = format!(
        "The tool: what it is for ({}), or its name as the agent calls it; * and ? are wildcards.",
        roles.join(", ")
    );
    let globs = json!({"type": "object", "additionalProperties": {"type": "string"}});
    MappingSchema::closed()
        .required("name", &doc, json_schema::nonempty_text())
        .optional(
            "args",
            "Arguments of the call, each with a glob that its value must match.",
            json_schema::with_examples(globs, json!([{"file_path": "*.md"}])),
        )
        .optional(
            "input",
            "A pattern (Python's `re` syntax) that matches somewhere in the arguments, written as JSON.",
            json_schema::text(),
        )
}

/// Says whether a pattern matches in the arguments of a call, written as JSON in one line or with a blank after each
/// colon and comma, as the agents' streams have it. `too_hard_finding` says whether the pattern needs too many steps.
fn input_matches(pattern: &PythonPattern, call: &ToolCall) -> bool {
    let is_match = |text: &str| pattern.is_match(text).unwrap_or(false);
    is_match(&call.input.to_string()) || is_match(&json_with_blanks(&call.input))
}

/// Writes JSON with a blank after each colon and comma, as Python does.
fn json_with_blanks(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", json!(key), json_with_blanks(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json_with_blanks).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn decode_args(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<(String, String)>> {
    let Some(entries) = node.as_map() else {
        report_wrong_type(node, "args", "a mapping from arguments to globs", diagnostics);
        return None;
    };
    entries
        .iter()
        .map(|entry| Some((entry.key.clone(), node_text(&entry.value, &entry.key, diagnostics)?.to_owned())))
        .collect()
}

pub fn tool_calls(observation: &Observation) -> impl Iterator<Item = &ToolCall> {
    observation.steps.iter().filter_map(|step| match step {
        Step::Tool(call) => Some(call),
        Step::User(_) | Step::Text(_) => None,
    })
}

/// Gives the finding for a run whose stream never shows tool calls; `None` if it does show them.
pub fn hidden_calls_finding(observation: &Observation) -> Option<CheckFinding> {
    let why = || NotScoredReason::CheckFailed("the agent's stream shows no tool calls".to_owned());
    observation.hides_tools.then(|| CheckFinding::not_scored(why()))
}

/// Lists the names of the called tools, each once, for messages.
pub fn called_tool_names(observation: &Observation) -> String {
    let mut names: Vec<&str> = Vec::new();
    for call in tool_calls(observation) {
        if !names.contains(&call.name.as_str()) {
            names.push(&call.name);
        }
    }
    if names.is_empty() { "no tool".to_owned() } else { excerpt(&names.join(", "), 160) }
}

/// Describes a call on one line.
pub fn describe_call(call: &ToolCall) -> String {
    excerpt(&format!("{} {}", call.name, call.input), 160)
}

/// Gives the values of an argument as texts, under its own name or another agent's name for it.
fn argument_texts(input: &Value, name: &str) -> Vec<String> {
    if let Some(value) = input.get(name) {
        return vec![plain_text(value)];
    }
    let Some(names) = ARGUMENT_ALIASES.iter().find(|names| names.contains(&name)) else { return Vec::new() };
    if let Some(value) = names.iter().find_map(|name| input.get(name)) {
        return vec![plain_text(value)];
    }
    // A patch names its files one level deeper.
    let changes = input.get("changes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    changes
        .iter()
        .filter_map(|change| names.iter().find_map(|name| change.get(name)))
        .map(plain_text)
        .collect()
}

fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Says whether the whole text matches: `*` stands for any characters including slashes, `?` for one character.
pub fn glob_matches(wanted: &str, text: &str) -> bool {
    let wanted: Vec<char> = wanted.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut w, mut t) = (0, 0);
    // The position of the last star, and how much of the text it has matched so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match wanted.get(w) {
            Some('*') => {
                star = Some((w, t));
                w += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                w += 1;
                t += 1;
            }
            Some(_) | None => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    w = at + 1;
                    t = taken + 1;
                }
                None => return false,
            },
        }
    }
    wanted[w..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_raw_names() {
        for (wanted, called, expected) in [
            ("shell", "Bash", true),
            ("shell", "command_execution", true),
            ("shell", "run_shell_command", true),
            ("shell", "shell", true),
            ("read", "read_file", true),
            ("read", "Read", true),
            ("write", "file_change", true),
            ("edit", "apply_patch", true),
            ("edit", "MultiEdit", true),
            ("skill", "activate_skill", true),
            ("skill", "Skill", true),
            ("Skill", "skill", false),
            ("Bash", "Bash", true),
            ("Bash", "bash", false),
            ("Bash", "shell", false),
            ("mcp__*", "mcp__github__search", true),
            ("read", "Write", false),
        ] {
            let tool = ToolName::new(wanted).unwrap_or_else(|| panic!("{wanted}"));
            assert_eq!(tool.matches(called), expected, "{wanted} {called}");
        }
        assert_eq!(ToolName::new("  "), None);
    }

    #[test]
    fn arguments_under_other_names() {
        for (input, name, expected) in [
            (json!({"file_path": "/w/a.md"}), "file_path", vec!["/w/a.md"]),
            (json!({"filePath": "/w/a.md"}), "file_path", vec!["/w/a.md"]),
            (
                json!({"changes": [{"path": "a"}, {"path": "b"}, {"kind": "add"}]}),
                "file_path",
                vec!["a", "b"],
            ),
            (json!({"name": "greeter"}), "skill", vec!["greeter"]),
            (json!({"limit": 5, "flag": true}), "limit", vec!["5"]),
            (json!({"list": [1, "x"]}), "list", vec!["[1,\"x\"]"]),
            (json!({"other": 1}), "file_path", vec![]),
            (json!("text"), "file_path", vec![]),
            (json!(null), "anything", vec![]),
        ] {
            assert_eq!(argument_texts(&input, name), expected, "{input} {name}");
        }
    }

    #[test]
    fn globs() {
        for (wanted, text, expected) in [
            ("*.md", "/room/review.md", true),
            ("*.md", "/room/review.mdx", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("**a**b**", "xaybz", true),
            ("git *", "git push --force", true),
            ("*é?", "caféx", true),
            ("*a*a*a*a*a*a*a*a*b", &"a".repeat(2000), false),
        ] {
            assert_eq!(glob_matches(wanted, text), expected, "{wanted} {text}");
        }
    }
}
