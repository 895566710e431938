//! A skill on disk: a folder with a SKILL.md, or a single command file.
//!
//! In: a path. Out: its name, description and body, with their positions. Never: judges it.

mod cache;
mod frontmatter;
mod plugin;

use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

pub use cache::SkillCache;
pub use frontmatter::{end_of_opening_fence, read_frontmatter, remove_key, split_frontmatter};
pub use plugin::{
    MANIFEST_FOLDER, Plugin, PluginError, PluginSkill, is_manifest, plugins_in, remove_code_keys, starts_code,
};

use practicum_core::model::{Diagnostics, Digest, RelPath, Severity};
use practicum_core::tree::{NodeData, TreeNode, read_bounded, read_regular};

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// A skill that can be staged.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The SKILL.md or command file.
    pub file: PathBuf,
    /// Whether the skill is a folder or one command file.
    pub form: SkillForm,
    /// The name in the frontmatter, else the one that follows from the path. The name of a command file always
    /// follows from its path.
    pub name: String,
    /// The description, by which an agent decides when to use the skill.
    pub description: Option<String>,
    /// The frontmatter, if it can be parsed.
    pub frontmatter: Option<TreeNode>,
    /// The text after the frontmatter.
    pub body: String,
    /// Problems in the text although agents read it, each with file, line and what to do.
    pub warnings: Vec<String>,
}

/// The form of a skill on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillForm {
    /// A folder whose other files belong to the skill.
    Folder,
    /// One file in a `commands` folder.
    Command,
}

/// An error: a skill cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SkillError {
    /// There is no skill at this path.
    #[error("no skill at {0}: a skill is a folder with a SKILL.md, or a command file")]
    Missing(PathBuf),
    /// The frontmatter cannot be read. The message has the line and a hint.
    #[error("the frontmatter of {0} cannot be read: {1}")]
    Frontmatter(PathBuf, String),
    /// The skill at this path cannot be read, with the reason.
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, String),
}

impl Skill {
    /// Reads the skill at a folder, its SKILL.md, or a command file.
    ///
    /// ```
    /// use practicum_skills::skill::{Skill, SkillError};
    ///
    /// let missing = Skill::read(std::path::Path::new("no/such/skill"));
    /// assert!(matches!(missing, Err(SkillError::Missing(_))));
    /// ```
    pub fn read(path: &Path) -> Result<Self, SkillError> {
        let (file, form) = locate_skill_file(path).ok_or_else(|| SkillError::Missing(path.to_owned()))?;
        let unreadable = |why: String| SkillError::Unreadable(file.clone(), why);
        let bytes = read_bounded(&file, MAX_SKILL_FILE_SIZE).map_err(unreadable)?;
        let text = String::from_utf8_lossy(&bytes);
        let mut warnings = Vec::new();
        if let std::borrow::Cow::Owned(_) = &text {
            let help = "save it as UTF-8";
            warnings.push(format!("{} is not UTF-8 text, and some agents refuse it; {help}", file.display()));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (front_text, body) = split_frontmatter(text);
        let front = match front_text {
            Some(front_text) if !front_text.trim().is_empty() => {
                // The fence is included, so that lines are counted from the top of the file.
                let until = end_of_opening_fence(text).unwrap_or_default() + front_text.len();
                let mut diagnostics = Diagnostics::default();
                let front = read_frontmatter(&file, &text[..until], &mut diagnostics);
                let problems = describe_problems(&diagnostics, text);
                if front.is_none() {
                    return Err(SkillError::Frontmatter(file, problems.join("; ")));
                }
                warnings.extend(problems.into_iter().map(|problem| format!("{}, {problem}", file.display())));
                front
            }
            None if end_of_opening_fence(text).is_some() => {
                let problem = "the frontmatter is never closed, so agents do not read it (end it with ---)";
                warnings.push(format!("{}, line 1: {problem}", file.display()));
                None
            }
            Some(_) | None => None,
        };
        if let Some(NodeData::List(_) | NodeData::Text(_)) = front.as_ref().map(|front| &front.data) {
            let help = "write one \"key: value\" a line";
            let problem = format!("the frontmatter has no keys, so agents read nothing in it ({help})");
            warnings.push(format!("{}, line 1: {problem}", file.display()));
        }
        if form == SkillForm::Command && body.trim().is_empty() {
            let help = "write what the agent is to do";
            warnings.push(format!(
                "{} has no text, so its command tells an agent nothing ({help})",
                file.display()
            ));
        }
        let said = |key: &str| front.as_ref()?.get(key)?.as_text().map(str::to_owned);
        let own_name = match form {
            SkillForm::Folder => said("name").filter(|name| !name.trim().is_empty()),
            // Claude Code ignores the name that a command's frontmatter gives.
            SkillForm::Command => None,
        };
        let name = own_name.unwrap_or_else(|| name_from_path(&file, form));
        let description = said("description");
        Ok(Self { name, description, form, body: body.to_owned(), frontmatter: front, file, warnings })
    }

    /// Says why this skill cannot be staged under its name, which becomes the name of a folder; `None` if it can.
    pub fn describe_unusable_name(&self) -> Option<String> {
        let is_folder_name = self.name.len() <= MAX_FOLDER_NAME_LENGTH
            && RelPath::new(&self.name).is_some_and(|path| path.as_str() == self.name)
            && !self.name.contains('/');
        if self.form == SkillForm::Command || is_folder_name {
            return None;
        }
        let name: String = self.name.chars().take(60).collect();
        let more = if name == self.name { "" } else { "…" };
        Some(format!(
            "{} calls the skill \"{name}{more}\", which cannot be the name of a folder, so it cannot be staged; \
             give it a name without \"/\" and \"\\\" that has at most {MAX_FOLDER_NAME_LENGTH} bytes",
            self.file.display()
        ))
    }

    /// Says whether an agent gets the same from both skills.
    pub fn is_copy_of(&self, other: &Self) -> bool {
        let held = |skill: &Self| skill_digest(skill, |_| false).ok();
        self.file == other.file || held(self).is_some_and(|known| Some(known) == held(other))
    }

    /// Says whether the model may activate the skill by itself, and not only a user by its command.
    pub fn is_model_invocable(&self) -> bool {
        let said = self.frontmatter.as_ref().and_then(|front| front.get("disable-model-invocation"));
        !said.is_some_and(|node| node.data == NodeData::Bool(true))
    }

    /// Gives the folder that belongs to the skill; for a command file, the folder it lies in.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }
}

/// The longest folder name that most file systems allow, in bytes.
const MAX_FOLDER_NAME_LENGTH: usize = 255;

/// The largest SKILL.md that is read. No agent could use a larger one.
const MAX_SKILL_FILE_SIZE: u64 = 16 * 1024 * 1024;

/// Describes each problem with its line and what to do about it.
fn describe_problems(diagnostics: &Diagnostics, text: &str) -> Vec<String> {
    let words = diagnostics.iter().filter(|problem| problem.severity != Severity::Notice).map(|problem| {
        let line = problem.span.map_or(1, |span| span.position(text).line);
        let help = problem.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        format!("line {line}: {}{help}", problem.message)
    });
    words.collect()
}

fn locate_skill_file(path: &Path) -> Option<(PathBuf, SkillForm)> {
    if path.is_dir() {
        let file = path.join(SKILL_FILE);
        return file.is_file().then_some((file, SkillForm::Folder));
    }
    if !path.is_file() {
        return None;
    }
    let form = if path.file_name().is_some_and(|name| name == SKILL_FILE) {
        SkillForm::Folder
    } else {
        SkillForm::Command
    };
    path.extension().is_some_and(|extension| extension == "md").then(|| (path.to_owned(), form))
}

/// Gives the name that follows from a skill's path: that of its folder, or for a command file its path below the
/// `commands` folder without the extension, with colons: `commands/git/add.md` is `git:add`.
pub fn name_from_path(file: &Path, form: SkillForm) -> String {
    let file = normalise_path(&std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    let name = match form {
        SkillForm::Folder => {
            file.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
        }
        SkillForm::Command => {
            let below = commands_folder(&file).and_then(|folder| file.strip_prefix(folder).ok());
            let below = below.or_else(|| file.file_name().map(Path::new)).map(|path| path.with_extension(""));
            below.map(|path| {
                let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
                parts.join(":")
            })
        }
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "skill".to_owned())
}

/// Finds the folder of commands that a command file belongs to. A folder `commands` of an agent or a plugin
/// certainly is one. Any other folder of that name counts only inside the repository, because a repository may lie
/// in a folder called `commands`.
fn commands_folder(file: &Path) -> Option<&Path> {
    let is_commands = |folder: &&Path| folder.file_name().is_some_and(|name| name == "commands");
    let is_agents = |folder: &&Path| {
        folder.parent().is_some_and(|above| {
            let name = above.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            name.starts_with(".claude") || above.join(".claude-plugin").is_dir()
        })
    };
    let folders = || file.ancestors().skip(1).filter(is_commands);
    let mut inside = file.ancestors().skip(1).take_while(|folder| !folder.join(".git").exists());
    folders().find(is_agents).or_else(|| inside.find(is_commands))
}

/// Says whether a file is a command by its place and extension: Markdown in a folder of commands.
pub fn is_command_file(file: &Path) -> bool {
    let file = normalise_path(&std::path::absolute(file).unwrap_or_else(|_| file.to_owned()));
    let name = file.file_name().unwrap_or_default();
    let is_text = file.extension().is_some_and(|ending| ending == "md");
    is_text && !name.eq_ignore_ascii_case(SKILL_FILE) && commands_folder(&file).is_some()
}

/// Gives the path of the command of this name below a folder of commands. `None` if a part of the name could not
/// be a file name: a name from a hostile file must not become a path.
pub fn command_path(name: &str) -> Option<RelPath> {
    let parts: Vec<&str> = name.split(':').collect();
    let plain =
        |part: &&str| RelPath::new(part).is_some_and(|path| path.as_str() == *part) && !part.contains('/');
    parts.iter().all(plain).then(|| RelPath::new(&format!("{}.md", parts.join("/")))).flatten()
}

/// Gives the folder in which the versions of a skill and their judgements are kept: beside the skill. For a
/// command file it is beside the folder of commands, because an agent treats every Markdown file in there as a
/// command.
pub fn versions_folder_of(skill: &Path) -> PathBuf {
    let at = normalise_path(&std::path::absolute(skill).unwrap_or_else(|_| skill.to_owned()));
    let is_command = at.extension().is_some_and(|ending| ending == "md") && at.is_file();
    let folder = match at.file_name() {
        Some(name) if name == SKILL_FILE => at.parent().unwrap_or(&at).to_owned(),
        Some(_) if is_command => {
            let commands = commands_folder(&at);
            let below = commands.and_then(|folder| Some((folder, at.strip_prefix(folder).ok()?)));
            if let Some((commands, below)) = below {
                return with_versions_suffix(commands).join(below.with_extension(""));
            }
            at.with_extension("")
        }
        Some(_) | None => at,
    };
    with_versions_suffix(&folder)
}

fn with_versions_suffix(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(VERSIONS_FOLDER_SUFFIX);
    folder.with_file_name(name)
}

const VERSIONS_FOLDER_SUFFIX: &str = "-workspace";

/// Says whether a folder is a versions folder: it is no part of any project, whichever skill is under test.
pub fn is_versions_folder(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    let Some(skill) =
        name.and_then(|name| name.strip_suffix(VERSIONS_FOLDER_SUFFIX)).filter(|skill| !skill.is_empty())
    else {
        return false;
    };
    let beside = folder.with_file_name(skill);
    beside.join(SKILL_FILE).is_file()
        || skill == "commands" && beside.is_dir()
        || folder.with_file_name(format!("{skill}.md")).is_file()
}

/// Gives the folder in which the first evals of a skill are written: in the skill's folder, or beside a command
/// file.
pub fn evals_folder(skill: &Path) -> PathBuf {
    let folder = if skill.is_file() { skill.parent().unwrap_or(skill) } else { skill };
    folder.join("evals")
}

/// Removes `.` and `..` from a path without looking at the disk.
pub fn normalise_path(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            // A `..` removes a name, but not another `..`; above the root is the root.
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir | Component::Prefix(_)) => {}
                Some(Component::ParentDir | Component::CurDir) | None => out.push(".."),
            },
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => out.push(component),
        }
    }
    out
}

/// Says whether a link in a tree leads out of it, by its text alone. Such a link is not staged.
pub fn link_leads_out(link: &Path, target: &Path, root: &Path) -> bool {
    let leads_to =
        link.parent().map_or_else(|| target.to_owned(), |folder| normalise_path(&folder.join(target)));
    target.is_absolute() || !leads_to.starts_with(root)
}

/// Says whether a path is an eval file or a folder of them, by its name.
pub fn is_eval_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    name == "evals"
        // Records contain what was expected, also if the skill's folder is the project.
        || name == ".practicum"
        || name == ".clauditor"
        || name == ".skillet"
        || name == "evals.json"
        || name == "triggers.json"
        || name == "trigger-queries.json"
        || name.ends_with(".eval.json")
        || name.ends_with(".practicum.yaml")
        || name.ends_with(".practicum.yml")
        || name.ends_with(".practicum.json")
        // What a judge was asked stands on a cassette, too.
        || name.ends_with(".cassette.jsonl")
}

/// Whether a path is an eval file that an editor or a user put aside, by its name.
pub fn is_backup_of_eval_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let original = ["~", ".bak", ".old", ".orig"].iter().find_map(|ending| name.strip_suffix(ending));
    original.is_some_and(|name| is_eval_file(Path::new(name)))
}

/// Everything in a folder but what is hidden from agents.
fn visible_entries_in(
    folder: &Path,
    is_hidden: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> impl Iterator<Item = ignore::DirEntry> {
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .filter_entry(move |entry| entry.depth() == 0 || !is_hidden(entry.path()))
        .build();
    walk.flatten()
}

/// Finds the links in a skill's folder that lead out of it, so that an agent does not get their targets. Gives
/// each link's path relative to the skill, and its target.
pub fn links_leading_out(skill: &Skill) -> Vec<(PathBuf, PathBuf)> {
    if skill.form == SkillForm::Command {
        return Vec::new();
    }
    let links = visible_entries_in(skill.folder(), is_eval_file)
        .filter(|entry| entry.depth() > 0 && entry.path_is_symlink());
    let mut found: Vec<(PathBuf, PathBuf)> = links
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.path()).ok()?;
            let relative = entry.path().strip_prefix(skill.folder()).ok()?;
            link_leads_out(entry.path(), &target, skill.folder()).then(|| (relative.to_owned(), target))
        })
        .collect();
    found.sort();
    found
}

/// Computes the digest of everything that an agent gets of a skill, by relative path and content.
pub fn skill_digest(
    skill: &Skill,
    is_hidden: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> std::io::Result<Digest> {
    match skill.form {
        SkillForm::Command => Ok(Digest::of_bytes(&read_regular(&skill.file)?)),
        SkillForm::Folder => folder_digest(skill.folder(), is_hidden),
    }
}

/// Computes the digest of everything in a folder except what is hidden, by relative path and content.
pub fn folder_digest(
    folder: &Path,
    is_hidden: impl Fn(&Path) -> bool + Send + Sync + 'static,
) -> std::io::Result<Digest> {
    let mut parts: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in visible_entries_in(folder, is_hidden) {
        let path = entry.path();
        let content = match entry.file_type() {
            // The executable bit counts, because it decides whether an agent can run a script.
            Some(kind) if kind.is_file() => {
                let mode = format!("{:o}\n", path.metadata()?.mode() & 0o777);
                [mode.into_bytes(), read_regular(path)?].concat()
            }
            Some(kind) if kind.is_symlink() => {
                std::fs::read_link(path)?.into_os_string().into_encoded_bytes()
            }
            Some(_) | None => continue,
        };
        let relative = path.strip_prefix(folder).unwrap_or(path);
        parts.push((relative.to_string_lossy().into_owned(), content));
    }
    parts.sort();
    Ok(Digest::of_parts(parts.iter().flat_map(|(path, content)| [path.as_bytes(), content.as_slice()])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_beside_the_skill() {
        for (skill, expected) in [
            ("/a/greeter", "/a/greeter-workspace"),
            ("/a/greeter/SKILL.md", "/a/greeter-workspace"),
            ("/a/b/../greeter/", "/a/greeter-workspace"),
            ("/a/greeter.v2", "/a/greeter.v2-workspace"),
        ] {
            assert_eq!(versions_folder_of(Path::new(skill)), Path::new(expected), "{skill}");
        }
        let room = tempfile::tempdir().expect("a folder");
        let skill = room.path().join("greeter");
        std::fs::create_dir(&skill).expect("create");
        assert!(!is_versions_folder(&versions_folder_of(&skill)), "no skill is there");
        std::fs::write(skill.join(SKILL_FILE), "Say hello.").expect("write");
        assert!(is_versions_folder(&versions_folder_of(&skill)));
        assert!(!is_versions_folder(&skill) && !is_versions_folder(&room.path().join("-workspace")));
    }

    #[test]
    fn a_command_is_called_by_its_path_below_the_commands() {
        for (file, expected) in [
            ("/p/.claude/commands/add.md", "add"),
            ("/p/.claude/commands/skillet/add.md", "skillet:add"),
            ("/p/.claude/commands/a/b/c.md", "a:b:c"),
            ("/p/.claude/commands/deep/commands/x.md", "deep:commands:x"),
            ("/p/.claude-template/commands/skillet/add.md", "skillet:add"),
            ("/p/plugin/commands/git/add.md", "git:add"),
            ("/p/elsewhere/git/add.md", "add"),
        ] {
            assert_eq!(name_from_path(Path::new(file), SkillForm::Command), expected, "{file}");
        }
        let path = |name: &str| command_path(name).map(|path| path.to_string());
        assert_eq!(path("skillet:add").as_deref(), Some("skillet/add.md"));
        for hostile in ["..:x", "a:", "/etc:x", "a/b", "."] {
            assert_eq!(path(hostile), None, "{hostile}");
        }
    }

    #[test]
    fn versions_of_a_command_lie_where_no_agent_looks_for_commands() {
        let room = tempfile::tempdir().expect("a folder");
        let command = room.path().join(".claude/commands/git/add.md");
        std::fs::create_dir_all(command.parent().expect("a parent")).expect("create");
        std::fs::write(&command, "Add it.").expect("write");
        let workspace = versions_folder_of(&command);
        assert_eq!(workspace, room.path().join(".claude/commands-workspace/git/add"));
        assert!(is_versions_folder(&room.path().join(".claude/commands-workspace")));
    }

    #[test]
    fn a_skill_is_another_when_what_an_agent_gets_of_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("written");
        };
        write("SKILL.md", "---\nname: x\ndescription: d\n---\nbody");
        let digest =
            || skill_digest(&Skill::read(folder.path()).expect("a skill"), is_eval_file).expect("a digest");
        let first = digest();
        for unseen in [".practicum/runs/r/summary.json", "evals/evals.json", "x.practicum.yaml"] {
            write(unseen, "anything");
            assert_eq!(digest(), first, "{unseen}");
        }
        write("scripts/go.sh", "echo");
        let second = digest();
        assert_ne!(second, first);
        std::os::unix::fs::symlink("scripts/go.sh", folder.path().join("go")).expect("a link");
        assert_ne!(digest(), second);
    }

    #[test]
    fn links_that_lead_out_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let skill = folder.path().join("s");
        std::fs::create_dir_all(skill.join("evals")).expect("a folder");
        std::fs::write(skill.join(SKILL_FILE), "Say hello.").expect("written");
        for (link, target) in [
            ("shared", "../../shared"),
            ("absolute", "/etc/hosts"),
            ("gone", "../nowhere"),
            ("inside", "SKILL.md"),
            ("evals/unseen", "../../../shared"),
        ] {
            std::os::unix::fs::symlink(target, skill.join(link)).expect("a link");
        }
        let found = links_leading_out(&Skill::read(&skill).expect("a skill"));
        let names: Vec<_> = found.iter().map(|(link, _)| link.display().to_string()).collect();
        assert_eq!(names, ["absolute", "gone", "shared"]);
    }

    #[test]
    fn a_tidy_path_leads_where_the_untidy_one_did() {
        for (path, tidied) in [
            ("a/./b/../c", "a/c"),
            ("../../etc/passwd", "../../etc/passwd"),
            ("a/../../b", "../b"),
            ("/../a", "/a"),
            (".", ""),
        ] {
            assert_eq!(normalise_path(Path::new(path)), Path::new(tidied), "{path}");
        }
    }

    #[test]
    fn the_name_comes_from_the_frontmatter_then_from_the_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let skill = folder.path().join("greeter");
        std::fs::create_dir(&skill).expect("create");
        let name = |text: &str| {
            std::fs::write(skill.join(SKILL_FILE), text).expect("write");
            Skill::read(&skill)
                .map(|skill| skill.name)
                .map_err(|error| error.to_string().contains("frontmatter"))
        };
        assert_eq!(name("---\nname: hello\n---\n"), Ok("hello".to_owned()));
        assert_eq!(name("no front"), Ok("greeter".to_owned()));
        assert_eq!(name("---\nname: hello\n"), Ok("greeter".to_owned()));
        let warnings = Skill::read(&skill).expect("a skill").warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("never closed"), "{warnings:?}");
        assert_eq!(name("---\nname: \"\n---\n"), Err(true));
        assert_eq!(name("---\nname: hello\ndescription: Use when: asked\n---\n"), Ok("hello".to_owned()));
    }
}
