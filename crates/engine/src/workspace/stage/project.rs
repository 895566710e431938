//! Chooses and copies the files of a project that an agent may see.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use super::{StageError, staging_steps};
use practicum_agents::agents::COMMANDS_FOLDER;
use practicum_core::model::SkillRef;
use practicum_skills::own_files::{ContentKind, OwnFiles};
use practicum_skills::project_files::{ProjectFiles, is_credential, is_version_control};
use practicum_skills::skill::{
    SKILL_FILE, Skill, SkillForm, is_backup_of_eval_file, is_eval_file, link_leads_out,
};

/// Paths with evals or results of runs, which would show an agent the expected answers.
#[derive(Debug, Clone, Default)]
pub struct HiddenFiles {
    paths: HashSet<PathBuf>,
    own_files: Arc<OwnFiles>,
    found: Arc<Mutex<FoundFiles>>,
}

/// The files that were noticed while files were chosen for agents.
#[derive(Debug, Default)]
struct FoundFiles {
    /// Keys and passwords in skills and in folders that evals give to agents.
    credentials: BTreeSet<PathBuf>,
    /// Files that were left out because of their content.
    left_out: BTreeMap<PathBuf, ContentKind>,
    /// Evals, and results of evals, in folders that evals give to agents.
    given: BTreeSet<PathBuf>,
}

impl HiddenFiles {
    /// Hides each path as given and with its links resolved, because a skill may be reached both ways.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let both = |path: PathBuf| path.canonicalize().ok().into_iter().chain([path]);
        Self { paths: paths.into_iter().flat_map(both).collect(), ..Self::default() }
    }

    /// Hides more paths. A link is hidden, and not what it leads to.
    #[must_use]
    pub fn and_hiding(mut self, paths: &[PathBuf]) -> Self {
        self.paths.extend(paths.iter().cloned());
        self
    }

    /// Adds the files that this program wrote.
    #[must_use]
    pub(crate) fn with_own_files(self, own: OwnFiles) -> Self {
        Self { own_files: Arc::new(own), ..self }
    }

    /// Says whether an agent must not see a file of a skill or a plugin.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        is_version_control(path) || self.hides_in_project(path) || self.is_credential(path)
    }

    /// Says whether an agent must not see a file of the project because of evals. Other files that are left out of
    /// a project are listed by `ProjectFiles`.
    fn hides_in_project(&self, path: &Path) -> bool {
        self.paths.contains(path) || self.is_evals_place(path) || {
            let kind = self.own_files.kind(path);
            kind != ContentKind::Other && self.leave_out(path, kind)
        }
    }

    /// Whether a file or folder is a place of evals by its name. In a skill, a file is one only beside SKILL.md:
    /// deeper in the skill it may be a template, and its content decides.
    fn is_evals_place(&self, path: &Path) -> bool {
        let is_beside_skill = || path.parent().is_some_and(|folder| folder.join(SKILL_FILE).is_file());
        match (self.own_files.is_in_skill(path), path.is_dir()) {
            (false, _) => is_eval_file(path),
            // A folder of evals deeper in the skill may be missed.
            (true, true) if path.ends_with("evals") && !is_beside_skill() => {
                self.leave_out(path, ContentKind::Evals)
            }
            (true, true) => is_eval_file(path),
            (true, false) if is_eval_file(path) => is_beside_skill(),
            (true, false) => {
                is_backup_of_eval_file(path) && is_beside_skill() && self.leave_out(path, ContentKind::Evals)
            }
        }
    }

    /// Whether an agent must not see a file in a folder that its case gives to it. Such a folder may hold evals
    /// and a history, but neither what this program wrote nor keys and passwords, unless the case names exactly
    /// that folder of credentials.
    pub(crate) fn hides_in_given_folder(&self, folder: &Path, path: &Path) -> bool {
        let kind = self.own_files.kind(path);
        if kind == ContentKind::Written {
            return self.leave_out(path, kind);
        }
        let is_left_out = !is_credential(folder) && self.is_credential(path);
        let is_evals =
            matches!(kind, ContentKind::Evals | ContentKind::Results) || path.is_file() && is_eval_file(path);
        if is_evals && !is_left_out {
            self.note(|found| found.given.insert(path.to_owned()));
        }
        is_left_out
    }

    /// Records that a file is left out because of its content. Always returns true.
    fn leave_out(&self, path: &Path, kind: ContentKind) -> bool {
        self.note(|found| found.left_out.insert(path.to_owned(), kind));
        true
    }

    fn is_credential(&self, path: &Path) -> bool {
        let is_credential = is_credential(path);
        if is_credential {
            self.note(|found| found.credentials.insert(path.to_owned()));
        }
        is_credential
    }

    fn note<T>(&self, add: impl FnOnce(&mut FoundFiles) -> T) {
        if let Ok(mut found) = self.found.lock() {
            add(&mut found);
        }
    }

    /// Gives the credential files and folders that were left out of skills and of folders that cases give.
    pub fn credentials(&self) -> Vec<PathBuf> {
        self.found.lock().map(|found| found.credentials.iter().cloned().collect()).unwrap_or_default()
    }

    /// Gives the files of this kind that agents do not get because of their content (not because of their names,
    /// and not because this run is about them).
    pub fn left_out(&self, kind: ContentKind) -> Vec<PathBuf> {
        let Ok(found) = self.found.lock() else { return Vec::new() };
        let of_kind = found.left_out.iter().filter(|(path, is)| **is == kind && !found.given.contains(*path));
        of_kind.map(|(path, _)| path.clone()).collect()
    }

    /// Gives the eval files that agents do get, because they are in a folder that a case gives to them.
    pub(crate) fn given_evals(&self) -> Vec<PathBuf> {
        self.found.lock().map(|found| found.given.iter().cloned().collect()).unwrap_or_default()
    }
}

/// Copies a project without evals, credentials and the like, and without the skills under test. Files and folders
/// keep their times.
pub fn copy_project(
    project: &Path,
    folder: &Path,
    hidden: &HiddenFiles,
    skills: &[SkillRef],
) -> Result<(), StageError> {
    let listed = staged_of_project(project, hidden, skills, Some(folder));
    for relative in &listed.folders {
        let to = folder.join(relative);
        std::fs::create_dir_all(&to).map_err(StageError::io("creating", &to))?;
    }
    for relative in &listed.files {
        copy_entry(&project.join(relative), &folder.join(relative), project)?;
    }
    // Inner folders come first, because adding a file to a folder changes the folder's time.
    for relative in listed.folders.iter().rev() {
        copy_modified_time(&project.join(relative), &folder.join(relative))?;
    }
    Ok(())
}

/// Says whether a project is itself a skill under test. Then everything in it belongs to the skill, and nothing is
/// copied.
pub(crate) fn is_skill_under_test(project: &Path, skills: &[SkillRef]) -> bool {
    SkillsUnderTest::from_refs(skills).has(project, true)
}

/// Lists the staged files of a project, for copying and for detecting changes. The workspace itself is left out,
/// in case it is inside the project.
pub(crate) fn staged_of_project(
    project: &Path,
    hidden: &HiddenFiles,
    skills: &[SkillRef],
    workspace: Option<&Path>,
) -> ProjectFiles {
    let under_test = SkillsUnderTest::from_refs(skills);
    if under_test.has(project, true) {
        return ProjectFiles::default();
    }
    ProjectFiles::list(project, &|path, is_folder| {
        Some(path) == workspace || under_test.has(path, is_folder) || hidden.hides_in_project(path)
    })
}

/// Lists the staged files of a folder that an eval gives to agents.
pub(crate) fn staged_of_folder(
    folder: &Path,
    hidden: &HiddenFiles,
) -> impl Iterator<Item = ignore::DirEntry> {
    let (hidden, root) = (hidden.clone(), folder.to_owned());
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .filter_entry(move |entry| entry.depth() == 0 || !hidden.hides_in_given_folder(&root, entry.path()))
        .build();
    walk.flatten().filter(|entry| entry.depth() > 0)
}

/// Copies a folder over the workspace: files at the same paths are replaced, nothing is removed.
pub fn apply_overlay(
    overlay: &Path,
    folder: &Path,
    hidden: &HiddenFiles,
    skills: &[SkillRef],
) -> Result<(), StageError> {
    let under_test = SkillsUnderTest::from_refs(skills);
    staging_steps::copy_tree(overlay, folder, &|path| {
        hidden.hides_in_given_folder(overlay, path) || under_test.has(path, path.is_dir())
    })
}

/// The skills under test, by which their copies are recognised. A copy must not replace the staged skill, and must
/// not be there in the arm without the skill.
struct SkillsUnderTest {
    names: Vec<String>,
    /// The command files among them, and their paths in a workspace.
    commands: Vec<PathBuf>,
}

impl SkillsUnderTest {
    fn from_refs(skills: &[SkillRef]) -> Self {
        let paths = skills.iter().filter_map(|skill| skill.path.as_deref());
        let commands =
            paths.filter_map(|path| Skill::read(path).ok().filter(|skill| skill.form == SkillForm::Command));
        let both = |skill: Skill| {
            let staged = Path::new(COMMANDS_FOLDER).join(staging_steps::command_file(&skill.name));
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
            false => {
                let is_skill_file = path.file_name().is_some_and(|name| name == SKILL_FILE);
                let folder = path.parent().filter(|_| is_skill_file);
                folder.is_some_and(|folder| is_skill_named(folder, &self.names))
                    || self.commands.iter().any(|command| path.ends_with(command))
            }
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

/// Copies one file or link of the tree at `root`. Devices, pipes and sockets are left out. So are links that lead
/// out of the tree, because the agent could read other files through them.
pub fn copy_entry(from: &Path, to: &Path, root: &Path) -> Result<(), StageError> {
    let metadata = std::fs::symlink_metadata(from).map_err(StageError::io("reading", from))?;
    if metadata.is_symlink() {
        let target = std::fs::read_link(from).map_err(StageError::io("reading", from))?;
        if link_leads_out(from, &target, root) {
            return Ok(());
        }
        let _ = std::fs::remove_file(to);
        std::os::unix::fs::symlink(target, to).map_err(StageError::io("linking", to))?;
        return set_modified_time(to, &metadata);
    }
    if metadata.is_file() {
        if std::fs::symlink_metadata(to).is_ok_and(|old| old.is_symlink()) {
            std::fs::remove_file(to).map_err(StageError::io("replacing", to))?;
        }
        copy_content(from, to, &metadata)?;
        set_modified_time(to, &metadata)?;
    }
    Ok(())
}

/// The largest file that is staged. Copying a larger one for each trial would fill the disk; a file may say that it is
/// that large and have only holes.
pub const LARGEST_STAGED_FILE: u64 = 4 * 1024 * 1024 * 1024;

/// Copies a regular file. Where the file system can do that, this shares the content until one of the two files is
/// changed (copy_file_range on Linux, fclonefileat on macOS).
pub fn copy_file(from: &Path, to: &Path) -> Result<(), StageError> {
    copy_content(from, to, &std::fs::metadata(from).map_err(StageError::io("reading", from))?)
}

fn copy_content(from: &Path, to: &Path, metadata: &Metadata) -> Result<(), StageError> {
    if metadata.len() > LARGEST_STAGED_FILE {
        let large = std::io::Error::other(format!("it is larger than {} GB", LARGEST_STAGED_FILE >> 30));
        return Err(StageError::io("copying", from)(large));
    }
    std::fs::copy(from, to).map(|_| ()).map_err(StageError::io("copying to", to))
}

/// Gives a copy the modification time of the original, as `rsync -a` does, because tools depend on it. For a link,
/// it is the link's own time.
pub fn copy_modified_time(from: &Path, to: &Path) -> Result<(), StageError> {
    set_modified_time(to, &std::fs::symlink_metadata(from).map_err(StageError::io("reading", from))?)
}

fn set_modified_time(to: &Path, metadata: &Metadata) -> Result<(), StageError> {
    let changed = Timespec { tv_sec: metadata.mtime(), tv_nsec: metadata.mtime_nsec() };
    let times = Timestamps { last_access: changed, last_modification: changed };
    utimensat(CWD, to, &times, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|error| StageError::io("setting the time of", to)(error.into()))
}
