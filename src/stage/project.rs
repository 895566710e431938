use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{StageError, layers};
use crate::model::SkillRef;
use crate::skill::{Form, SKILL_FILE, Skill, is_eval_file, is_workspace, leads_out};

/// Paths that hold evals, which would show an agent its answers.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    paths: HashSet<PathBuf>,
}

impl Hidden {
    /// Each by the path that was given and by where that leads: a skill may be reached both ways.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let both = |path: PathBuf| path.canonicalize().ok().into_iter().chain([path]);
        Self { paths: paths.into_iter().flat_map(both).collect() }
    }

    pub(super) fn covers(&self, path: &Path) -> bool {
        is_eval_file(path) || self.paths.contains(path)
    }
}

/// Folders that are never part of what a project says: history, dependencies, build results,
/// our own records.
const LEFT_OUT: [&str; 12] = [
    ".git",
    ".practicum",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
    "dist",
    "build",
];

/// Copies a project as git would see it, without evals and without the skills under test.
pub fn copy(project: &Path, folder: &Path, hidden: &Hidden, skills: &[SkillRef]) -> Result<(), StageError> {
    let under_test = UnderTest::of(skills);
    let hidden = hidden.clone();
    let room = folder.to_owned();
    let walk = ignore::WalkBuilder::new(project)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            let path = entry.path();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let left_out =
                is_folder && entry.depth() > 0 && LEFT_OUT.iter().any(|name| entry.file_name() == *name);
            let is_copy = under_test.has(path, is_folder) || is_folder && is_workspace(path);
            !(left_out || is_copy || hidden.covers(path) || path == room)
        })
        .build();
    for entry in walk.flatten() {
        let Ok(relative) = entry.path().strip_prefix(project) else { continue };
        if relative.as_os_str().is_empty() {
            continue;
        }
        let target = folder.join(relative);
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            std::fs::create_dir_all(&target).map_err(StageError::io("creating", &target))?;
        } else {
            copy_entry(entry.path(), &target, project)?;
        }
    }
    Ok(())
}

/// Lays a folder over what is there: same paths are replaced, nothing is removed.
pub fn lay_over(overlay: &Path, folder: &Path, skills: &[SkillRef]) -> Result<(), StageError> {
    let under_test = UnderTest::of(skills);
    layers::copy_tree(overlay, folder, &|path| under_test.has(path, path.is_dir()))
}

/// The skills under test, to know their copies by: those must not stand in for what is staged, nor be there
/// in the arm without the skill.
struct UnderTest {
    names: Vec<String>,
    /// The command files among them, and where a workspace would have them.
    commands: Vec<PathBuf>,
}

impl UnderTest {
    fn of(skills: &[SkillRef]) -> Self {
        let paths = skills.iter().filter_map(|skill| skill.path.as_deref());
        let commands =
            paths.filter_map(|path| Skill::read(path).ok().filter(|skill| skill.form == Form::Command));
        let both = |skill: Skill| {
            let staged = Path::new(layers::COMMANDS).join(layers::command_file(&skill.name));
            [skill.file.canonicalize().unwrap_or(skill.file), staged]
        };
        Self {
            names: skills.iter().map(|skill| skill.name.clone()).collect(),
            commands: commands.flat_map(both).collect(),
        }
    }

    fn has(&self, path: &Path, is_folder: bool) -> bool {
        match is_folder {
            true => is_skill_named(path, &self.names),
            false => self.commands.iter().any(|command| path.ends_with(command)),
        }
    }
}

fn is_skill_named(folder: &Path, names: &[String]) -> bool {
    if !folder.join(SKILL_FILE).is_file() {
        return false;
    }
    let by_folder = folder.file_name().is_some_and(|name| names.iter().any(|known| name == known.as_str()));
    by_folder || Skill::read(folder).is_ok_and(|skill| names.contains(&skill.name))
}

/// Copies one file or link of the tree at `root`. Devices, pipes and sockets are left where they
/// are, and so are links that lead out of the tree: they would be windows for the agent.
pub fn copy_entry(from: &Path, to: &Path, root: &Path) -> Result<(), StageError> {
    let metadata = std::fs::symlink_metadata(from).map_err(StageError::io("reading", from))?;
    if metadata.is_symlink() {
        let target = std::fs::read_link(from).map_err(StageError::io("reading", from))?;
        if leads_out(from, &target, root) {
            return Ok(());
        }
        let _ = std::fs::remove_file(to);
        return std::os::unix::fs::symlink(target, to).map_err(StageError::io("linking", to));
    }
    if metadata.is_file() {
        if std::fs::symlink_metadata(to).is_ok_and(|old| old.is_symlink()) {
            std::fs::remove_file(to).map_err(StageError::io("replacing", to))?;
        }
        std::fs::copy(from, to).map_err(StageError::io("copying to", to))?;
    }
    Ok(())
}
