//! Answers of mocks: what a mocked MCP server or a mocked command does with a call.
//!
//! In: a mock and a call. Out: the answer and what became of the call. Never: reads a file, starts a process.

use serde_json::{Value, json};

use crate::checks::{argument_at, arguments_fit, unmet_condition};
use practicum_core::model::{
    CommandMock, InlineFile, McpAnswer, McpReply, McpServerMock, MockCall, MockOutcome, MockedTool,
    ServerRole,
};

/// The answer of a mocked tool of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    /// The text that the agent gets.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// What became of the call.
    pub outcome: MockOutcome,
}

/// How a call of a tool is answered.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolAnswer<'m> {
    /// With what the eval file says.
    Reply(ToolReply),
    /// By a model that plays this server.
    Model(&'m ServerRole),
}

/// The answer of a mocked command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandReply {
    /// The text on standard output.
    pub stdout: String,
    /// The text on standard error.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
    /// The files that the command writes.
    pub files: Vec<InlineFile>,
    /// What became of the call.
    pub outcome: MockOutcome,
}

/// The exit code of a command that no rule of its mock answers.
pub const UNMOCKED_EXIT_CODE: u8 = 97;

/// Answers a call of a tool after so many `earlier` calls of it with the same arguments. The message of a call that is not
/// answered does not say what the rules are.
pub fn answer_tool_call<'m>(
    server: &'m McpServerMock,
    tool: &str,
    input: &Value,
    earlier: usize,
) -> ToolAnswer<'m> {
    let failed =
        |text: String, outcome: MockOutcome| ToolAnswer::Reply(ToolReply { text, is_error: true, outcome });
    let unmocked = || {
        let text = format!("unmocked call: {} has no answer for this call of {tool}", server.name);
        failed(text, MockOutcome::Unmocked)
    };
    let Some(mock) = server.tools.iter().find(|known| known.name == tool) else { return unmocked() };
    if let Some(why) = unmet_condition(&mock.expect, input) {
        return ToolAnswer::Reply(ToolReply::unexpected(tool, why));
    }
    match choose_answer(&mock.answers, input, earlier).map(|answer| (&answer.reply, answer.input.is_some())) {
        // What a real server said is no template.
        Some((McpReply::Result(text), true)) => ToolAnswer::Reply(ToolReply {
            text: text.clone(),
            is_error: false,
            outcome: MockOutcome::Answered,
        }),
        Some((McpReply::Error(text), true)) => failed(text.clone(), MockOutcome::Answered),
        Some((McpReply::Result(text), false)) => {
            let text = fill_template(text, &json!({"input": input}));
            ToolAnswer::Reply(ToolReply { text, is_error: false, outcome: MockOutcome::Answered })
        }
        Some((McpReply::Error(text), false)) => {
            failed(fill_template(text, &json!({"input": input})), MockOutcome::Answered)
        }
        Some((McpReply::Model(role), _)) => ToolAnswer::Model(role),
        None => unmocked(),
    }
}

/// Chooses the first answer that fits. Answers with the same exact arguments are for one call after the other.
fn choose_answer<'m>(answers: &'m [McpAnswer], input: &Value, earlier: usize) -> Option<&'m McpAnswer> {
    let fits = |answer: &&McpAnswer| {
        let is_meant = answer.input.as_ref().is_none_or(|meant| meant == input);
        is_meant && unmet_condition(&answer.when, input).is_none()
    };
    let first = answers.iter().find(fits)?;
    if first.input.is_none() {
        return Some(first);
    }
    let in_order: Vec<&McpAnswer> =
        answers.iter().filter(fits).filter(|answer| answer.input.is_some()).collect();
    in_order.get(earlier).or(in_order.last()).copied()
}

/// Answers a call of a command.
pub fn answer_command(mock: &CommandMock, args: &[String]) -> CommandReply {
    let Some(rule) = mock.rules.iter().find(|rule| arguments_fit(&rule.args, args)) else {
        return CommandReply {
            stdout: String::new(),
            stderr: format!("unmocked call: {} has no answer for these arguments\n", mock.name),
            exit_code: UNMOCKED_EXIT_CODE,
            files: Vec::new(),
            outcome: MockOutcome::Unmocked,
        };
    };
    let mut values = json!({"args": args});
    values["args_text"] = json!(args.join(" "));
    let fill = |text: &str| fill_template(&text.replace("{{args}}", "{{args_text}}"), &values);
    let files = rule.files.iter();
    CommandReply {
        stdout: fill(&rule.stdout),
        stderr: fill(&rule.stderr),
        exit_code: rule.exit_code,
        files: files
            .map(|file| InlineFile { path: file.path.clone(), content: fill(&file.content) })
            .collect(),
        outcome: MockOutcome::Answered,
    }
}

impl ToolReply {
    /// Makes the answer to a call that the agent should not have made, for this reason.
    pub fn unexpected(tool: &str, why: String) -> Self {
        let text = format!("{tool} was called with arguments that it does not accept");
        Self { text, is_error: true, outcome: MockOutcome::Unexpected(why) }
    }

    /// Gives the record of the call.
    pub fn record(&self, server: &str, tool: &str, input: Value) -> MockCall {
        let of = MockedTool::Mcp { server: server.to_owned(), tool: tool.to_owned(), input };
        MockCall { of, outcome: self.outcome.clone(), answer: self.text.clone() }
    }
}

impl CommandReply {
    /// Gives the record of the call.
    pub fn record(&self, command: &str, args: Vec<String>) -> MockCall {
        let of = MockedTool::Command { command: command.to_owned(), args };
        let answer = format!("{}{}", self.stdout, self.stderr);
        MockCall { of, outcome: self.outcome.clone(), answer }
    }
}

/// Replaces `{{path}}` in a text by the value at this path; by nothing if there is none. In a text that is JSON, the
/// values become part of its strings, so that it stays JSON whatever the values are.
fn fill_template(text: &str, values: &Value) -> String {
    if !text.contains("{{") {
        return text.to_owned();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut document) => {
            fill_strings(&mut document, values);
            document.to_string()
        }
        Err(_) => fill_text(text, values),
    }
}

fn fill_strings(document: &mut Value, values: &Value) {
    match document {
        Value::String(text) => *text = fill_text(text, values),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_strings(item, values)),
        Value::Object(map) => map.values_mut().for_each(|item| fill_strings(item, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn fill_text(text: &str, values: &Value) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let after = &rest[open + 2..];
        let Some(close) = after.find("}}") else { break };
        let path = after[..close].trim();
        let root = path.split('.').next().unwrap_or_default();
        filled.push_str(&rest[..open]);
        // Braces that name no value of the call stay as they are.
        match values.get(root).is_some() {
            true => filled.push_str(&argument_at(values, path).map(plain_text).unwrap_or_default()),
            false => filled.push_str(&rest[open..open + 2 + close + 2]),
        }
        rest = &after[close + 2..];
    }
    filled + rest
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use practicum_core::model::{
        CommandArguments, CommandRule, InputCondition, McpAnswer, McpToolMock, RelPath,
    };

    fn condition(path: &str, expected: Value) -> Vec<InputCondition> {
        vec![InputCondition { path: path.to_owned(), expected }]
    }

    fn shop() -> McpServerMock {
        let answer = |when, reply| McpAnswer { when, input: None, reply };
        let result = |text: &str| McpReply::Result(text.to_owned());
        let tool = |name: &str, expect, answers| McpToolMock {
            name: name.to_owned(),
            description: None,
            input_schema: None,
            expect,
            answers,
        };
        let buy = vec![
            answer(condition("item", json!("plum")), McpReply::Error("no {{input.item}} left".to_owned())),
            answer(
                condition("item", json!("string")),
                result("{\"bought\": \"{{input.item}}\", \"of\": \"{{input.shop.name}}\"}"),
            ),
        ];
        let say = vec![answer(Vec::new(), result("You said {{input.text}} {{other}}."))];
        McpServerMock {
            name: "shop".to_owned(),
            tools: vec![tool("buy", Vec::new(), buy), tool("say", condition("text", json!("string")), say)],
            recording: None,
        }
    }

    #[test]
    fn recorded_answers_come_in_their_order_and_only_for_their_arguments() {
        let answer = |input: Value, text: &str| McpAnswer {
            when: Vec::new(),
            input: Some(input),
            reply: McpReply::Result(text.to_owned()),
        };
        let mut shop = shop();
        shop.tools[0].answers = vec![
            answer(json!({}), "{{none}}"),
            answer(json!({"item": "/plum/"}), "a plum"),
            answer(json!({}), "one"),
        ];
        for (input, earlier, expected) in [
            (json!({}), 0, "{{none}}"),
            (json!({}), 1, "one"),
            (json!({}), 7, "one"),
            (json!({"item": "/plum/"}), 3, "a plum"),
            (json!({"item": "plum"}), 0, "unmocked call: shop has no answer for this call of buy"),
            (
                json!({"item": "/plum/", "count": 1}),
                0,
                "unmocked call: shop has no answer for this call of buy",
            ),
        ] {
            let ToolAnswer::Reply(reply) = answer_tool_call(&shop, "buy", &input, earlier) else {
                panic!("no reply")
            };
            assert_eq!(reply.text, expected, "{input} {earlier}");
        }
    }

    #[test]
    fn tools_answer_by_their_rules() {
        let unmocked = "unmocked call: shop has no answer for this call of ";
        for (tool, input, text, is_error, outcome) in [
            ("buy", json!({"item": "pear"}), r#"{"bought":"pear","of":""}"#.to_owned(), false, "answered"),
            // A value cannot break out of a string of the answer.
            (
                "buy",
                json!({"item": "a\", \"price\": \"0", "shop": {"name": 3}}),
                r#"{"bought":"a\", \"price\": \"0","of":"3"}"#.to_owned(),
                false,
                "answered",
            ),
            ("buy", json!({"item": "plum"}), "no plum left".to_owned(), true, "answered"),
            ("buy", json!({"item": 5}), format!("{unmocked}buy"), true, "unmocked"),
            ("pay", json!({}), format!("{unmocked}pay"), true, "unmocked"),
            ("say", json!({"text": "a"}), "You said a {{other}}.".to_owned(), false, "answered"),
            (
                "say",
                json!({}),
                "say was called with arguments that it does not accept".to_owned(),
                true,
                "unexpected",
            ),
        ] {
            let shop = shop();
            let ToolAnswer::Reply(reply) = answer_tool_call(&shop, tool, &input, 0) else {
                panic!("no reply")
            };
            let name = match reply.outcome {
                MockOutcome::Answered => "answered",
                MockOutcome::Unmocked => "unmocked",
                MockOutcome::Unexpected(_) => "unexpected",
                MockOutcome::ModelFailed(_) => "model failed",
            };
            assert_eq!((reply.text, reply.is_error, name), (text, is_error, outcome), "{tool} {input}");
        }
    }

    #[test]
    fn commands_answer_by_their_rules() {
        let rule = |args, stdout: &str, exit_code| CommandRule {
            args,
            stdout: stdout.to_owned(),
            stderr: String::new(),
            exit_code,
            files: vec![InlineFile {
                path: RelPath::new("out.txt").expect("a path"),
                content: "{{args.0}}".to_owned(),
            }],
        };
        let az = CommandMock {
            name: "az".to_owned(),
            rules: vec![
                rule(CommandArguments::Begin(vec!["group".to_owned()]), "{{args}} of {{args.1}}", 0),
                rule(CommandArguments::Pattern("^vm delete".to_owned()), "", 3),
            ],
        };
        for (args, stdout, code, unmocked) in [
            (&["group", "list"][..], "group list of list", 0, false),
            (&["group"], "group of ", 0, false),
            (&["vm", "delete"], "", 3, false),
            (&["vm", "list"], "", UNMOCKED_EXIT_CODE, true),
            (&[], "", UNMOCKED_EXIT_CODE, true),
        ] {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            let reply = answer_command(&az, &args);
            assert_eq!((reply.stdout.as_str(), reply.exit_code), (stdout, code), "{args:?}");
            assert_eq!(reply.outcome == MockOutcome::Unmocked, unmocked, "{args:?}");
            assert_eq!(
                reply.files.first().map(|file| file.content.clone()),
                (!unmocked).then(|| args[0].clone())
            );
        }
    }
}
