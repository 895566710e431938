use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StageError;
use crate::model::SkillRef;
use crate::own_files::OwnFiles;
use crate::skill::{SKILL_FILE, Skill, is_eval_file, is_workspace, leads_out};

/// Paths that hold evals or what runs came to, which would show an agent its answers.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    paths: HashSet<PathBuf>,
    own: Arc<OwnFiles>,
}

impl Hidden {
    /// Each by the path that was given and by where that leads: a skill may be reached both ways.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let both = |path: PathBuf| path.canonicalize().ok().into_iter().chain([path]);
        Self { paths: paths.into_iter().flat_map(both).collect(), own: Arc::default() }
    }

    /// These, and the files that this program wrote.
    #[must_use]
    pub fn and_own(self, own: OwnFiles) -> Self {
        Self { own: Arc::new(own), ..self }
    }

    /// Whether an agent must not see a file of the project or of a skill.
    pub fn covers(&self, path: &Path) -> bool {
        is_eval_file(path) || self.paths.contains(path) || self.own.has_or_is_evals(path)
    }

    /// Whether this program wrote a file. Folders that evals give to agents may hold evals, but not these.
    pub fn covers_as_own(&self, path: &Path) -> bool {
        self.own.has(path)
    }

    /// The files that were left out because of what they hold, and not by their names or because this run
    /// is about them: those that this program wrote, and evals.
    pub fn left_out(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        self.own.found()
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
    for entry in staged_of_project(project, hidden, skills, Some(folder)) {
        let Ok(relative) = entry.path().strip_prefix(project) else { continue };
        let target = folder.join(relative);
        if entry.file_type().is_some_and(|kind| kind.is_dir()) {
            std::fs::create_dir_all(&target).map_err(StageError::io("creating", &target))?;
        } else {
            copy_entry(entry.path(), &target, project)?;
        }
    }
    Ok(())
}

/// What is staged of a project, for those who copy it and for those who ask whether it has changed: all but
/// the room that it is staged in, should that lie in the project.
pub fn staged_of_project(
    project: &Path,
    hidden: &Hidden,
    skills: &[SkillRef],
    room: Option<&Path>,
) -> impl Iterator<Item = ignore::DirEntry> {
    let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
    let hidden = hidden.clone();
    let room = room.map(Path::to_owned);
    let walk = ignore::WalkBuilder::new(project)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            if entry.depth() == 0 {
                return true;
            }
            let path = entry.path();
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let left_out = is_folder && LEFT_OUT.iter().any(|name| entry.file_name() == *name);
            let is_copy = is_folder && (is_skill_named(path, &names) || is_workspace(path));
            !(left_out || is_copy || hidden.covers(path) || Some(path) == room.as_deref())
        })
        .build();
    walk.flatten().filter(|entry| entry.depth() > 0)
}

/// What is staged of a folder that an eval gives to agents.
pub fn staged_of_folder(folder: &Path, hidden: &Hidden) -> impl Iterator<Item = ignore::DirEntry> {
    let hidden = hidden.clone();
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .filter_entry(move |entry| entry.depth() == 0 || !hidden.covers_as_own(entry.path()))
        .build();
    walk.flatten().filter(|entry| entry.depth() > 0)
}

/// Lays a folder over what is there: same paths are replaced, nothing is removed.
pub fn lay_over(
    overlay: &Path,
    folder: &Path,
    hidden: &Hidden,
    skills: &[SkillRef],
) -> Result<(), StageError> {
    let names: Vec<String> = skills.iter().map(|skill| skill.name.clone()).collect();
    super::layers::copy_tree(overlay, folder, &|path| {
        hidden.covers_as_own(path) || (path.is_dir() && is_skill_named(path, &names))
    })
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
