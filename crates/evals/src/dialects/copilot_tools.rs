//! What formats of other tools share: Copilot's names of tools, globs, and words for a shell.

/// Gives the role of a tool of Copilot, or its own name.
pub fn agent_tool(name: &str) -> &str {
    match name.trim() {
        "view" | "read_file" => "read",
        "edit" => "edit",
        "create" | "write_file" | "create_file" => "write",
        "bash" | "powershell" | "shell" => "shell",
        "skill" => "skill",
        other => other,
    }
}

/// Says whether a path is a glob.
pub fn is_glob(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// Writes a text as one word for a shell.
pub fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
