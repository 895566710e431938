//! The folder `mocks` of a case or a suite: a folder for each MCP server, with a file for each of its tools.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::EvalFolder;
use super::super::reading::graders::Unsupported;
use super::super::reading::parts::{self, MarkdownPart};
use super::{CasePlugins, MOCKS_FOLDER};
use crate::checks::decode_conditions;
use practicum_core::model::{
    Diagnostics, McpAnswer, McpReply, McpServerMock, McpToolMock, Mocks, RelPath, ServerRole, is_mock_name,
};
use practicum_core::tree::ObjectReader;

/// The file that lets one model answer for several tools.
const SERVER_FILE: &str = "_server.md";
/// The file with the tools of the real server, as it lists them.
const TOOLS_FILE: &str = "_tools.json";
/// The folder with recorded answers of the real server.
const REPLAY_FOLDER: &str = ".replay";

/// The mocked servers of a case.
#[derive(Default)]
pub struct MockedServers {
    pub mocks: Mocks,
    /// Each server's name in the eval files, with its name for agents.
    names: Vec<(String, String)>,
}

impl MockedServers {
    /// Finds the mock of a tool by the name that Claude Code gives to it: `mcp__SERVER__TOOL`, or
    /// `mcp__plugin_PLUGIN_SERVER__TOOL` for a server of a plugin. Gives the names of the server and the tool.
    pub fn find_tool<'t>(&self, name: &'t str) -> Option<(&str, &'t str)> {
        let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
        let is_meant = |(own, staged): &&(String, String)| {
            let of_plugin = server.strip_prefix("plugin_").and_then(|rest| rest.strip_suffix(own.as_str()));
            server == own || server == staged || of_plugin.is_some_and(|plugin| plugin.ends_with('_'))
        };
        let (_, staged) = self.names.iter().find(is_meant)?;
        let mock = self.mocks.server(staged)?;
        mock.tools.iter().any(|known| known.name == tool).then_some((staged.as_str(), tool))
    }
}

/// Reads the mocks of a case: its own, and those of the suite around it, which lie in the folder `evals` or in folders
/// between it and the case.
pub fn read_mocks(
    folder: &EvalFolder,
    plugins: &CasePlugins,
    unsupported: &mut Unsupported,
    diagnostics: &mut Diagnostics,
) -> MockedServers {
    let mut servers = MockedServers::default();
    for at in mock_folders(folder.path()).into_iter().rev() {
        let mut reader = FolderReader { plugins, unsupported, diagnostics, names: &mut servers.names };
        let inner = reader.read(&at);
        servers.mocks = inner.over(&servers.mocks);
    }
    servers
}

/// Gives the folders with mocks, that of the case first.
fn mock_folders(case: &Path) -> Vec<PathBuf> {
    let around: Vec<&Path> = case.ancestors().take(5).collect();
    // Groups of cases may lie between the case and the folder of the suite.
    let is_suite = |above: &&Path| above.file_name().is_some_and(|name| name == "evals");
    let suite = around.iter().position(is_suite).unwrap_or(1);
    let folders = around.iter().take(suite + 1).map(|above| above.join(MOCKS_FOLDER));
    folders.filter(|folder| folder.is_dir()).collect()
}

struct FolderReader<'r> {
    plugins: &'r CasePlugins,
    unsupported: &'r mut Unsupported,
    diagnostics: &'r mut Diagnostics,
    names: &'r mut Vec<(String, String)>,
}

impl FolderReader<'_> {
    fn read(&mut self, at: &Path) -> Mocks {
        let mut mocks = Mocks::default();
        let folder = match EvalFolder::open(at) {
            Ok(folder) => folder,
            Err(why) => {
                self.diagnostics.error("unreadable-folder", None, format!("{MOCKS_FOLDER}: {why}"));
                return mocks;
            }
        };
        for name in folder.names() {
            let inside = RelPath::new(name).map(|path| folder.open_inside(&path));
            // Files beside the servers, such as a README, mock nothing.
            let Some(Ok(server)) = inside else { continue };
            if !is_mock_name(name) {
                let message = format!("{MOCKS_FOLDER}/{name} cannot be the name of a server");
                self.diagnostics.error("invalid-name", None, message);
                continue;
            }
            let staged = self.staged_name(name);
            if self.names.iter().all(|(own, _)| own != name) {
                self.names.push((name.to_owned(), staged.clone()));
            }
            let tools = self.read_server(name, &server);
            if !tools.is_empty() {
                mocks.servers.push(McpServerMock { name: staged, tools, recording: None });
            }
        }
        mocks
    }

    /// Gives the name under which agents get a server: that which Claude Code gives to a server of the plugin.
    fn staged_name(&self, server: &str) -> String {
        let plugin = self.plugins.name.as_deref().filter(|_| !self.plugins.roots.is_empty());
        let name = plugin.map_or_else(|| server.to_owned(), |plugin| format!("plugin_{plugin}_{server}"));
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' }).collect()
    }

    fn read_server(&mut self, name: &str, folder: &EvalFolder) -> Vec<McpToolMock> {
        if folder.has(REPLAY_FOLDER) {
            self.unsupported
                .add(format!("the answers of {name} are recorded, which this version cannot replay"));
        }
        let listed = self.read_tool_list(name, folder);
        let is_tool = |file: &&str| file.ends_with(".md") && !file.starts_with(['_', '.']);
        let mut tools = Vec::new();
        for file in folder.names().filter(is_tool) {
            let shown = format!("{MOCKS_FOLDER}/{name}/{file}");
            let tool = file.trim_end_matches(".md");
            if !is_mock_name(tool) || tool.contains('.') {
                self.diagnostics.error("invalid-name", None, format!("{shown} is not the name of a tool"));
                continue;
            }
            let Some(part) = self.read_markdown(&shown, file, folder) else { continue };
            tools.extend(self.read_tool(tool, &shown, &part, folder, &listed));
        }
        if folder.has(SERVER_FILE) {
            let played = self.read_server_file(name, folder, &listed);
            // A file for a tool says more than the file for the whole server.
            let missing = |tool: &McpToolMock| tools.iter().all(|known| known.name != tool.name);
            let played: Vec<McpToolMock> = played.into_iter().filter(missing).collect();
            tools.extend(played);
        }
        tools
    }

    fn read_markdown(&mut self, shown: &str, file: &str, folder: &EvalFolder) -> Option<MarkdownPart> {
        let text = parts::read_part_text(folder, file, self.diagnostics)?;
        parts::parse_markdown(shown, &folder.path().join(file), &text, self.diagnostics)
    }

    /// Reads the tools that the real server lists: an object with a list `tools`, or the list itself.
    fn read_tool_list(&mut self, name: &str, folder: &EvalFolder) -> Vec<Value> {
        if !folder.has(TOOLS_FILE) {
            return Vec::new();
        }
        let Some(text) = parts::read_part_text(folder, TOOLS_FILE, self.diagnostics) else {
            return Vec::new();
        };
        let listed: Option<Value> = serde_json::from_str(&text).ok();
        let tools = listed.as_ref().map(|listed| listed.get("tools").unwrap_or(listed));
        match tools.and_then(Value::as_array) {
            Some(tools) => tools.clone(),
            None => {
                let message = format!("{MOCKS_FOLDER}/{name}/{TOOLS_FILE} is not a list of tools");
                self.diagnostics.error("wrong-type", None, message);
                Vec::new()
            }
        }
    }

    fn read_tool(
        &mut self,
        tool: &str,
        shown: &str,
        part: &MarkdownPart,
        folder: &EvalFolder,
        listed: &[Value],
    ) -> Option<McpToolMock> {
        let mut problems = Diagnostics::default();
        let mut object = ObjectReader::new(&part.front, "a mock", &mut problems)?;
        let kind = object.text("type", &mut problems).map(str::trim);
        let expect = match object.get_non_null("expect") {
            Some(node) => decode_conditions("expect", node, &mut problems),
            None => Some(Vec::new()),
        };
        let error = object.text("error", &mut problems).map(str::to_owned);
        let fails = object.peek("error").is_some_and(|node| node.to_value() == Value::Bool(true));
        let abort_when = object.text("abort_when", &mut problems).and_then(condition_of_abort);
        object.reject_unknown_keys("a mock", &mut problems);
        let is_played = is_played_by_model(kind, "fixed", &mut problems);
        // A flag without a text makes the body the message of the error.
        if fails {
            problems = Diagnostics::default();
        }
        parts::report_part(shown, &part.front_text, problems, self.diagnostics);
        let body = self.with_files(shown, &part.body, folder)?;
        let reply = match error {
            Some(error) => McpReply::Error(error),
            None if fails => McpReply::Error(body),
            None if is_played => McpReply::Model(server_role(body, abort_when)),
            None => McpReply::Result(body),
        };
        Some(McpToolMock { expect: expect?, ..tool_with_reply(tool, reply, listed) })
    }

    /// Replaces `{{file:PATH}}` by the content of a file of the server's folder.
    fn with_files(&mut self, shown: &str, body: &str, folder: &EvalFolder) -> Option<String> {
        const OPEN: &str = "{{file:";
        let mut out = String::new();
        let mut rest = body;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let Some((path, later)) = after.split_once("}}") else { break };
            let path = path.trim();
            let read = RelPath::new(path).ok_or_else(|| "it is not a path inside the folder".to_owned());
            match read.and_then(|path| folder.read_text(&path).map_err(|error| error.to_string())) {
                Ok(text) => {
                    out.push_str(before);
                    out.push_str(text.trim_end());
                }
                Err(why) => {
                    self.diagnostics.error("unreadable-file", None, format!("{shown}: {path}: {why}"));
                    return None;
                }
            }
            rest = later;
        }
        Some(out + rest)
    }

    /// Reads the file for a whole server: the tools that it lists are answered by one model.
    fn read_server_file(&mut self, name: &str, folder: &EvalFolder, listed: &[Value]) -> Vec<McpToolMock> {
        let shown = format!("{MOCKS_FOLDER}/{name}/{SERVER_FILE}");
        let Some(part) = self.read_markdown(&shown, SERVER_FILE, folder) else { return Vec::new() };
        let mut problems = Diagnostics::default();
        let Some(mut object) = ObjectReader::new(&part.front, "a server", &mut problems) else {
            return Vec::new();
        };
        let kind = object.text("type", &mut problems).map(str::trim);
        is_played_by_model(kind.or(Some("agent")), "agent", &mut problems);
        let abort_when = object.text("abort_when", &mut problems).and_then(condition_of_abort);
        let tools = object.texts("tools", &mut problems).unwrap_or_default();
        let is_tool = |tool: &str| is_mock_name(tool) && !tool.contains('.');
        let (tools, others): (Vec<_>, Vec<_>) = tools.into_iter().partition(|(tool, _)| is_tool(tool));
        for (tool, span) in others {
            problems.error("invalid-name", span, format!("{tool:?} is not the name of a tool"));
        }
        object.reject_unknown_keys("a server", &mut problems);
        parts::report_part(&shown, &part.front_text, problems, self.diagnostics);
        let Some(body) = self.with_files(&shown, &part.body, folder) else { return Vec::new() };
        let role = server_role(body, abort_when);
        // A server that lists no tools of its own answers for those that the real server lists.
        let names: Vec<&str> = match tools.is_empty() {
            true => {
                listed.iter().filter_map(|tool| tool["name"].as_str()).filter(|name| is_tool(name)).collect()
            }
            false => tools.into_iter().map(|(tool, _)| tool).collect(),
        };
        if names.is_empty() {
            self.diagnostics.error("missing-key", None, format!("{shown}: \"tools\" is missing"));
        }
        let reply = || McpReply::Model(role.clone());
        names.into_iter().map(|tool| tool_with_reply(tool, reply(), listed)).collect()
    }
}

/// Makes a tool with one answer, and with the description and the arguments that the real server lists.
fn tool_with_reply(tool: &str, reply: McpReply, listed: &[Value]) -> McpToolMock {
    let known = listed.iter().find(|known| known["name"] == tool);
    let description = known.and_then(|known| known["description"].as_str());
    let schema = known.and_then(|known| known.get("inputSchema").or_else(|| known.get("input_schema")));
    McpToolMock {
        name: tool.to_owned(),
        description: description.map(str::to_owned),
        input_schema: schema.cloned().filter(Value::is_object),
        expect: Vec::new(),
        answers: vec![McpAnswer::always(reply)],
    }
}

fn server_role(body: String, fail_when: Option<String>) -> ServerRole {
    ServerRole { role: body.trim().to_owned(), facts: Vec::new(), fail_when }
}

/// Gives the condition under which a model ends the run; `None` if the text says that it never does.
fn condition_of_abort(text: &str) -> Option<String> {
    let text = text.trim();
    let is_never = text.to_lowercase().trim_end_matches('.').split_whitespace().next() == Some("never");
    (!text.is_empty() && !is_never).then(|| text.to_owned())
}

/// Says whether a mock of this type is answered by a model, and reports an unknown type.
fn is_played_by_model(kind: Option<&str>, usual: &str, problems: &mut Diagnostics) -> bool {
    match kind.unwrap_or(usual) {
        "fixed" => false,
        "agent" => true,
        other => {
            let message = format!("\"type\" cannot be \"{other}\"; it may be fixed or agent");
            problems.error("unknown-value", None, message);
            false
        }
    }
}
