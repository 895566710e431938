//! Calls of mocks as checks and mocks describe them: conditions on arguments, and patterns of calls.

use serde_json::{Map, Value, json};

use super::regex::decode_pattern;
use super::{PythonPattern, excerpt};
use practicum_core::model::{
    CheckFinding, CommandArguments, Diagnostics, InputCondition, MockCall, MockedTool, NotScoredReason,
    Observation,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    report_wrong_type,
};

/// The names of types that a condition can ask for.
const TYPE_NAMES: [&str; 8] = ["string", "number", "integer", "boolean", "array", "object", "null", "any"];

/// Reads conditions: a mapping from dotted paths to what the arguments must be.
pub fn decode_conditions(
    key: &str,
    node: &TreeNode,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<InputCondition>> {
    let Some(entries) = node.as_map() else {
        report_wrong_type(node, key, "a mapping from arguments to what they must be", diagnostics);
        return None;
    };
    let mut conditions = Vec::new();
    for entry in entries {
        let expected = entry.value.to_value();
        if let Err(problem) = check_expected(&expected) {
            diagnostics.error("invalid-pattern", entry.value.span, problem);
            return None;
        }
        conditions.push(InputCondition { path: entry.key.clone(), expected });
    }
    Some(conditions)
}

/// Writes conditions as they are read.
pub fn conditions_value(conditions: &[InputCondition]) -> Value {
    let entries = conditions.iter().map(|condition| (condition.path.clone(), condition.expected.clone()));
    Value::Object(entries.collect())
}

/// Gives the schema of conditions.
pub fn conditions_schema() -> Value {
    json_schema::with_description(
        "Arguments by their dotted paths, each with the name of a type, a /pattern/, a list of alternatives or the value.",
        json!({"type": "object"}),
    )
}

fn check_expected(expected: &Value) -> Result<(), String> {
    match expected {
        Value::String(text) => match pattern_source(text) {
            Some(source) => PythonPattern::new(source)
                .map(|_| ())
                .map_err(|problem| format!("the pattern does not compile: {problem}")),
            None => Ok(()),
        },
        Value::Array(alternatives) => alternatives.iter().try_for_each(check_expected),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Ok(()),
    }
}

/// Gives the pattern in a text of the form `/pattern/`.
fn pattern_source(text: &str) -> Option<&str> {
    text.strip_prefix('/')?.strip_suffix('/').filter(|source| !source.is_empty())
}

/// Finds the first condition that the arguments do not meet, and says what is wrong.
pub fn unmet_condition(conditions: &[InputCondition], input: &Value) -> Option<String> {
    let unmet = conditions.iter().find(|condition| {
        let found = argument_at(input, &condition.path);
        !fits(&condition.expected, found)
    })?;
    let found = match argument_at(input, &unmet.path) {
        Some(found) => format!("is {}", excerpt(&found.to_string(), 80)),
        None => "is missing".to_owned(),
    };
    Some(format!("{} must be {} and {found}", unmet.path, unmet.expected))
}

/// Gives the argument at a dotted path.
pub fn argument_at<'v>(input: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(input, |at, step| match at {
        Value::Object(map) => map.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

fn fits(expected: &Value, found: Option<&Value>) -> bool {
    match expected {
        Value::Array(alternatives) => alternatives.iter().any(|one| fits(one, found)),
        Value::String(text) if TYPE_NAMES.contains(&text.as_str()) => has_type(text, found),
        Value::String(text) => match (pattern_source(text), found) {
            (_, None) => false,
            (Some(source), Some(found)) => {
                let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                PythonPattern::new(source).is_ok_and(|pattern| pattern.is_match(&found).unwrap_or(false))
            }
            (None, Some(found)) => found.as_str() == Some(text),
        },
        Value::Number(number) => found.and_then(Value::as_f64).is_some_and(|found| {
            number.as_f64().is_some_and(|number| (number - found).abs() <= f64::EPSILON * found.abs())
        }),
        Value::Null => found.is_none_or(Value::is_null),
        Value::Bool(_) | Value::Object(_) => found == Some(expected),
    }
}

fn has_type(name: &str, found: Option<&Value>) -> bool {
    let Some(found) = found else { return name == "null" };
    match name {
        "string" => found.is_string(),
        "number" => found.is_number(),
        "integer" => found.is_i64() || found.is_u64(),
        "boolean" => found.is_boolean(),
        "array" => found.is_array(),
        "object" => found.is_object(),
        "null" => found.is_null(),
        _ => true,
    }
}

/// Reads the arguments of a command: a list with which a call begins, or a pattern for all of them.
pub fn decode_arguments(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<CommandArguments> {
    let Some(items) = node.as_list() else {
        let pattern = decode_pattern("args", node, diagnostics)?;
        return Some(CommandArguments::Pattern(pattern.source().to_owned()));
    };
    let words = items.iter().map(|item| item.as_text().map(str::to_owned)).collect::<Option<Vec<String>>>();
    if words.is_none() {
        report_wrong_type(node, "args", "a list of texts or a pattern", diagnostics);
    }
    words.map(CommandArguments::Begin)
}

/// Writes the arguments of a command as they are read; `None` for any arguments.
pub fn arguments_value(args: &CommandArguments) -> Option<Value> {
    match args {
        CommandArguments::Any => None,
        CommandArguments::Begin(words) => Some(json!(words)),
        CommandArguments::Pattern(pattern) => Some(json!(pattern)),
    }
}

/// Gives the schema of the arguments of a command.
pub fn arguments_schema() -> Value {
    json_schema::any_of([
        json_schema::with_description(
            "The arguments with which the call begins.",
            json_schema::list(json_schema::text()),
        ),
        json_schema::with_description(
            "A pattern that is found in the arguments, joined by spaces.",
            json_schema::text(),
        ),
    ])
}

/// Says whether arguments fit.
pub fn arguments_fit(args: &CommandArguments, called: &[String]) -> bool {
    match args {
        CommandArguments::Any => true,
        CommandArguments::Begin(words) => called.starts_with(words),
        CommandArguments::Pattern(source) => PythonPattern::new(source)
            .is_ok_and(|pattern| pattern.is_match(&called.join(" ")).unwrap_or(false)),
    }
}

/// The calls of a mock that a check is about.
#[derive(Debug, Clone)]
pub enum MockCallPattern {
    /// Calls of a tool of an MCP server.
    Tool {
        server: String,
        tool: String,
        input: Vec<InputCondition>,
        /// A pattern that must match somewhere in the arguments, written as JSON.
        input_match: Option<PythonPattern>,
    },
    /// Calls of a command.
    Command { command: String, args: CommandArguments },
}

impl MockCallPattern {
    /// Reads `server/tool`, `command`, `{server, tool, input, input_match}` or `{command, args}`. Other keys of a
    /// mapping are left to the caller, who gives the reader.
    pub fn decode_text(text: &str) -> Self {
        match text.split_once('/') {
            Some((server, tool)) => MockCallPattern::Tool {
                server: server.trim().to_owned(),
                tool: tool.trim().to_owned(),
                input: Vec::new(),
                input_match: None,
            },
            None => MockCallPattern::Command { command: text.trim().to_owned(), args: CommandArguments::Any },
        }
    }

    /// Reads the keys of a mapping that describe calls.
    pub fn decode_object(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let server = object.text("server", diagnostics).map(str::to_owned);
        let tool = object.text("tool", diagnostics).map(str::to_owned);
        let command = object.text("command", diagnostics).map(str::to_owned);
        let input = object.get_non_null("input");
        let input_match = object.get_non_null("input_match");
        let args = object.get_non_null("args");
        match (server, tool, command) {
            (Some(server), Some(tool), None) if args.is_none() => {
                let input = match input {
                    Some(node) => decode_conditions("input", node, diagnostics)?,
                    None => Vec::new(),
                };
                let input_match = match input_match {
                    Some(node) => Some(decode_pattern("input_match", node, diagnostics)?),
                    None => None,
                };
                Some(MockCallPattern::Tool { server, tool, input, input_match })
            }
            (None, None, Some(command)) if input.is_none() && input_match.is_none() => {
                let args = match args {
                    Some(node) => decode_arguments(node, diagnostics)?,
                    None => CommandArguments::Any,
                };
                Some(MockCallPattern::Command { command, args })
            }
            _ => {
                diagnostics.error_with_help(
                    "contradiction",
                    object.span,
                    "this does not name calls of one mock",
                    "give \"server\" and \"tool\" with \"input\" or \"input_match\", or \"command\" with \"args\"",
                );
                None
            }
        }
    }

    /// Reads a pattern of calls that stands alone.
    pub fn decode(key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if let Some(text) = node.as_text() {
            if text.trim().is_empty() {
                diagnostics.error("empty-text", node.span, format!("\"{key}\" must name a mock"));
                return None;
            }
            return Some(Self::decode_text(text));
        }
        let mut object = ObjectReader::new(node, key, diagnostics)?;
        let pattern = Self::decode_object(&mut object, diagnostics);
        object.reject_unknown_keys(key, diagnostics);
        pattern
    }

    /// Writes the pattern as a mapping.
    pub fn value(&self) -> Map<String, Value> {
        let mut map = Map::new();
        match self {
            MockCallPattern::Tool { server, tool, input, input_match } => {
                map.insert("server".to_owned(), json!(server));
                map.insert("tool".to_owned(), json!(tool));
                if !input.is_empty() {
                    map.insert("input".to_owned(), conditions_value(input));
                }
                if let Some(pattern) = input_match {
                    map.insert("input_match".to_owned(), json!(pattern.source()));
                }
            }
            MockCallPattern::Command { command, args } => {
                map.insert("command".to_owned(), json!(command));
                map.extend(arguments_value(args).map(|args| ("args".to_owned(), args)));
            }
        }
        map
    }

    /// Says whether a call fits.
    pub fn matches(&self, call: &MockCall) -> bool {
        match (self, &call.of) {
            (
                MockCallPattern::Tool { server, tool, input, input_match },
                MockedTool::Mcp { server: called_server, tool: called_tool, input: called },
            ) => {
                let text = || called.to_string();
                server == called_server
                    && tool == called_tool
                    && unmet_condition(input, called).is_none()
                    && input_match.as_ref().is_none_or(|pattern| pattern.is_match(&text()).unwrap_or(false))
            }
            (
                MockCallPattern::Command { command, args },
                MockedTool::Command { command: called, args: called_args },
            ) => command == called && arguments_fit(args, called_args),
            (MockCallPattern::Tool { .. } | MockCallPattern::Command { .. }, _) => false,
        }
    }

    /// Describes the calls for a message.
    pub fn describe(&self) -> String {
        match self {
            MockCallPattern::Tool { server, tool, input, input_match } => {
                let input = (!input.is_empty()).then(|| conditions_value(input).to_string());
                let pattern = input_match.as_ref().map(|pattern| format!("/{}/", pattern.source()));
                let with: Vec<String> = input.into_iter().chain(pattern).collect();
                match with.is_empty() {
                    true => format!("{server}/{tool}"),
                    false => format!("{server}/{tool} with {}", excerpt(&with.join(" and "), 80)),
                }
            }
            MockCallPattern::Command { command, args } => match args {
                CommandArguments::Any => command.clone(),
                CommandArguments::Begin(words) => format!("{command} {}", words.join(" ")),
                CommandArguments::Pattern(source) => format!("{command} with /{}/", excerpt(source, 80)),
            },
        }
    }
}

/// Gives the schema of a pattern of calls as a mapping, to which a check may add keys.
pub fn call_schema() -> MappingSchema {
    MappingSchema::closed()
        .optional("server", "The mocked MCP server.", json_schema::nonempty_text())
        .optional("tool", "The tool of this server.", json_schema::nonempty_text())
        .optional("input", "What the arguments of the tool must be.", conditions_schema())
        .optional(
            "input_match",
            "A pattern that must be found in the arguments, written as JSON.",
            json_schema::text(),
        )
        .optional("command", "The mocked command.", json_schema::nonempty_text())
        .optional("args", "The arguments of the command.", arguments_schema())
        .with_keyword("oneOf", json!([{"required": ["server", "tool"]}, {"required": ["command"]}]))
}

/// Gives the calls of mocks, or the finding that nothing was mocked.
pub fn mock_calls(observation: &Observation) -> Result<&[MockCall], CheckFinding> {
    let missing = || NotScoredReason::CheckFailed("nothing was mocked in this run".to_owned());
    observation.mock_calls.as_deref().ok_or_else(|| CheckFinding::not_scored(missing()))
}

/// Lists the calls for a message, at most a few.
pub fn list_calls(calls: &[MockCall]) -> String {
    const MOST_SHOWN: usize = 5;
    if calls.is_empty() {
        return "no mock was called".to_owned();
    }
    let shown: Vec<String> =
        calls.iter().take(MOST_SHOWN).map(|call| excerpt(&call.describe(), 80)).collect();
    let more = calls.len().saturating_sub(MOST_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("called: {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_on_arguments() {
        let input = json!({"name": "nightly", "count": 3, "tags": ["a", "b"], "filter": {"state": "open"}, "none": null});
        for (path, expected, holds) in [
            ("name", json!("string"), true),
            ("name", json!("integer"), false),
            ("name", json!("nightly"), true),
            ("name", json!("/^night/"), true),
            ("name", json!("/^day/"), false),
            ("name", json!(["day", "/ly$/"]), true),
            ("count", json!(3), true),
            ("count", json!(3.0), true),
            ("count", json!("3"), false),
            ("count", json!("integer"), true),
            ("tags", json!("array"), true),
            ("tags.1", json!("b"), true),
            ("tags.2", json!("any"), false),
            ("filter.state", json!("open"), true),
            ("filter", json!({"state": "open"}), true),
            ("none", json!(null), true),
            ("missing", json!("null"), true),
            ("missing", json!("string"), false),
            ("missing", json!(false), false),
        ] {
            let condition = InputCondition { path: path.to_owned(), expected: expected.clone() };
            assert_eq!(unmet_condition(&[condition], &input).is_none(), holds, "{path} {expected}");
        }
    }

    #[test]
    fn arguments_of_commands() {
        let called = ["group", "list", "--output", "json"].map(str::to_owned);
        for (args, fits) in [
            (CommandArguments::Any, true),
            (CommandArguments::Begin(vec!["group".to_owned()]), true),
            (CommandArguments::Begin(vec!["list".to_owned()]), false),
            (CommandArguments::Pattern("^group list".to_owned()), true),
            (CommandArguments::Pattern("delete".to_owned()), false),
        ] {
            assert_eq!(arguments_fit(&args, &called), fits, "{args:?}");
        }
    }
}
