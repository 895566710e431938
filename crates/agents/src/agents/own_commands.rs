//! The slash commands that agents bring along.

/// Says whether a command is an agent's own, so that it need not be staged.
pub fn is_own_command(name: &str) -> bool {
    OWN_COMMANDS.contains(&name)
}

/// The commands that Claude Code lists as its own, and those that its terminal, Codex, Gemini and OpenCode have
/// beyond them.
const OWN_COMMANDS: &[&str] = &[
    "about",
    "add-dir",
    "agents",
    "approvals",
    "auth",
    "auto-mode-setup",
    "autocompact",
    "bug",
    "chat",
    "clear",
    "color",
    "compact",
    "compress",
    "config",
    "connect",
    "context",
    "copy",
    "corgi",
    "cost",
    "debug",
    "diff",
    "directory",
    "docs",
    "doctor",
    "editor",
    "effort",
    "exit",
    "export",
    "extensions",
    "fast",
    "feedback",
    "focus",
    "fork",
    "goal",
    "heapdump",
    "help",
    "hooks",
    "ide",
    "init",
    "insights",
    "install-github-app",
    "keybindings",
    "list-agents",
    "login",
    "logout",
    "mcp",
    "memory",
    "mention",
    "model",
    "models",
    "new",
    "output-style",
    "permissions",
    "plan",
    "plugin",
    "plugin-authoring",
    "powerup",
    "privacy",
    "privacy-settings",
    "quit",
    "recap",
    "redo",
    "release-notes",
    "reload-plugins",
    "reload-skills",
    "rename",
    "restore",
    "resume",
    "review",
    "rewind",
    "sandbox",
    "security-review",
    "sessions",
    "settings",
    "share",
    "skills",
    "stats",
    "status",
    "statusline",
    "stop",
    "tasks",
    "team-onboarding",
    "terminal-setup",
    "theme",
    "themes",
    "thinking",
    "todos",
    "tools",
    "undo",
    "unshare",
    "upgrade",
    "usage",
    "vim",
    "workflow-launch-exec",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_the_agents_are_known() {
        for name in ["help", "compact", "clear", "init"] {
            assert!(is_own_command(name), "{name}");
        }
        assert!(!is_own_command("skillet:add") && OWN_COMMANDS.is_sorted());
    }
}
