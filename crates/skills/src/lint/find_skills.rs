//! Finds the skill files to lint.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::project_files::{has_unreadable_ignore_file, skip_unreadable_ignore_files};
use crate::skill::{SKILL_FILE, is_command_file};

/// An error: no skill can be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// A path that does not exist.
    #[error("there is no {0}")]
    Missing(PathBuf),
    #[error(
        "{0} is not a skill: name a SKILL.md, a command file, or a folder that has one in it or below it"
    )]
    /// A file that is no skill.
    NotASkill(PathBuf),
    /// Folders in which no skill was found.
    #[error("no skills found; looked for SKILL.md in and below {}", join_paths(.0))]
    NothingFound(Vec<PathBuf>),
}

fn join_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Finds the SKILL.md files at these paths, each once, sorted by path. A file whose name is nearly SKILL.md is
/// found too, because a rule reports it.
pub fn find_skill_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, FindError> {
    let mut files = Vec::new();
    for path in paths {
        if (is_skill_file(path) || is_command_file(path)) && path.symlink_metadata().is_ok() {
            files.push(path.clone());
        } else if path.is_dir() {
            files.extend(search_folder(path));
        } else if path.exists() {
            return Err(FindError::NotASkill(path.clone()));
        } else {
            return Err(FindError::Missing(path.clone()));
        }
    }
    let mut files: Vec<PathBuf> = files.into_iter().map(strip_current_dir).collect();
    // The real folder of a skill goes before links to it, because the folder of a link may have another name.
    files.sort_by_cached_key(|file| (is_reached_by_link(file), file.clone()));
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())));
    files.sort();
    if files.is_empty() { Err(FindError::NothingFound(paths.to_vec())) } else { Ok(files) }
}

fn is_skill_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(SKILL_FILE))
}

/// Says whether a path is a command file in the folder where an agent finds commands. Other Markdown in a searched
/// folder is only text.
fn is_in_commands_folder(path: &Path) -> bool {
    let folders: Vec<_> = path.iter().collect();
    let is_there = folders.windows(2).any(|pair| pair[0] == ".claude" && pair[1] == "commands");
    is_there && is_command_file(path) && path.is_file()
}

/// Removes a leading `./`, which the user did not type.
fn strip_current_dir(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}

fn is_reached_by_link(file: &Path) -> bool {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    is_link(file) || file.parent().is_some_and(is_link)
}

/// Finds every skill in and below a folder, without what git ignores. Everything below a skill belongs to it,
/// except a folder `skills`. Links are followed only if they lead directly to a skill.
fn search_folder(folder: &Path) -> Vec<PathBuf> {
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.hidden(false).require_git(false).follow_links(false);
    skip_unreadable_ignore_files(&mut walk, folder);
    let walk = walk
        .filter_entry(|entry| {
            let name = entry.file_name();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let below_a_skill = || {
                entry.path().parent().is_some_and(|parent| parent.join(SKILL_FILE).symlink_metadata().is_ok())
            };
            entry.depth() == 0
                || !is_folder
                || !(name == ".git" || name == "node_modules" || name == ".practicum" || name == "target")
                    && (name == "skills" || name == SKILL_FILE || !below_a_skill())
                    && !has_unreadable_ignore_file(entry.path())
        })
        .build();
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in walk.flatten().filter(|entry| entry.depth() > 0) {
        let path = entry.path();
        let exact = path.file_name().is_some_and(|name| name == SKILL_FILE);
        if exact || is_skill_file(path) && path.is_file() || is_in_commands_folder(path) {
            files.push(path.to_owned());
        } else if entry.path_is_symlink() && path.join(SKILL_FILE).is_file() {
            files.push(path.join(SKILL_FILE));
        }
    }
    // The user may name a skill that git ignores.
    let own = folder.join(SKILL_FILE);
    if own.symlink_metadata().is_ok() {
        files.push(own);
    }
    let exact: HashSet<PathBuf> = files
        .iter()
        .filter(|file| file.file_name().is_some_and(|name| name == SKILL_FILE))
        .filter_map(|file| file.parent().map(Path::to_owned))
        .collect();
    files.retain(|file| {
        file.file_name().is_some_and(|name| name == SKILL_FILE)
            || !is_skill_file(file)
            || !file.parent().is_some_and(|folder| exact.contains(folder))
    });
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, "x").expect("write");
        }
        folder
    }

    fn found(folder: &Path, paths: &[&str]) -> Vec<String> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
        let relative = |file: PathBuf| {
            file.strip_prefix(folder).expect("below the folder").to_string_lossy().into_owned()
        };
        find_skill_files(&paths).map(|files| files.into_iter().map(relative).collect()).unwrap_or_default()
    }

    #[test]
    fn folders_are_searched_and_what_belongs_to_a_skill_is_not_a_second_one() {
        let folder = project(&[
            "SKILL.md",
            "skills/a/SKILL.md",
            "skills/a/evals/fixtures/b/SKILL.md",
            "skills/c/skill.md",
            "skills/d/SKILL.md",
            "skills/d/Skill.md",
            "assets/template/SKILL.md",
            ".claude/other.md",
        ]);
        assert_eq!(
            found(folder.path(), &["."]),
            ["SKILL.md", "skills/a/SKILL.md", "skills/c/skill.md", "skills/d/SKILL.md"]
        );
        assert_eq!(found(folder.path(), &["skills/a", "skills/a/SKILL.md"]), ["skills/a/SKILL.md"]);
    }

    #[test]
    fn hidden_folders_are_searched_and_ignored_ones_are_not_unless_named() {
        let folder = project(&[".claude/skills/a/SKILL.md", "node_modules/b/SKILL.md", "dist/c/SKILL.md"]);
        std::fs::write(folder.path().join(".gitignore"), "dist\n").expect("write");
        assert_eq!(found(folder.path(), &["."]), [".claude/skills/a/SKILL.md"]);
        assert_eq!(found(folder.path(), &["dist/c"]), ["dist/c/SKILL.md"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_skills_and_never_in_circles() {
        let folder = project(&["real/a/SKILL.md", "z/SKILL.md"]);
        let link = |from: &str, to: &str| {
            let path = folder.path().join(from);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::os::unix::fs::symlink(to, path).expect("link");
        };
        link("real/loop", "..");
        link("real/a/self", ".");
        link("links/a", "../real/a");
        link("links/root", "/");
        assert_eq!(found(folder.path(), &["."]), ["real/a/SKILL.md", "z/SKILL.md"]);
        assert_eq!(found(folder.path(), &["links"]), ["links/a/SKILL.md"]);
    }

    #[test]
    fn errors_say_where_it_looked() {
        let folder = project(&["notes.md", "empty/x.txt"]);
        for (path, expected) in [
            ("nowhere", "there is no "),
            ("notes.md", "is not a skill"),
            ("empty", "no skills found; looked for SKILL.md in and below "),
        ] {
            let error = find_skill_files(&[folder.path().join(path)]).expect_err("an error").to_string();
            assert!(error.contains(expected) && error.contains(path), "{error}");
        }
    }
}
