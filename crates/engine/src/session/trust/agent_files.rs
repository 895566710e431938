//! Files in a workspace that make an agent CLI start programs by itself.

use std::path::{Path, PathBuf};

use practicum_core::tree::read_regular;

/// The files and folders, seen from the workspace, in which agent CLIs look for hooks, servers, helpers and plugins.
const AGENT_FILES: [&str; 23] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/hooks",
    ".mcp.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".gemini/settings.json",
    ".gemini/.env",
    ".gemini/extensions",
    ".qwen/settings.json",
    ".qwen/.env",
    ".qwen/extensions",
    ".qwen/hooks",
    ".github/hooks",
    ".copilot",
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
    ".opencode/plugin",
    ".opencode/plugins",
    ".cursor/mcp.json",
    ".cursor/hooks.json",
];

/// Keys of a JSON settings file that start nothing. A file with only these needs no trust.
const HARMLESS_KEYS: [&str; 9] = [
    "$schema",
    "permissions",
    "model",
    "outputStyle",
    "includeCoAuthoredBy",
    "cleanupPeriodDays",
    "language",
    "theme",
    "instructions",
];

/// A file or folder that makes an agent start programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// The path as the agent knows it, seen from the workspace.
    pub name: &'static str,
    /// What has to be left out so that the agent does not find it: the file, or the link that leads to it.
    pub path: PathBuf,
    /// The file or folder that is read in the end.
    pub content: PathBuf,
}

/// Finds the files below the root of a future workspace that make an agent start programs.
pub fn agent_files_in(root: &Path) -> Vec<AgentFile> {
    AGENT_FILES.iter().filter_map(|name| agent_file_at(root, name)).collect()
}

fn agent_file_at(root: &Path, name: &'static str) -> Option<AgentFile> {
    let mut path = root.to_owned();
    let mut link = None;
    for part in Path::new(name) {
        path = entry_named(&path, &part.to_string_lossy())?;
        if link.is_none() && path.is_symlink() {
            link = Some(path.clone());
        }
    }
    // A link to nothing starts nothing now, but may when the agent has made its target: it counts.
    let harmless = path.is_file() && read_regular(&path).is_ok_and(|bytes| is_harmless(&bytes));
    (!harmless).then(|| AgentFile { name, path: link.unwrap_or_else(|| path.clone()), content: path })
}

/// Finds an entry of a folder by its name. On some file systems an agent finds it in any case of letters.
fn entry_named(folder: &Path, name: &str) -> Option<PathBuf> {
    let exact = folder.join(name);
    if exact.symlink_metadata().is_ok() {
        return Some(exact);
    }
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let same = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().eq_ignore_ascii_case(name);
    entries.into_iter().find(same).map(|entry| entry.path())
}

/// Says whether a copy with this destination in the workspace is, contains, or lies in one of the agents' files.
pub fn concerns_agent_files(destination: &str) -> bool {
    let place = destination.to_lowercase();
    AGENT_FILES.iter().any(|name| {
        let is_below = |inner: &str, outer: &str| Path::new(inner).starts_with(outer);
        is_below(&place, name) || is_below(name, &place)
    })
}

fn is_harmless(bytes: &[u8]) -> bool {
    let value: Result<serde_json::Value, _> = serde_json::from_slice(bytes);
    let keys = value.as_ref().ok().and_then(serde_json::Value::as_object);
    keys.is_some_and(|keys| keys.keys().all(|key| HARMLESS_KEYS.contains(&key.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_found_by_any_name_and_permissions_are_no_code() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, text).expect("write");
        };
        let found = || -> Vec<&str> { agent_files_in(folder.path()).iter().map(|file| file.name).collect() };
        write(".claude/settings.json", r#"{"permissions": {"allow": ["Bash"]}}"#);
        assert_eq!(found(), [""; 0]);
        write(".claude/settings.json", r#"{"permissions": {}, "apiKeyHelper": "sh evil.sh"}"#);
        write("conf/config.toml", "notify = [\"sh\"]\n");
        std::os::unix::fs::symlink("conf", folder.path().join(".codex")).expect("a link");
        write(".MCP.json", "not JSON");
        assert_eq!(found(), [".claude/settings.json", ".mcp.json", ".codex/config.toml"]);
        let linked = agent_files_in(folder.path()).remove(2);
        assert_eq!(linked.path, folder.path().join(".codex"), "the link is what is left out");
    }

    #[test]
    fn a_copy_into_a_folder_of_an_agent_is_noticed() {
        for (destination, expected) in [
            (".claude/settings.json", true),
            (".Claude", true),
            (".opencode/plugin/a/b.ts", true),
            (".claude/skills/x", false),
            ("docs/.mcp.json", false),
            ("src", false),
        ] {
            assert_eq!(concerns_agent_files(destination), expected, "{destination}");
        }
    }
}
