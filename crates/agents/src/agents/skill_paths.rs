//! Recognises paths of skills.

use practicum_skills::skill::SKILL_FILE;

/// Finds the skill whose SKILL.md this path names, if it is in a skills folder: `…/skills/<name>/SKILL.md`.
pub fn skill_of_path(path: &str) -> Option<String> {
    let path = normalise_path(path);
    let mut parts = path.rsplit('/');
    let (file, name, folder) = (parts.next()?, parts.next()?, parts.next()?);
    (file == SKILL_FILE && folder == "skills" && !name.is_empty()).then(|| name.to_owned())
}

/// Joins a path to the folder that it is relative to.
pub fn join_path(folder: &str, path: &str) -> String {
    if path.starts_with('/') || folder.is_empty() {
        return normalise_path(path);
    }
    normalise_path(&format!("{folder}/{path}"))
}

/// Removes `.`, `..` and empty parts from a path, without looking at the disk.
fn normalise_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_skill_file_in_a_skills_folder_counts() {
        for (path, expected) in [
            ("/w/.claude/skills/greeter/SKILL.md", Some("greeter")),
            (".agents/skills/greeter/SKILL.md", Some("greeter")),
            ("/w/.claude/skills/greeter/./SKILL.md", Some("greeter")),
            (".claude/skills/./greeter//SKILL.md", Some("greeter")),
            (".claude/skills/greeter/x/../SKILL.md", Some("greeter")),
            (".claude/skills/waver/../greeter/SKILL.md", Some("greeter")),
            ("/w/.claude/skills/greeter/references/x.md", None),
            ("/w/docs/SKILL.md", None),
            ("SKILL.md", None),
            ("skills//SKILL.md", None),
            ("../../SKILL.md", None),
        ] {
            assert_eq!(skill_of_path(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_path_is_relative_to_its_folder() {
        for (folder, path, expected) in [
            ("", "a", "a"),
            ("a/b", "../c", "a/c"),
            ("a", "/c", "/c"),
            ("/a", "./b/.", "/a/b"),
            ("", "../a", "../a"),
        ] {
            assert_eq!(join_path(folder, path), expected, "{folder} {path}");
        }
    }
}
