//! The skills and commands that the builtin agent can use, and the instructions that it gets when it activates
//! one.

use std::fs;
use std::path::{Path, PathBuf};

use practicum_core::model::Diagnostics;
use practicum_core::tree::{NodeData, read_regular};
use practicum_skills::skill::{read_frontmatter, split_frontmatter};

const MOST_SKILLS: usize = 500;
const LARGEST_SKILL: u64 = 1024 * 1024;
const LONGEST_DESCRIPTION: usize = 1500;

/// A skill or command that the built-in agent can activate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AvailableSkill {
    pub name: String,
    pub description: String,
    /// The absolute path with links followed. A command file has no folder of its own.
    pub folder: Option<PathBuf>,
    pub body: String,
    /// Whether the model may use the skill. Its author may reserve it for people.
    pub model_may_use: bool,
}

/// Finds the skills in the order of their folders' names, then the commands. What cannot be read is skipped.
pub fn find_skills(skills_dir: &Path) -> Vec<AvailableSkill> {
    let folders = sorted_entries(skills_dir);
    let skills = folders.iter().filter_map(|folder| read_skill(&folder.join("SKILL.md"), Some(folder)));
    let mut commands = Vec::new();
    if let Some(home) = skills_dir.parent() {
        find_commands(&home.join("commands"), "", 0, &mut commands);
    }
    skills.chain(commands).collect()
}

/// The greatest depth at which commands are looked for.
const DEEPEST_COMMAND_FOLDER: usize = 8;

/// Finds the commands in and below a folder. Each is named after its path, with colons; a name in its frontmatter
/// does not count.
fn find_commands(folder: &Path, before: &str, depth: usize, found: &mut Vec<AvailableSkill>) {
    for path in sorted_entries(folder) {
        if found.len() >= MOST_SKILLS {
            return;
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        let name = format!("{before}{stem}");
        if metadata.is_dir() && depth < DEEPEST_COMMAND_FOLDER {
            let folder = path.file_name().and_then(|name| name.to_str()).unwrap_or(stem);
            find_commands(&path, &format!("{before}{folder}:"), depth + 1, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.extend(read_skill(&path, None).map(|skill| AvailableSkill { name, ..skill }));
        }
    }
}

fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.take(MOST_SKILLS).flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Reads a skill. Its name is the one in its frontmatter, else the one of its folder.
fn read_skill(file: &Path, folder: Option<&Path>) -> Option<AvailableSkill> {
    let metadata = fs::metadata(file).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_SKILL {
        return None;
    }
    let text = String::from_utf8_lossy(&read_regular(file).ok()?).replace("\r\n", "\n");
    let (front, body) = split_frontmatter(&text);
    let front = front.map(|front| SkillHeader::read(file, front)).unwrap_or_default();
    let place = folder.map_or_else(|| file.file_stem(), Path::file_name);
    Some(AvailableSkill {
        name: front.name.or_else(|| place?.to_str().map(str::to_owned))?,
        description: front.description.unwrap_or_default(),
        folder: match folder {
            Some(folder) => Some(folder.canonicalize().ok()?),
            None => None,
        },
        body: body.trim().to_owned(),
        model_may_use: !front.reserved,
    })
}

#[derive(Default)]
struct SkillHeader {
    name: Option<String>,
    description: Option<String>,
    reserved: bool,
}

impl SkillHeader {
    fn read(file: &Path, text: &str) -> Self {
        let root = read_frontmatter(file, text, &mut Diagnostics::default());
        let field = |key: &str| {
            let text = root.as_ref()?.get(key)?.as_text()?;
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(words).filter(|words| !words.is_empty())
        };
        let reserved = root.as_ref().and_then(|root| root.get("disable-model-invocation"));
        Self {
            name: field("name"),
            description: field("description").map(shorten_description),
            reserved: reserved.is_some_and(|node| node.data == NodeData::Bool(true)),
        }
    }
}

fn shorten_description(text: String) -> String {
    text.chars().take(LONGEST_DESCRIPTION).collect()
}

/// Finds a skill by its name, or by its folder's; a plugin's name may come before it.
pub fn find_by_name<'s>(skills: &'s [AvailableSkill], name: &str) -> Option<&'s AvailableSkill> {
    let name = name.trim().trim_start_matches('/');
    let exact = |name: &str| {
        skills.iter().find(|skill| skill.name == name).or_else(|| {
            skills.iter().find(|skill| {
                skill
                    .folder
                    .as_ref()
                    .and_then(|folder| folder.file_name())
                    .is_some_and(|folder| folder == name)
            })
        })
    };
    exact(name).or_else(|| exact(name.rsplit_once(':')?.1))
}

/// Reads a prompt that is the command of a skill: gives the skill and its arguments.
pub fn find_command<'s, 'p>(
    skills: &'s [AvailableSkill],
    prompt: &'p str,
) -> Option<(&'s AvailableSkill, &'p str)> {
    let command = prompt.trim().strip_prefix('/')?;
    let (name, args) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    Some((find_by_name(skills, name)?, args.trim()))
}

impl AvailableSkill {
    /// Gives the text that the model reads when it activates the skill.
    pub fn instructions(&self, args: &str) -> String {
        let place = match &self.folder {
            Some(folder) => format!("Base directory for this skill: {}\n\n", folder.display()),
            None => String::new(),
        };
        if self.body.contains("$ARGUMENTS") {
            format!("{place}{}", self.body.replace("$ARGUMENTS", args))
        } else if args.is_empty() {
            format!("{place}{}", self.body)
        } else {
            format!("{place}{}\n\nARGUMENTS: {args}", self.body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) {
        fs::create_dir_all(folder.join(name)).expect("a folder");
        fs::write(folder.join(name).join("SKILL.md"), text).expect("a file");
    }

    #[test]
    fn frontmatter_as_people_write_it() {
        for (text, name, description, body, model_may_use) in [
            ("---\nname: n\ndescription: d e\n---\n# Body\n", "n", "d e", "# Body", true),
            ("---\r\nname: n\r\ndescription: >\r\n  d\r\n  e\r\n---\r\nB", "n", "d e", "B", true),
            ("\u{feff}---\nname: n\n---\nB\n---\nC", "n", "", "B\n---\nC", true),
            ("---\ndescription: Use when: always\n---\nB", "folder", "Use when: always", "B", true),
            ("---\nname: n\ndisable-model-invocation: true\n---\nB", "n", "", "B", false),
            ("# No frontmatter", "folder", "", "# No frontmatter", true),
            ("---\nname: never closed", "folder", "", "---\nname: never closed", true),
            ("---\n---\nB", "folder", "", "B", true),
            ("", "folder", "", "", true),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            write(folder.path(), "folder", text);
            let skills = find_skills(folder.path());
            let [skill] = skills.as_slice() else { panic!("{text:?}: {skills:?}") };
            assert_eq!(
                (skill.name.as_str(), skill.description.as_str(), skill.body.as_str(), skill.model_may_use),
                (name, description, body, model_may_use),
                "{text:?}"
            );
        }
    }

    #[test]
    fn skills_are_found_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "b", "---\nname: beta\n---\nDo $ARGUMENTS.");
        write(folder.path(), "a", "Do it.");
        fs::create_dir(folder.path().join("empty")).expect("a folder");
        fs::write(folder.path().join("file"), "").expect("a file");
        let skills = find_skills(folder.path());
        for (prompt, expected) in [
            ("/a now please", Some(("a", "now please"))),
            ("  /beta\nx", Some(("beta", "x"))),
            ("/b", Some(("beta", ""))),
            ("/plugin:beta x", Some(("beta", "x"))),
            ("/usr/bin/env", None),
            ("/", None),
            ("use /a", None),
        ] {
            let found = find_command(&skills, prompt).map(|(skill, args)| (skill.name.as_str(), args));
            assert_eq!(found, expected, "{prompt:?}");
        }
        let said = |name: &str, args: &str| {
            let text = find_by_name(&skills, name).expect("a skill").instructions(args);
            text.split_once("\n\n").expect("two parts").1.to_owned()
        };
        assert_eq!(said("a", ""), "Do it.");
        assert_eq!(said("a", "x"), "Do it.\n\nARGUMENTS: x");
        assert_eq!(said("beta", "x"), "Do x.");
        assert_eq!(find_skills(Path::new("/nowhere/at/all")), []);
    }

    #[test]
    fn a_command_file_is_a_skill_without_a_folder() {
        let home = tempfile::tempdir().expect("a folder");
        write(&home.path().join("skills"), "a", "Do it.");
        fs::create_dir(home.path().join("commands")).expect("a folder");
        for (name, text) in
            [("profile.md", "---\ndescription: d\n---\nProfile $ARGUMENTS."), ("notes.txt", "x")]
        {
            fs::write(home.path().join("commands").join(name), text).expect("a file");
        }
        let skills = find_skills(&home.path().join("skills"));
        let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["a", "profile"]);
        let (skill, args) = find_command(&skills, "/profile a.csv").expect("a command");
        assert_eq!(skill.instructions(args), "Profile a.csv.");
        assert_eq!(find_by_name(&skills, "commands"), None);
    }
}
