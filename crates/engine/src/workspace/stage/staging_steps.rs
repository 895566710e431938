//! The single steps of staging: fixtures, skills and copies of folders.

use std::path::{Path, PathBuf};

use super::StageError;
use super::project::{HiddenFiles, copy_entry, copy_file, copy_modified_time};
use practicum_agents::agents::COMMANDS_FOLDER;
use practicum_core::model::{Fixture, InlineFile, RelPath};
use practicum_core::tree::read_regular;
use practicum_skills::skill::{SKILL_FILE, Skill, SkillForm, command_path, remove_key, split_frontmatter};

/// Copies a fixture to its destination, replacing what is there. A file that the case itself names is copied
/// whatever its content.
pub fn stage_fixture(fixture: &Fixture, folder: &Path, hidden: &HiddenFiles) -> Result<(), StageError> {
    let to = fixture.destination.join_to(folder);
    let Ok(metadata) = std::fs::metadata(&fixture.source) else {
        return Err(StageError::MissingFixture(fixture.source.clone()));
    };
    make_parent(&to, folder)?;
    if metadata.is_dir() {
        return copy_tree(&fixture.source, &to, &|path| hidden.hides_in_given_folder(&fixture.source, path));
    }
    if !metadata.is_file() {
        let error = std::io::Error::other("it is neither a regular file nor a folder");
        return Err(StageError::io("copying", &fixture.source)(error));
    }
    if std::fs::symlink_metadata(&to).is_ok_and(|old| old.is_symlink()) {
        std::fs::remove_file(&to).map_err(StageError::io("replacing", &to))?;
    }
    copy_file(&fixture.source, &to)?;
    let real = fixture.source.canonicalize().map_err(StageError::io("resolving", &fixture.source))?;
    copy_modified_time(&real, &to)
}

/// Writes a file whose content the eval file gives, replacing what is there.
pub fn write_inline_file(file: &InlineFile, folder: &Path) -> Result<(), StageError> {
    let to = file.path.join_to(folder);
    make_parent(&to, folder)?;
    if std::fs::symlink_metadata(&to).is_ok_and(|old| old.is_symlink()) {
        std::fs::remove_file(&to).map_err(StageError::io("replacing", &to))?;
    }
    std::fs::write(&to, &file.content).map_err(StageError::io("writing", &to))
}

/// Makes the folders above `to`. Refuses to go through a link from an earlier layer.
fn make_parent(to: &Path, folder: &Path) -> Result<(), StageError> {
    let Some(parent) = to.parent() else { return Ok(()) };
    std::fs::create_dir_all(parent).map_err(StageError::io("creating", parent))?;
    let inside = parent
        .canonicalize()
        .and_then(|parent| folder.canonicalize().map(|folder| parent.starts_with(folder)))
        .map_err(StageError::io("resolving", parent))?;
    if inside {
        return Ok(());
    }
    let escape = std::io::Error::other("a link leads out of the workspace");
    Err(StageError::Io { what: "writing to", path: to.to_owned(), error: escape })
}

/// Copies a skill into the agent's skills folder without its evals, and gives its name there. With an alias, the
/// SKILL.md has the alias as its name. With a canary, the body begins with an extra line. Without either, the copy
/// is identical.
pub fn copy_skill(
    path: &Path,
    alias: Option<&str>,
    canary: Option<&str>,
    folder: &Path,
    skills_dir: &RelPath,
    hidden: &HiddenFiles,
) -> Result<String, StageError> {
    let skill = Skill::read(path)?;
    let name = alias.unwrap_or(&skill.name).to_owned();
    match skill.form {
        SkillForm::Folder => {
            // A name from a hostile file must not become a path.
            let folder_name: PathBuf = match RelPath::new(&name) {
                Some(relative) if !relative.as_str().contains('/') => relative.as_str().into(),
                _ => "skill".into(),
            };
            let to = skills_dir.join_to(folder).join(folder_name);
            make_parent(&to, folder)?;
            if std::fs::symlink_metadata(&to).is_ok() {
                super::remove_workspace(&to);
            }
            copy_tree(skill.folder(), &to, &|path| hidden.hides(path))?;
            let file = to.join(SKILL_FILE);
            if alias.is_some() {
                rewrite(&file, |text| with_name(text, &name))?;
            }
            if let Some(marker) = canary {
                rewrite(&file, |text| with_canary(text, marker))?;
            }
        }
        SkillForm::Command => {
            let to = folder.join(COMMANDS_FOLDER).join(command_file(&name));
            make_parent(&to, folder)?;
            if std::fs::symlink_metadata(&to).is_ok_and(|old| old.is_symlink()) {
                std::fs::remove_file(&to).map_err(StageError::io("replacing", &to))?;
            }
            copy_file(&skill.file, &to)?;
            if let Some(marker) = canary {
                rewrite(&to, |text| with_canary(text, marker))?;
            }
        }
    }
    Ok(name)
}

/// Gives the file of a command below the folder in which agents look for commands. The subfolders stay, because an agent calls a command by its
/// path.
pub fn command_file(name: &str) -> PathBuf {
    command_path(name).map_or_else(|| "skill.md".into(), |path| path.as_str().into())
}

/// Copies a folder's files and links, except those for which `leave_out` is true.
pub fn copy_tree(root: &Path, to: &Path, leave_out: &dyn Fn(&Path) -> bool) -> Result<(), StageError> {
    // A list instead of recursion: a hostile tree may have thousands of folders inside each other.
    let mut folders = vec![(root.to_owned(), to.to_owned())];
    let mut at = 0;
    while let Some((from, to)) = folders.get(at).cloned() {
        at += 1;
        std::fs::create_dir_all(&to).map_err(StageError::io("creating", &to))?;
        let entries = std::fs::read_dir(&from).map_err(StageError::io("reading", &from))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if leave_out(&path) {
                continue;
            }
            let target = to.join(entry.file_name());
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push((path, target)),
                false => copy_entry(&path, &target, root)?,
            }
        }
    }
    // The times of folders come last, and the innermost first: what is copied into a folder changes its time.
    folders.iter().rev().try_for_each(|(from, to)| copy_modified_time(from, to))
}

/// Changes a text file. Invalid UTF-8 becomes the replacement character, as in the agents that read such files.
fn rewrite(file: &Path, change: impl FnOnce(&str) -> String) -> Result<(), StageError> {
    let bytes = read_regular(file).map_err(StageError::io("reading", file))?;
    std::fs::write(file, change(&String::from_utf8_lossy(&bytes))).map_err(StageError::io("writing", file))
}

/// Adds a comment before the body. It gives no instruction, and is seen even if only a little of the body is read.
fn with_canary(text: &str, marker: &str) -> String {
    let (_, body) = split_frontmatter(text);
    let (front, body) = text.split_at(text.len() - body.len());
    format!("{front}<!-- {marker} -->\n{body}")
}

/// Replaces the name in the frontmatter, line by line, so that nothing else changes.
fn with_name(text: &str, name: &str) -> String {
    let (front, body) = split_frontmatter(text);
    let rest = remove_key(front.unwrap_or_default(), "name");
    // All keys of a frontmatter may be indented, so this one must be too.
    let first = rest.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let indent = first.map_or("", |line| &line[..line.len() - line.trim_start().len()]);
    format!("---\n{indent}name: {name}\n{rest}---\n{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_one_line_before_the_body() {
        for (text, expected) in [
            ("---\nname: a\n---\nbody\n", "---\nname: a\n---\n<!-- m -->\nbody\n"),
            ("---\nname: a\n---\n", "---\nname: a\n---\n<!-- m -->\n"),
            ("body only", "<!-- m -->\nbody only"),
            ("---\nnever closed", "<!-- m -->\n---\nnever closed"),
        ] {
            assert_eq!(with_canary(text, "m"), expected);
        }
    }

    #[test]
    fn an_alias_changes_the_name_and_nothing_else() {
        for (text, expected) in [
            ("---\nname: a\ndescription: d\n---\nbody\n", "---\nname: x-1\ndescription: d\n---\nbody\n"),
            ("body only", "---\nname: x-1\n---\nbody only"),
            (
                "---\ndescription: |\n  name: inside\n---\n",
                "---\nname: x-1\ndescription: |\n  name: inside\n---\n",
            ),
            (
                "---\ndescription: Use when: x\nname: a: b\nargument-hint: [x] [y]\n---\nb",
                "---\nname: x-1\ndescription: Use when: x\nargument-hint: [x] [y]\n---\nb",
            ),
            ("---\nname: >\n  a\n  b\ndescription: d\n---\n", "---\nname: x-1\ndescription: d\n---\n"),
            ("---\n'name': a\ndescription: d\n---\n", "---\nname: x-1\ndescription: d\n---\n"),
            ("---\n  name: a\n  description: d\n---\n", "---\n  name: x-1\n  description: d\n---\n"),
        ] {
            assert_eq!(with_name(text, "x-1"), expected);
        }
    }
}
