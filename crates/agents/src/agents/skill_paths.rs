//! Recognises paths of skills.

use practicum_skills::skill::SKILL_FILE;

/// Finds the skill whose SKILL.md this path names, if it is in a skills folder: `…/skills/<name>/SKILL.md`.
pub fn skill_of_path(path: &str) -> Option<&str> {
    let mut parts = path.rsplit('/');
    let (file, name, folder) = (parts.next()?, parts.next()?, parts.next()?);
    (file == SKILL_FILE && folder == "skills" && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_skill_file_in_a_skills_folder_counts() {
        for (path, expected) in [
            ("/w/.claude/skills/greeter/SKILL.md", Some("greeter")),
            (".agents/skills/greeter/SKILL.md", Some("greeter")),
            ("/w/.claude/skills/greeter/references/x.md", None),
            ("/w/docs/SKILL.md", None),
            ("SKILL.md", None),
            ("skills//SKILL.md", None),
        ] {
            assert_eq!(skill_of_path(path), expected, "{path}");
        }
    }
}
