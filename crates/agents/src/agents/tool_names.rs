//! The names of agents' tools.

/// The tools with which agents ask the user.
pub const ASK_USER_TOOLS: [&str; 2] = ["AskUserQuestion", "ask_user"];

/// The tools of the known agents. Tools of MCP servers have names of their own, with `__` in them.
const KNOWN_TOOLS: &[&str] = &[
    // Claude Code.
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Read",
    "ReadMcpResourceTool",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
    // Codex.
    "apply_patch",
    "collab_tool_call",
    "command_execution",
    "exec",
    "exec_command",
    "file_change",
    "local_shell",
    "mcp_tool_call",
    "spawn_agent",
    "todo_list",
    "update_plan",
    "view_image",
    "web_search",
    "write_stdin",
    // opencode, and the builtin agent.
    "bash",
    "codesearch",
    "edit",
    "glob",
    "grep",
    "list",
    "lsp",
    "patch",
    "question",
    "read",
    "shell",
    "skill",
    "task",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
    "write",
    // Gemini CLI.
    "activate_skill",
    "ask_user",
    "google_web_search",
    "grep_search",
    "list_directory",
    "read_file",
    "read_many_files",
    "replace",
    "run_shell_command",
    "save_memory",
    "search_file_content",
    "web_fetch",
    "write_file",
    "write_todos",
    // Qwen Code, where its tools are not those of Gemini CLI.
    "agent",
    "notebook_edit",
    "tool_search",
    "todo_write",
    // GitHub Copilot CLI.
    "create",
    "str_replace_editor",
    "view",
    // goose.
    "delegate",
    "load_skill",
    "text_editor",
    "tree",
];

/// Says whether a tool of some agent can have this name: a known tool, one of an MCP server, or a pattern.
pub fn is_tool_name(name: &str) -> bool {
    // `Bash(git:*)` is the tool with a limit on its arguments.
    let name = name.split('(').next().unwrap_or(name).trim();
    KNOWN_TOOLS.contains(&name) || name.contains("__") || name.contains(['*', '?'])
}

/// Gives all known names of tools, to suggest the one that was meant.
pub fn tool_names() -> &'static [&'static str] {
    KNOWN_TOOLS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_is_no_tool() {
        for name in ["Bash", "Bash(git:*)", "mcp__s__t", "Web*", "run_shell_command", "read"] {
            assert!(is_tool_name(name), "{name}");
        }
        for name in ["Bsh", "BASH", "Write file", ""] {
            assert!(!is_tool_name(name), "{name}");
        }
    }
}
