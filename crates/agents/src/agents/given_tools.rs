//! Tools that an agent is given in addition to its own: MCP servers to start, and commands that come first on its path.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use practicum_core::model::RelPath;

/// An MCP server on standard input and output, as an agent starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerCommand {
    /// The name of the server: letters, digits, `-` and `_`.
    pub name: String,
    /// The program to start.
    pub program: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
}

/// The variable that tells the functions of `HomeFiles` that some commands are mocked.
pub const COMMANDS_VARIABLE: &str = "PRACTICUM_COMMANDS";

/// Gives the profiles of login shells, which put the mocked commands first. The profile of the machine sets `PATH` anew,
/// and some agents run commands in login shells.
pub fn shell_profiles(commands: &Path) -> [(RelPath, String); 2] {
    let quoted = commands.display().to_string().replace('\'', r"'\''");
    let text = format!("PATH='{quoted}':$PATH\nexport PATH\n");
    [".profile", ".zprofile"].map(|name| (RelPath::new(name).expect("a relative path"), text.clone()))
}

/// The beginning of the placeholders for servers.
pub const SERVERS_PLACEHOLDER: &str = "mcp_servers_";

/// Writes servers in the form that a placeholder names; `None` if there are no servers or no such form.
pub fn write_servers(placeholder: &str, servers: &[McpServerCommand]) -> Option<String> {
    match placeholder.strip_prefix(SERVERS_PLACEHOLDER)? {
        "json" => servers_as_json(servers),
        "toml" => servers_as_toml(servers),
        "opencode" => servers_for_opencode(servers),
        _ => None,
    }
}

/// Writes servers as JSON in the form that most agents read; `None` if there are none.
fn servers_as_json(servers: &[McpServerCommand]) -> Option<String> {
    let entry = |server: &McpServerCommand| {
        let command = server.program.display().to_string();
        (server.name.clone(), json!({"type": "stdio", "command": command, "args": server.args}))
    };
    let servers: Map<String, Value> = servers.iter().map(entry).collect();
    (!servers.is_empty()).then(|| json!({"mcpServers": servers}).to_string())
}

/// The time that a server has to start, in seconds. A busy machine may need long.
const SERVER_START_SECONDS: i64 = 120;

/// Writes servers as the setting `mcp_servers` in TOML; `None` if there are none.
fn servers_as_toml(servers: &[McpServerCommand]) -> Option<String> {
    let entry = |server: &McpServerCommand| {
        let text = toml::Value::String;
        let fields = [
            ("command", text(server.program.display().to_string())),
            ("args", server.args.iter().cloned().map(toml::Value::String).collect::<Vec<_>>().into()),
            ("startup_timeout_sec", SERVER_START_SECONDS.into()),
            // Nobody is there to approve a call.
            ("default_tools_approval_mode", text("approve".to_owned())),
        ];
        let fields = fields.map(|(key, value)| format!("{key} = {value}"));
        format!("{} = {{ {} }}", text(server.name.clone()), fields.join(", "))
    };
    let servers: Vec<String> = servers.iter().map(entry).collect();
    (!servers.is_empty()).then(|| format!("mcp_servers={{ {} }}", servers.join(", ")))
}

/// Writes servers as the configuration of opencode; `None` if there are none.
fn servers_for_opencode(servers: &[McpServerCommand]) -> Option<String> {
    let entry = |server: &McpServerCommand| {
        let program = server.program.display().to_string();
        let command: Vec<&String> = std::iter::once(&program).chain(&server.args).collect();
        let timeout = SERVER_START_SECONDS * 1000;
        let value = json!({"type": "local", "command": command, "enabled": true, "timeout": timeout});
        (server.name.clone(), value)
    };
    let servers: Map<String, Value> = servers.iter().map(entry).collect();
    (!servers.is_empty()).then(|| json!({"mcp": servers}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_as_json_and_toml() {
        let servers = [McpServerCommand {
            name: "shop".to_owned(),
            program: PathBuf::from("/a b/practicum"),
            args: vec!["--socket".to_owned(), "/r\"/s".to_owned()],
        }];
        let parsed =
            |text: Option<String>| -> Value { serde_json::from_str(&text.expect("servers")).expect("JSON") };
        let shop = &parsed(servers_as_json(&servers))["mcpServers"]["shop"];
        assert_eq!((&shop["command"], &shop["args"][1]), (&json!("/a b/practicum"), &json!("/r\"/s")));
        let shop = &parsed(servers_for_opencode(&servers))["mcp"]["shop"];
        assert_eq!(shop["command"], json!(["/a b/practicum", "--socket", "/r\"/s"]));
        let table: toml::Table = servers_as_toml(&servers).expect("servers").parse().expect("TOML");
        let shop = &table["mcp_servers"]["shop"];
        assert_eq!(shop["args"][1].as_str(), Some("/r\"/s"));
        assert_eq!(
            (servers_as_json(&[]), servers_as_toml(&[]), servers_for_opencode(&[])),
            (None, None, None)
        );
    }

    #[test]
    fn a_login_shell_finds_mocked_commands_first() {
        let [(name, text), _] = shell_profiles(Path::new("/r/it's"));
        assert_eq!((name.as_str(), text.as_str()), (".profile", "PATH='/r/it'\\''s':$PATH\nexport PATH\n"));
    }

    #[test]
    fn agents_that_read_servers_are_known() {
        for (name, expected) in [("claude", true), ("codex", true), ("opencode", true), ("builtin", false)] {
            let agent = super::super::find_agent(name).expect("known");
            assert_eq!(agent.can_use_mcp_servers(), expected, "{name}");
        }
    }
}
