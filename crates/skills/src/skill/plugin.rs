//! A plugin on disk, with the parts that Claude Code (2.1) loads from it.
//!
//! In: a folder. Out: the plugin's name, its skills, and how many commands, agents, hooks and servers it brings.
//! Never: runs anything; reads what lies outside of the folder.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{SKILL_FILE, Skill, normalise_path};
use practicum_core::tree::read_bounded;

/// The folder of a plugin with its manifest.
pub const MANIFEST_FOLDER: &str = ".claude-plugin";

const MANIFEST_FILE: &str = ".claude-plugin/plugin.json";
const MARKETPLACE_FILE: &str = ".claude-plugin/marketplace.json";

/// The largest manifest or hook file that is read.
const MAX_FILE_SIZE: u64 = 1024 * 1024;
/// The greatest number of entries that are read in one folder.
const MAX_ENTRIES: usize = 1000;
/// The depth of folders in which commands and agents are looked for.
const MAX_DEPTH: usize = 8;

/// A plugin on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The folder of the plugin.
    pub root: PathBuf,
    /// The name in the manifest, else the name of the folder.
    pub name: String,
    /// The skills of the plugin.
    pub skills: Vec<PluginSkill>,
    /// The number of its slash commands.
    pub commands: usize,
    /// The number of its subagents.
    pub agents: usize,
    /// The number of its hooks.
    pub hooks: usize,
    /// The start commands of its MCP servers, by the server's name.
    pub servers: Map<String, Value>,
}

/// A skill of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSkill {
    /// The folder of its SKILL.md.
    pub folder: PathBuf,
    /// The name after the plugin's in Claude Code's listing.
    pub listed_name: String,
}

/// An error: a plugin cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// There is no plugin at this path.
    #[error("no plugin at {0}: a plugin is a folder with skills, commands, agents or hooks")]
    Missing(PathBuf),
    /// The manifest at this path cannot be read, with the reason.
    #[error("the manifest {0} cannot be read, so the plugin is not loaded: {1}")]
    Manifest(PathBuf, String),
}

impl Plugin {
    /// Reads the plugin at a path.
    pub fn read(root: &Path) -> Result<Self, PluginError> {
        let root = normalise_path(&std::path::absolute(root).unwrap_or_else(|_| root.to_owned()));
        if !root.is_dir() {
            return Err(PluginError::Missing(root));
        }
        let manifest = match root.join(MANIFEST_FILE) {
            file if file.is_file() => read_object(&file).map_err(|why| PluginError::Manifest(file, why))?,
            _ => Map::new(),
        };
        let folder = root.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let name = manifest.get("name").and_then(Value::as_str).map_or(folder, str::to_owned);
        let plugin = Self {
            skills: find_skills(&root, &manifest),
            commands: count_markdown_parts(&root, manifest.get("commands"), "commands"),
            agents: count_markdown_parts(&root, manifest.get("agents"), "agents"),
            hooks: count_plugin_hooks(&root, manifest.get("hooks")),
            servers: count_servers(&root, manifest.get("mcpServers")),
            name,
            root,
        };
        let is_empty = plugin.skills.is_empty() && plugin.commands + plugin.agents + plugin.hooks == 0;
        if is_empty && plugin.servers.is_empty() {
            Err(PluginError::Missing(plugin.root))
        } else {
            Ok(plugin)
        }
    }

    /// Finds the skills in the usual folder that are links to elsewhere, and so not in a copy.
    pub fn linked_skills(&self) -> Vec<PathBuf> {
        let mut found = subfolders(&self.root.join("skills"));
        found.retain(|folder| folder.join(SKILL_FILE).is_file() && !is_inside(&self.root, folder));
        found
    }

    /// Gives the start commands of the MCP servers of a copy of the plugin, by the names that Claude Code gives to
    /// servers of plugins, with the variables that it sets for them.
    pub fn servers_of_copy(&self, copy: &Path, home: &Path, workspace: &Path) -> Map<String, Value> {
        let data = home.join(".claude/plugins/data").join(format!("{}-inline", self.name));
        let folders =
            [("CLAUDE_PLUGIN_ROOT", copy), ("CLAUDE_PLUGIN_DATA", &data), ("CLAUDE_PROJECT_DIR", workspace)];
        let variables = folders.map(|(name, folder)| (name, folder.display().to_string()));
        let started = |(name, server): (&String, &Value)| {
            let mut server = server.clone();
            fill_in(&mut server, &variables);
            if server.get("command").is_some() {
                let own = server["env"].as_object().cloned().unwrap_or_default();
                let set = variables.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
                server["env"] = Value::Object(set.chain(own).collect());
            }
            (format!("plugin:{}:{name}", self.name), server)
        };
        self.servers.iter().map(started).collect()
    }

    /// Finds the skill whose SKILL.md lies in this folder.
    pub fn skill_at(&self, folder: &Path) -> Option<&PluginSkill> {
        let folder = normalise_path(folder);
        let folder = if folder.ends_with(SKILL_FILE) { folder.parent()?.to_owned() } else { folder };
        self.skills.iter().find(|skill| skill.folder == folder)
    }
}

/// Finds the plugins in a folder, each with the name that the folder gives it: those listed in a marketplace file,
/// else the subfolders.
pub fn plugins_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let listed = read_object(&folder.join(MARKETPLACE_FILE)).ok();
    let listed = listed.as_ref().and_then(|file| file.get("plugins")).and_then(Value::as_array);
    let named =
        |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut found: Vec<(String, PathBuf)> = match listed {
        // A plugin that a marketplace fetches from elsewhere is not in this folder.
        Some(entries) => entries
            .iter()
            .take(MAX_ENTRIES)
            .filter_map(|entry| {
                let path = path_inside(folder, entry.get("source")?.as_str()?)?;
                Some((
                    entry.get("name").and_then(Value::as_str).map_or_else(|| named(&path), str::to_owned),
                    path,
                ))
            })
            .collect(),
        None => subfolders(folder).into_iter().map(|path| (named(&path), path)).collect(),
    };
    found.retain(|(_, path)| path.is_dir());
    found
}

/// Says whether a path is a file from which Claude Code would start code by itself.
pub fn starts_code(root: &Path, path: &Path) -> bool {
    let files = ["hooks/hooks.json", "monitors/monitors.json", ".mcp.json", ".lsp.json", "settings.json"];
    files.iter().any(|file| path == root.join(file))
}

/// Says whether a path is a plugin's manifest.
pub fn is_manifest(root: &Path, path: &Path) -> bool {
    path == root.join(MANIFEST_FILE)
}

/// The keys of a manifest that describe a plugin and start nothing.
const HARMLESS_KEYS: [&str; 11] = [
    "name",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "skills",
    "commands",
    "agents",
];

/// Removes from a manifest every key that is not known to be harmless, and so everything that starts code.
pub fn remove_code_keys(manifest: &str) -> Option<String> {
    let mut manifest: Map<String, Value> = serde_json::from_str(manifest).ok()?;
    manifest.retain(|key, _| HARMLESS_KEYS.contains(&key.as_str()));
    Some(Value::Object(manifest).to_string())
}

fn read_object(file: &Path) -> Result<Map<String, Value>, String> {
    let bytes = read_bounded(file, MAX_FILE_SIZE)?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

/// Gives a path that a manifest names, if it lies in the plugin.
fn path_inside(root: &Path, path: &str) -> Option<PathBuf> {
    let path = normalise_path(&root.join(path));
    is_inside(root, &path).then_some(path)
}

/// Says whether a path lies in a folder, with links followed: a copy does not include the targets of links that
/// lead out.
fn is_inside(root: &Path, path: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(path).zip(real(root)).is_some_and(|(path, root)| path.starts_with(root))
}

/// Gives the paths that a key of a manifest names: one or several.
fn named_paths(root: &Path, said: &Value) -> Vec<PathBuf> {
    let texts = match said {
        Value::Array(items) => items.iter().take(MAX_ENTRIES).filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect::<Vec<_>>(),
    };
    texts.into_iter().filter_map(|text| path_inside(root, text)).collect()
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> =
        entries.flatten().take(MAX_ENTRIES).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Finds skills as Claude Code does: those in `skills`, or `skills` itself if it is a skill; those that the
/// manifest names; and if there are none, the plugin's own folder if it is a skill. A folder that is itself a
/// skill is listed by the name in its frontmatter, one among others by its folder name.
fn find_skills(root: &Path, manifest: &Map<String, Value>) -> Vec<PluginSkill> {
    let is_skill = |folder: &Path| folder.join(SKILL_FILE).is_file();
    let of_folder = |folder: &Path| -> Vec<PluginSkill> {
        if is_skill(folder) {
            let listed = Skill::read(folder).map_or_else(
                |_| super::name_from_path(&folder.join(SKILL_FILE), super::SkillForm::Folder),
                |skill| skill.name,
            );
            return vec![PluginSkill { folder: folder.to_owned(), listed_name: listed }];
        }
        let children = subfolders(folder).into_iter().filter(|child| is_skill(child));
        let child = |folder: PathBuf| {
            let listed =
                folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            PluginSkill { folder, listed_name: listed }
        };
        children.map(child).collect()
    };
    let usual = root.join("skills");
    let said = manifest.get("skills");
    let mut found = of_folder(&usual);
    found.extend(said.into_iter().flat_map(|said| named_paths(root, said)).flat_map(|path| of_folder(&path)));
    if said.is_none() && !usual.is_dir() && is_skill(root) {
        found = of_folder(root);
    }
    let mut known = std::collections::BTreeSet::new();
    found.retain(|skill| is_inside(root, &skill.folder) && known.insert(skill.folder.clone()));
    found
}

/// Counts the Markdown files of a kind in a plugin: at the paths in its manifest, else in the usual folder.
fn count_markdown_parts(root: &Path, said: Option<&Value>, usual: &str) -> usize {
    match said {
        Some(Value::Object(named)) => named.len(),
        Some(said) => named_paths(root, said).iter().map(|path| count_markdown_files(path)).sum(),
        None => count_markdown_files(&root.join(usual)),
    }
}

fn count_markdown_files(path: &Path) -> usize {
    let walk = ignore::WalkBuilder::new(path).standard_filters(false).max_depth(Some(MAX_DEPTH)).build();
    let is_markdown =
        |entry: &ignore::DirEntry| entry.path().extension().is_some_and(|ending| ending == "md");
    walk.flatten().take(MAX_ENTRIES).filter(is_markdown).count()
}

/// Counts the hooks of a plugin: those of its hooks file, and those that its manifest names or contains.
fn count_plugin_hooks(root: &Path, said: Option<&Value>) -> usize {
    let usual = root.join("hooks/hooks.json");
    let files = said.into_iter().flat_map(|said| named_paths(root, said)).filter(|path| *path != usual);
    let of_file = |path: PathBuf| read_object(&path).map_or(0, |file| count_hooks(&Value::Object(file)));
    let of_files: usize = std::iter::once(usual.clone()).chain(files).map(of_file).sum();
    of_files + said.filter(|said| said.is_object()).map_or(0, count_hooks)
}

/// Counts the hooks in a hooks object: every `hooks` list of a matcher, and its modules.
fn count_hooks(said: &Value) -> usize {
    let modules = said.get("modules").and_then(Value::as_array).map_or(0, Vec::len);
    let events = said.get("hooks").filter(|hooks| hooks.is_object()).unwrap_or(said);
    let matchers =
        events.as_object().into_iter().flat_map(|events| events.values()).filter_map(Value::as_array);
    let lists = matchers.flatten().filter_map(|matcher| matcher.get("hooks").and_then(Value::as_array));
    modules + lists.map(Vec::len).sum::<usize>()
}

/// Gives the start commands of the MCP servers of a plugin: those of its `.mcp.json`, and those that its manifest
/// names or contains.
fn count_servers(root: &Path, said: Option<&Value>) -> Map<String, Value> {
    let of_file = |path: &Path| {
        let mut file = read_object(path).unwrap_or_default();
        match file.get_mut("mcpServers").and_then(Value::as_object_mut) {
            Some(servers) => std::mem::take(servers),
            None => file,
        }
    };
    let mut all = of_file(&root.join(".mcp.json"));
    match said {
        Some(Value::Object(servers)) => all.extend(servers.clone()),
        Some(said) => all.extend(named_paths(root, said).iter().flat_map(|path| of_file(path))),
        None => {}
    }
    all
}

/// Replaces `${NAME}` in every text of a document by the value of the variable.
fn fill_in(document: &mut Value, variables: &[(&str, String)]) {
    match document {
        Value::String(text) => {
            for (name, value) in variables {
                *text = text.replace(&format!("${{{name}}}"), value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, variables)),
        Value::Object(entries) => entries.values_mut().for_each(|entry| fill_in(entry, variables)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("written");
        }
    }

    /// The names that Claude Code 2.1.325 lists for each of these layouts, as observed.
    #[test]
    fn skills_are_found_and_named_as_claude_code_does() {
        const A: &str = "---\nname: alpha\ndescription: d\n---\n";
        for (files, expected) in [
            (
                &[("skills/one/SKILL.md", A), ("skills/two/SKILL.md", A)] as &[(&str, &str)],
                &["p:one", "p:two"] as &[&str],
            ),
            (&[("skills/SKILL.md", A)], &["p:alpha"]),
            (&[("skills/SKILL.md", "no front")], &["p:skills"]),
            (&[("SKILL.md", A)], &["p:alpha"]),
            (&[("SKILL.md", A), ("commands/c.md", "x")], &["p:alpha"]),
            (&[("SKILL.md", A), ("skills/SKILL.md", A), ("skills/two/SKILL.md", A)], &["p:alpha"]),
            (&[("skills/deep/er/SKILL.md", A), ("skills/flat/SKILL.md", A)], &["p:flat"]),
            (
                &[
                    (MANIFEST_FILE, r#"{"name": "six", "skills": ["./a", "./b/theta"]}"#),
                    ("SKILL.md", A),
                    ("a/iota/SKILL.md", A),
                    ("b/theta/SKILL.md", A),
                ],
                &["six:iota", "six:alpha"],
            ),
            (&[(MANIFEST_FILE, r#"{"name": "p9", "skills": ["./"]}"#), ("SKILL.md", A)], &["p9:alpha"]),
            (
                &[
                    (MANIFEST_FILE, r#"{"skills": "../out"}"#),
                    ("skills/one/SKILL.md", A),
                    ("../out/x/SKILL.md", A),
                ],
                &["p:one"],
            ),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let root = folder.path().join("p");
            std::fs::create_dir(&root).expect("a folder");
            write(&root, files);
            let plugin = Plugin::read(&root).expect("a plugin");
            let listed: Vec<String> =
                plugin.skills.iter().map(|skill| format!("{}:{}", plugin.name, skill.listed_name)).collect();
            assert_eq!(listed, expected, "{files:?}");
        }
    }

    #[test]
    fn the_parts_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        write(
            root,
            &[
                ("skills/a/SKILL.md", "x"),
                ("commands/a.md", "x"),
                ("commands/sub/b.md", "x"),
                ("agents/c.md", "x"),
                (
                    "hooks/hooks.json",
                    r#"{"hooks": {"Stop": [{"hooks": [{}, {}]}], "PreToolUse": [{"hooks": [{}]}]}}"#,
                ),
                (".mcp.json", r#"{"mcpServers": {"s": {}}}"#),
                (
                    MANIFEST_FILE,
                    r#"{"name": "p", "hooks": {"Stop": [{"hooks": [{}]}]}, "mcpServers": {"t": {}}}"#,
                ),
            ],
        );
        let plugin = Plugin::read(root).expect("a plugin");
        assert_eq!((plugin.commands, plugin.agents, plugin.hooks, plugin.servers.len()), (2, 1, 4, 2));
        let kept = remove_code_keys(&std::fs::read_to_string(root.join(MANIFEST_FILE)).expect("a text"));
        assert_eq!(kept.as_deref(), Some(r#"{"name":"p"}"#));
        write(root, &[(MANIFEST_FILE, "{broken")]);
        assert!(matches!(Plugin::read(root), Err(PluginError::Manifest(..))));
        assert!(matches!(Plugin::read(&root.join("commands/sub")), Err(PluginError::Missing(_))));
    }

    #[test]
    fn a_marketplace_says_where_its_plugins_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        write(root, &[("plugins/p/skills/s/SKILL.md", "x"), ("other/SKILL.md", "x")]);
        assert_eq!(plugins_in(&root.join("plugins")), [("p".to_owned(), root.join("plugins/p"))]);
        let listed = r#"{"plugins": [{"name": "pp", "source": "./plugins/p"}, {"name": "far", "source": {"source": "github"}},
            {"name": "out", "source": "../.."}, {"name": "gone", "source": "./gone"}]}"#;
        write(root, &[(MARKETPLACE_FILE, listed)]);
        assert_eq!(plugins_in(root), [("pp".to_owned(), root.join("plugins/p"))]);
    }
}
