//! Reads and writes the key `mocks`: servers and command-line tools that answer in place of the real ones.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::decode::DocumentSource;
use super::{inline_files, recording, server_role};
use crate::checks::{
    MockInputsRule, arguments_schema, arguments_value, conditions_schema, conditions_value, decode_arguments,
    decode_conditions,
};
use practicum_core::model::{
    Check, CheckKind, CheckWeight, CommandArguments, CommandMock, CommandRule, Diagnostics, InputCondition,
    McpAnswer, McpReply, McpServerMock, McpToolMock, Mocks, PassRule, Rule, ServerRole, Span, is_mock_name,
};
use practicum_core::tree::{
    MapEntry, ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    report_wrong_type,
};

/// The id of the check that a case with expectations on the arguments of mocks gets by itself.
const INPUTS_ID: &str = "mock-inputs";

/// Reads the mocks of a suite or a case. Paths in them begin at a folder.
pub fn decode_mocks(
    node: Option<&TreeNode>,
    folder: &Path,
    kind: DocumentSource,
    diagnostics: &mut Diagnostics,
) -> Mocks {
    let object = node.and_then(|node| ObjectReader::new(node, "mocks", diagnostics));
    let Some(mut object) = object else { return Mocks::default() };
    let servers = named_entries(object.get_non_null("servers"), "servers", diagnostics);
    let commands = named_entries(object.get_non_null("commands"), "commands", diagnostics);
    object.reject_unknown_keys("mocks", diagnostics);
    Mocks {
        servers: servers.iter().filter_map(|entry| decode_server(entry, folder, kind, diagnostics)).collect(),
        commands: commands.iter().filter_map(|entry| decode_command(entry, diagnostics)).collect(),
    }
}

/// Gives the entries of a mapping whose keys are names of mocks.
pub fn named_entries<'n>(
    node: Option<&'n TreeNode>,
    key: &str,
    diagnostics: &mut Diagnostics,
) -> Vec<&'n MapEntry> {
    let Some(node) = node else { return Vec::new() };
    let Some(entries) = node.as_map() else {
        report_wrong_type(node, key, "a mapping by name", diagnostics);
        return Vec::new();
    };
    // Only names of programs have dots; agents refuse them in names of servers and tools.
    let is_name = |name: &str| is_mock_name(name) && (key == "commands" || !name.contains('.'));
    let (named, others): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| is_name(&entry.key));
    for entry in others {
        let message = format!("{:?} cannot be the name of a mock", entry.key);
        let help = "a name has letters, digits, \"-\" and \"_\", that of a command also \".\", and begins with a letter or a digit";
        diagnostics.error_with_help("invalid-name", entry.value.span, message, help);
    }
    named
}

fn decode_server(
    entry: &MapEntry,
    folder: &Path,
    kind: DocumentSource,
    diagnostics: &mut Diagnostics,
) -> Option<McpServerMock> {
    let mut object = ObjectReader::new(&entry.value, "a mocked server", diagnostics)?;
    let recording = recording::decode(&mut object, folder, diagnostics);
    let tools = object.get_non_null("tools");
    if tools.is_none() && recording.is_none() {
        object.report_missing("tools", diagnostics);
    }
    let model = object.get_non_null("model").and_then(|node| server_role::decode(node, diagnostics));
    object.reject_unknown_keys("a mocked server", diagnostics);
    let tools = named_entries(tools, "tools", diagnostics);
    let tools: Vec<McpToolMock> =
        tools.into_iter().filter_map(|entry| decode_tool(entry, model.as_ref(), diagnostics)).collect();
    let name = entry.key.clone();
    let Some(recording) = recording else { return Some(McpServerMock { name, tools, recording: None }) };
    // The record of a run has the tools of the file as they were.
    let recorded = match kind {
        DocumentSource::EvalFile => recording::read_file(&recording, entry.value.span, diagnostics),
        DocumentSource::RunRecord => Vec::new(),
    };
    let is_other = |known: &McpToolMock| tools.iter().all(|tool| tool.name != known.name);
    let recorded: Vec<McpToolMock> = recorded.into_iter().filter(is_other).collect();
    Some(McpServerMock {
        name,
        tools: tools.into_iter().chain(recorded).collect(),
        recording: Some(recording),
    })
}

/// Reads a tool: its result alone, or a mapping. Without an answer of its own, the model of its server answers.
pub fn decode_tool(
    entry: &MapEntry,
    model: Option<&ServerRole>,
    diagnostics: &mut Diagnostics,
) -> Option<McpToolMock> {
    let mut tool = McpToolMock {
        name: entry.key.clone(),
        description: None,
        input_schema: None,
        expect: Vec::new(),
        answers: Vec::new(),
    };
    if let Some(text) = entry.value.as_text() {
        let reply = McpReply::Result(text.to_owned());
        tool.answers.push(McpAnswer::always(reply));
        return Some(tool);
    }
    if let (true, Some(role)) = (entry.value.is_null(), model) {
        tool.answers.push(McpAnswer::always(McpReply::Model(role.clone())));
        return Some(tool);
    }
    let mut object = ObjectReader::new(&entry.value, "a mocked tool", diagnostics)?;
    tool.description = object.text("description", diagnostics).map(str::to_owned);
    tool.input_schema = object.get_non_null("input_schema").and_then(|node| {
        let schema = node.to_value();
        if !schema.is_object() {
            report_wrong_type(node, "input_schema", "a mapping", diagnostics);
        }
        Some(schema).filter(Value::is_object)
    });
    tool.expect = decode_optional_conditions(&mut object, "expect", diagnostics)?;
    let has_reply = REPLY_KEYS.iter().any(|key| object.peek(key).is_some());
    let alone = decode_reply(&mut object, diagnostics);
    let answers = object.list("answers", diagnostics);
    object.reject_unknown_keys("a mocked tool", diagnostics);
    match (alone, answers) {
        (Some(reply), None) => tool.answers.push(McpAnswer::always(reply)),
        // A tool without answers is listed, and every call of it is unmocked.
        (None, Some(answers)) if !has_reply => {
            tool.answers = answers.iter().filter_map(|node| decode_answer(node, diagnostics)).collect();
        }
        (None, None) if model.is_some() && !has_reply => {
            let reply = model.cloned().map(McpReply::Model)?;
            tool.answers.push(McpAnswer::always(reply));
        }
        (None, _) | (Some(_), Some(_)) => {
            let message =
                "a mocked tool has a \"result\", an \"error\", a \"model\" or a list of \"answers\"";
            diagnostics.error("missing-key", entry.value.span, message);
            return None;
        }
    }
    Some(tool)
}

fn decode_optional_conditions(
    object: &mut ObjectReader<'_>,
    key: &'static str,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<InputCondition>> {
    match object.get_non_null(key) {
        Some(node) => decode_conditions(key, node, diagnostics),
        None => Some(Vec::new()),
    }
}

fn decode_answer(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<McpAnswer> {
    let mut object = ObjectReader::new(node, "an answer", diagnostics)?;
    let when = decode_optional_conditions(&mut object, "when", diagnostics);
    let input = object.get_non_null("input").map(TreeNode::to_value);
    let reply = decode_reply(&mut object, diagnostics);
    object.reject_unknown_keys("an answer", diagnostics);
    if reply.is_none() {
        let message = "an answer has a \"result\", an \"error\" or a \"model\"";
        diagnostics.error("missing-key", node.span, message);
    }
    Some(McpAnswer { when: when?, input, reply: reply? })
}

/// The keys that say what an answer is.
const REPLY_KEYS: [&str; 3] = ["result", "error", "model"];

/// Reads `result`, which may be any JSON value, `error`, or `model`. `None` if there is none of them, or more than one.
fn decode_reply(object: &mut ObjectReader<'_>, diagnostics: &mut Diagnostics) -> Option<McpReply> {
    let result = object.get_non_null("result").map(|node| match node.as_text() {
        Some(text) => text.to_owned(),
        None => node.to_value().to_string(),
    });
    let error = object.text("error", diagnostics).map(str::to_owned);
    let model = object.get_non_null("model").and_then(|node| server_role::decode(node, diagnostics));
    let found = [result.map(McpReply::Result), error.map(McpReply::Error), model.map(McpReply::Model)];
    let mut replies = found.into_iter().flatten();
    let reply = replies.next();
    if replies.next().is_some() {
        let message = "an answer is only one of \"result\", \"error\" and \"model\"";
        diagnostics.error("contradiction", object.span, message);
        return None;
    }
    reply
}

fn decode_command(entry: &MapEntry, diagnostics: &mut Diagnostics) -> Option<CommandMock> {
    let Some(rules) = entry.value.as_list() else {
        report_wrong_type(&entry.value, &entry.key, "a list of rules", diagnostics);
        return None;
    };
    let rules = rules.iter().filter_map(|node| decode_rule(node, diagnostics)).collect();
    Some(CommandMock { name: entry.key.clone(), rules })
}

fn decode_rule(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<CommandRule> {
    let mut object = ObjectReader::new(node, "a rule of a command", diagnostics)?;
    let args = match object.get_non_null("args") {
        Some(node) => decode_arguments(node, diagnostics),
        None => Some(CommandArguments::Any),
    };
    let mut text = |key| object.text(key, diagnostics).unwrap_or_default().to_owned();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    let exit_code = object.int("exit_code", 0, u8::MAX.into(), diagnostics).unwrap_or(0);
    let files = object.list("files", diagnostics).unwrap_or_default();
    object.reject_unknown_keys("a rule of a command", diagnostics);
    let files = inline_files::decode(files, diagnostics);
    let exit_code = u8::try_from(exit_code).unwrap_or(u8::MAX);
    Some(CommandRule { args: args?, stdout, stderr, exit_code, files })
}

/// Adds the check that no call had arguments which its mock does not expect, unless the case has it or its mocks
/// expect nothing.
pub fn add_inputs_check(mocks: &Mocks, rule: PassRule, checks: &mut Vec<Check>) {
    let inputs: Arc<dyn Rule> = Arc::new(MockInputsRule);
    let is_inputs =
        |check: &Check| matches!(&check.kind, CheckKind::Rule(rule) if rule.key() == inputs.key());
    if !mocks.have_expectations() || checks.iter().any(is_inputs) {
        return;
    }
    // It can fail a case that passes by its score, and adds nothing to the score.
    let weight = match rule {
        PassRule::Score(_) => CheckWeight::ZERO,
        PassRule::EveryRequiredCheck
        | PassRule::ActivationRate(_)
        | PassRule::JudgedThresholds { .. }
        | PassRule::CountOnly => CheckWeight::ONE,
    };
    checks.push(Check { weight, ..Check::by_rule(INPUTS_ID, inputs) });
}

/// Reports checks about mocks that the case does not have. They could never find a call.
pub fn report_unknown_mocks(checks: &[Check], mocks: &Mocks, at: Span, diagnostics: &mut Diagnostics) {
    for check in checks {
        let CheckKind::Rule(rule) = &check.kind else { continue };
        if !rule.key().starts_with("mock_") {
            continue;
        }
        if mocks.is_empty() {
            let message = format!("{} is about mocks, and this case has none", check.id);
            diagnostics.error("unknown-mock", at, message);
            continue;
        }
        let value = rule.value();
        let calls = value.as_array().map_or_else(|| vec![&value], |calls| calls.iter().collect());
        for call in calls {
            if let Some(what) = missing_mock(call, mocks) {
                let message = format!("{}: this case does not mock {what}", check.id);
                diagnostics.error("unknown-mock", at, message);
            }
        }
    }
}

/// Gives what a check names and the mocks do not have.
fn missing_mock(call: &Value, mocks: &Mocks) -> Option<String> {
    let text = |key: &str| call.get(key).and_then(Value::as_str);
    if let Some(command) = text("command") {
        return mocks.command(command).is_none().then(|| format!("the command {command}"));
    }
    let (server, tool) = (text("server")?, text("tool")?);
    // Nobody knows the tools of a server that is still to be recorded.
    let has_tool = |known: &McpServerMock| known.tools.iter().any(|known| known.name == tool);
    let is_unrecorded = |known: &McpServerMock| known.tools.is_empty() && known.recording.is_some();
    let known = mocks.server(server).is_some_and(|known| has_tool(known) || is_unrecorded(known));
    (!known).then(|| format!("the tool {tool} of a server {server}"))
}

/// Writes mocks as they are read, with paths from a folder; `None` if there are none.
pub fn encode_mocks(mocks: &Mocks, folder: &Path) -> Option<Value> {
    let Mocks { servers, commands } = mocks;
    let mut map = Map::new();
    if !servers.is_empty() {
        let servers = servers.iter().map(|McpServerMock { name, tools, recording }| {
            let tools: Map<String, Value> = tools.iter().map(encode_tool).collect();
            let mut server = server_role::share(json!({"tools": tools}));
            if let (Some(recording), Some(server)) = (recording, server.as_object_mut()) {
                server.extend(recording::encode(recording, folder));
            }
            (name.clone(), server)
        });
        map.insert("servers".to_owned(), Value::Object(servers.collect()));
    }
    if !commands.is_empty() {
        let commands = commands.iter().map(|CommandMock { name, rules }| {
            (name.clone(), rules.iter().map(encode_rule).collect::<Value>())
        });
        map.insert("commands".to_owned(), Value::Object(commands.collect()));
    }
    (!map.is_empty()).then_some(Value::Object(map))
}

pub fn encode_tool(tool: &McpToolMock) -> (String, Value) {
    let McpToolMock { name, description, input_schema, expect, answers } = tool;
    let mut map = Map::new();
    map.extend(description.as_ref().map(|text| ("description".to_owned(), json!(text))));
    map.extend(input_schema.as_ref().map(|schema| ("input_schema".to_owned(), schema.clone())));
    if !expect.is_empty() {
        map.insert("expect".to_owned(), conditions_value(expect));
    }
    match answers.as_slice() {
        [McpAnswer { when, input: None, reply }] if when.is_empty() => {
            let (key, value) = encode_reply(reply);
            map.insert(key, value);
        }
        several => {
            map.insert("answers".to_owned(), several.iter().map(encode_answer).collect());
        }
    }
    (name.clone(), Value::Object(map))
}

fn encode_answer(McpAnswer { when, input, reply }: &McpAnswer) -> Value {
    let mut map = Map::new();
    if !when.is_empty() {
        map.insert("when".to_owned(), conditions_value(when));
    }
    map.extend(input.as_ref().map(|input| ("input".to_owned(), input.clone())));
    map.extend([encode_reply(reply)]);
    Value::Object(map)
}

fn encode_reply(reply: &McpReply) -> (String, Value) {
    match reply {
        McpReply::Result(text) => ("result".to_owned(), json!(text)),
        McpReply::Error(text) => ("error".to_owned(), json!(text)),
        McpReply::Model(role) => ("model".to_owned(), server_role::encode(role)),
    }
}

fn encode_rule(rule: &CommandRule) -> Value {
    let CommandRule { args, stdout, stderr, exit_code, files } = rule;
    let mut map = Map::new();
    map.extend(arguments_value(args).map(|args| ("args".to_owned(), args)));
    for (key, text) in [("stdout", stdout), ("stderr", stderr)] {
        if !text.is_empty() {
            map.insert(key.to_owned(), json!(text));
        }
    }
    if *exit_code != 0 {
        map.insert("exit_code".to_owned(), json!(exit_code));
    }
    if !files.is_empty() {
        let files = files.iter().map(|file| json!({"to": file.path.as_str(), "content": file.content}));
        map.insert("files".to_owned(), files.collect());
    }
    Value::Object(map)
}

/// Gives the schema of `mocks`.
pub fn schema() -> MappingSchema {
    let by_name = |shape: Value| json!({"type": "object", "additionalProperties": shape});
    let result = || {
        let doc =
            "The result of the call. {{input.name}} stands for an argument; what is no text becomes JSON.";
        json_schema::with_description(doc, json!({}))
    };
    let error = || json_schema::with_description("The message of a call that fails.", json_schema::text());
    let answer = MappingSchema::closed()
        .optional("when", "The arguments for which this is the answer.", conditions_schema())
        .optional("input", "The arguments for which this is the answer, exactly.", json!({"type": "object"}))
        .optional("result", "The result of the call.", result())
        .optional("error", "The message of a call that fails.", error())
        .optional("model", server_role::DOC, server_role::schema())
        .with_keyword("oneOf", REPLY_KEYS.iter().map(|key| json!({"required": [key]})).collect());
    let tool = MappingSchema::closed()
        .optional("description", "What the agent is told about the tool.", json_schema::text())
        .optional("input_schema", "The JSON Schema of the arguments.", json!({"type": "object"}))
        .optional("expect", "What the arguments of every call must be.", conditions_schema())
        .optional("result", "The result of every call.", result())
        .optional("error", "The message of a call that fails.", error())
        .optional("model", server_role::DOC, server_role::schema())
        .optional("answers", "Answers, in order: the first that fits is given.", json_schema::list(answer));
    let tools = by_name(json_schema::any_of([json_schema::text(), json!({"type": "null"}), tool.into()]));
    let server = MappingSchema::closed()
        .optional("tools", "The tools of the server, by name.", tools)
        .optional("model", "A model that answers for the tools without an answer.", server_role::schema());
    let server = recording::add_keys(server)
        .with_keyword("anyOf", json!([{"required": ["tools"]}, {"required": [recording::FILE_KEY]}]));
    let file = MappingSchema::closed()
        .required("to", "The path of the file, from the folder of the call.", json_schema::nonempty_text())
        .required("content", "The content of the file.", json_schema::text());
    let rule = MappingSchema::closed()
        .optional("args", "The arguments that the rule is for; without them, any.", arguments_schema())
        .optional("stdout", "The text on standard output.", json_schema::text())
        .optional("stderr", "The text on standard error.", json_schema::text())
        .optional(
            "exit_code",
            "The exit code.",
            json_schema::with_default(json_schema::integer_between(0, u8::MAX.into()), 0),
        )
        .optional("files", "Files that the command writes.", json_schema::list(file));
    MappingSchema::closed().optional("servers", "MCP servers, by name.", by_name(server.into())).optional(
        "commands",
        "Command-line tools, by name.",
        by_name(json_schema::list(rule)),
    )
}
