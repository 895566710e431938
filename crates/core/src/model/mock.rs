//! Mocks: MCP servers and command-line tools that answer an agent in place of the real ones, and the calls they got.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::InlineFile;

/// The mocks of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mocks {
    /// The MCP servers. No two have the same name.
    pub servers: Vec<McpServerMock>,
    /// The command-line tools. No two have the same name.
    pub commands: Vec<CommandMock>,
}

/// An MCP server that answers with what the eval file says.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServerMock {
    /// The name under which agents get the server.
    pub name: String,
    /// The tools of the server. Other tools do not exist for the agent.
    pub tools: Vec<McpToolMock>,
    /// Where answers of the real server are recorded; `None` if nobody records any. The tools in the file are among
    /// `tools`.
    pub recording: Option<ServerRecording>,
}

/// The file with recorded answers of a real MCP server, and how the server is started to record them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRecording {
    /// The file.
    pub file: PathBuf,
    /// The folder in which the real server starts: that of the eval file.
    pub folder: PathBuf,
    /// The program of the real server and its arguments; empty if the recording is only replayed.
    pub command: Vec<String>,
    /// The names of the user's variables that the real server gets.
    pub pass_env: Vec<String>,
}

/// A tool of a mocked MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpToolMock {
    /// The name of the tool.
    pub name: String,
    /// The description that the agent is shown.
    pub description: Option<String>,
    /// The JSON Schema of the arguments; without it, any arguments are accepted.
    pub input_schema: Option<Value>,
    /// What must be true of the arguments of every call. A call for which it is not fails the trial.
    pub expect: Vec<InputCondition>,
    /// The answers, in order: the first one whose conditions hold is given.
    pub answers: Vec<McpAnswer>,
}

/// An answer of a mocked tool.
#[derive(Debug, Clone, PartialEq)]
pub struct McpAnswer {
    /// The conditions on the arguments. Without conditions, the answer fits every call.
    pub when: Vec<InputCondition>,
    /// The arguments for which this is the answer, exactly. Of several answers with the same ones, the first call gets
    /// the first, and so on; the last is for all calls that follow. `None` if only the conditions decide.
    pub input: Option<Value>,
    /// The answer itself.
    pub reply: McpReply,
}

impl McpAnswer {
    /// Makes an answer that fits every call.
    pub fn always(reply: McpReply) -> Self {
        Self { when: Vec::new(), input: None, reply }
    }
}

/// The content of an answer. `{{input.path}}` in it stands for an argument of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpReply {
    /// The result of a successful call.
    Result(String),
    /// The message of a call that failed.
    Error(String),
    /// A model answers in the place of the server.
    Model(ServerRole),
}

/// The server that a model plays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRole {
    /// What the server is and how it answers.
    pub role: String,
    /// What the server knows.
    pub facts: Vec<String>,
    /// When a call is a mistake of the agent. The model decides whether that is so. `None` if no call is.
    pub fail_when: Option<String>,
}

/// A condition on one argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct InputCondition {
    /// The path of the argument, with dots: `filter.name`.
    pub path: String,
    /// What the argument must be: the name of a type, a `/pattern/`, a list of alternatives, or the value itself.
    pub expected: Value,
}

/// A command-line tool that answers with what the eval file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandMock {
    /// The name of the program, without folders.
    pub name: String,
    /// The rules, in order: the first one that fits the arguments is used.
    pub rules: Vec<CommandRule>,
}

/// What a mocked command does if its arguments fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRule {
    /// The arguments that the rule is for.
    pub args: CommandArguments,
    /// The text on standard output. `{{args}}` and `{{args.0}}` stand for the arguments of the call.
    pub stdout: String,
    /// The text on standard error.
    pub stderr: String,
    /// The exit code.
    pub exit_code: u8,
    /// Files that the command writes, from the folder in which it is called.
    pub files: Vec<InlineFile>,
}

/// The arguments that a rule or a check is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandArguments {
    /// Any arguments.
    Any,
    /// The call begins with these arguments.
    Begin(Vec<String>),
    /// A pattern that is found in the arguments, joined by spaces.
    Pattern(String),
}

/// The longest name of a server, a tool or a command. No agent accepts longer names of tools.
const LONGEST_MOCK_NAME: usize = 64;

impl Mocks {
    /// Says whether nothing is mocked.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.commands.is_empty()
    }

    /// Says whether some tool expects something of its arguments, or a model may refuse calls.
    pub fn have_expectations(&self) -> bool {
        self.servers.iter().flat_map(|server| &server.tools).any(|tool| !tool.expect.is_empty())
            || self.model_roles().any(|role| role.fail_when.is_some())
    }

    /// Says whether a model is asked for some answer.
    pub fn need_model(&self) -> bool {
        self.model_roles().next().is_some()
    }

    /// Gives the first server whose answers are still to be recorded.
    pub fn unrecorded_server(&self) -> Option<&McpServerMock> {
        self.servers.iter().find(|server| server.tools.is_empty() && server.recording.is_some())
    }

    fn model_roles(&self) -> impl Iterator<Item = &ServerRole> {
        let tools = self.servers.iter().flat_map(|server| &server.tools);
        tools.flat_map(|tool| &tool.answers).filter_map(|answer| match &answer.reply {
            McpReply::Model(role) => Some(role),
            McpReply::Result(_) | McpReply::Error(_) => None,
        })
    }

    /// Gives the mocked server of this name.
    pub fn server(&self, name: &str) -> Option<&McpServerMock> {
        self.servers.iter().find(|server| server.name == name)
    }

    /// Gives the mocked command of this name.
    pub fn command(&self, name: &str) -> Option<&CommandMock> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Gives these mocks with the mocks of a whole suite below them: a tool that these mocks have replaces the suite's
    /// tool of that name, and the rules for a command come before the suite's rules for it.
    #[must_use]
    pub fn over(self, suite: &Mocks) -> Mocks {
        let mut merged = suite.clone();
        for server in self.servers {
            let Some(known) = merged.servers.iter_mut().find(|known| known.name == server.name) else {
                merged.servers.push(server);
                continue;
            };
            known.recording = server.recording.or(known.recording.take());
            for tool in server.tools {
                match known.tools.iter_mut().find(|known| known.name == tool.name) {
                    Some(known) => *known = tool,
                    None => known.tools.push(tool),
                }
            }
        }
        for command in self.commands {
            match merged.commands.iter_mut().find(|known| known.name == command.name) {
                Some(known) => {
                    let later = std::mem::replace(&mut known.rules, command.rules);
                    known.rules.extend(later);
                }
                None => merged.commands.push(command),
            }
        }
        merged
    }
}

/// Says whether a server, a tool or a command can have this name: it is one word of letters, digits, `-`, `_` and
/// `.`, and begins with a letter or a digit, because agents and file systems refuse other names.
pub fn is_mock_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.len() <= LONGEST_MOCK_NAME
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(is_allowed)
}

/// A call that a mock got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MockCall {
    /// The mock that was called.
    #[serde(flatten)]
    pub of: MockedTool,
    /// What the mock did with the call.
    pub outcome: MockOutcome,
    /// The answer that the agent got: the result of a tool, or the output of a command.
    pub answer: String,
}

/// A mocked tool with the arguments of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum MockedTool {
    /// A tool of an MCP server.
    Mcp {
        /// The name of the server.
        server: String,
        /// The name of the tool.
        tool: String,
        /// The arguments.
        input: Value,
    },
    /// A command-line tool.
    Command {
        /// The name of the command.
        command: String,
        /// The arguments.
        args: Vec<String>,
    },
}

/// What a mock did with a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MockOutcome {
    /// The mock has an answer for the call.
    Answered,
    /// The mock has no answer for the call. The call failed, and says so to the agent.
    Unmocked,
    /// The arguments are not what the mock expects. The text says what is wrong.
    Unexpected(String),
    /// The model that plays the server gave no answer, for this reason. The call failed.
    ModelFailed(String),
}

impl MockCall {
    /// Describes the call for a message: `az group list`, or `lastping/create_monitor {"name":"a"}`.
    pub fn describe(&self) -> String {
        match &self.of {
            MockedTool::Mcp { server, tool, input } => format!("{server}/{tool} {input}"),
            MockedTool::Command { command, args } => {
                let words: Vec<&str> = std::iter::once(command).chain(args).map(String::as_str).collect();
                words.join(" ")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, text: &str) -> McpToolMock {
        let answers = vec![McpAnswer::always(McpReply::Result(text.to_owned()))];
        McpToolMock {
            name: name.to_owned(),
            description: None,
            input_schema: None,
            expect: Vec::new(),
            answers,
        }
    }

    fn rule(stdout: &str) -> CommandRule {
        CommandRule {
            args: CommandArguments::Any,
            stdout: stdout.to_owned(),
            stderr: String::new(),
            exit_code: 0,
            files: Vec::new(),
        }
    }

    #[test]
    fn a_case_says_more_than_its_suite() {
        let server =
            |tools: Vec<McpToolMock>| vec![McpServerMock { name: "shop".to_owned(), tools, recording: None }];
        let command = |rules: Vec<CommandRule>| vec![CommandMock { name: "az".to_owned(), rules }];
        let suite = Mocks {
            servers: server(vec![tool("list", "suite"), tool("buy", "suite")]),
            commands: command(vec![rule("suite")]),
        };
        let case = Mocks {
            servers: server(vec![tool("buy", "case"), tool("pay", "case")]),
            commands: command(vec![rule("case")]),
        };
        let merged = case.over(&suite);
        assert_eq!(
            merged.servers,
            server(vec![tool("list", "suite"), tool("buy", "case"), tool("pay", "case")])
        );
        assert_eq!(merged.commands, command(vec![rule("case"), rule("suite")]));
        assert_eq!(Mocks::default().over(&suite), suite);
    }

    #[test]
    fn a_name_that_leaves_its_folder_is_refused() {
        for (name, expected) in [
            ("az", true),
            ("docker-compose", true),
            ("python3.12", true),
            ("plugin_a_b", true),
            ("", false),
            ("..", false),
            (".hidden", false),
            ("a/b", false),
            ("-rf", false),
            ("a b", false),
            ("a\nb", false),
        ] {
            assert_eq!(is_mock_name(name), expected, "{name:?}");
        }
    }
}
