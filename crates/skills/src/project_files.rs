//! Selects the files of a project that an agent gets a copy of.
//!
//! In: a project's folder. Out: the files and folders to copy, and what is left out, with the reason. Never:
//! copies anything; asks git, because a skill may need what git ignores.

mod build_folders;
mod credentials;
mod ignore_files;

pub use ignore_files::{has_unreadable_ignore_file, skip_unreadable_ignore_files};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::skill::{is_eval_file, is_versions_folder, link_leads_out};

/// The reason why a file or folder of a project is not copied for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusionReason {
    VersionControl,
    Evals,
    RunRecord,
    Credentials,
    BuildFolder,
    LinkOut,
    Unreadable,
}

impl ExclusionReason {
    /// Gives the name for one thing and for several things that are left out for this reason.
    fn singular_and_plural(self) -> (&'static str, &'static str) {
        match self {
            ExclusionReason::VersionControl => ("entry of version control", "entries of version control"),
            ExclusionReason::Evals => ("place of evals", "places of evals"),
            ExclusionReason::RunRecord => ("record of runs", "records of runs"),
            ExclusionReason::Credentials => {
                ("file or folder of credentials", "files or folders of credentials")
            }
            ExclusionReason::BuildFolder => ("build folder", "build folders"),
            ExclusionReason::LinkOut => ("link that leads out of it", "links that lead out of it"),
            ExclusionReason::Unreadable => ("entry that cannot be read", "entries that cannot be read"),
        }
    }
}

/// The contents of a project, with relative paths in order. A folder comes before its contents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    pub folders: Vec<PathBuf>,
    /// Regular files and links.
    pub files: Vec<PathBuf>,
    pub left_out: BTreeMap<ExclusionReason, Vec<PathBuf>>,
}

/// The greatest number of paths that are named for one reason.
const MAX_NAMED_PATHS: usize = 5;

impl ProjectFiles {
    /// Lists a project. `skip` gets a path and whether it is a folder. Paths that it selects are neither listed
    /// nor counted, because they are no part of the project.
    pub fn list(project: &Path, skip: &dyn Fn(&Path, bool) -> bool) -> Self {
        let mut files = Self::default();
        let mut open = vec![project.to_owned()];
        while let Some(folder) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                files.folders.retain(|known| project.join(known) != folder);
                files.leave_out(project, &folder, ExclusionReason::Unreadable);
                continue;
            };
            for entry in entries.flatten() {
                let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
                if is_own_record(&path) || skip(&path, kind.is_dir()) {
                    continue;
                }
                if let Some(reason) = reason_to_leave_out(&path, kind, project) {
                    files.leave_out(project, &path, reason);
                } else if let Ok(relative) = path.strip_prefix(project) {
                    match kind.is_dir() {
                        true => files.folders.push(relative.to_owned()),
                        // Devices, pipes and sockets cannot be copied.
                        false if kind.is_file() || kind.is_symlink() => files.files.push(relative.to_owned()),
                        false => continue,
                    }
                    if kind.is_dir() {
                        open.push(path);
                    }
                }
            }
        }
        files.folders.sort();
        files.files.sort();
        files.left_out.values_mut().for_each(|paths| paths.sort());
        files
    }

    fn leave_out(&mut self, project: &Path, path: &Path, reason: ExclusionReason) {
        let relative = path.strip_prefix(project).unwrap_or(path);
        self.left_out.entry(reason).or_default().push(relative.to_owned());
    }

    /// Describes what is left out, in one sentence with the numbers and the first names. `None` if nothing is.
    pub fn describe_left_out(&self) -> Option<String> {
        let parts: Vec<String> =
            self.left_out.iter().map(|(reason, paths)| describe_paths(*reason, paths)).collect();
        (!parts.is_empty()).then(|| format!("not copied from the project: {}", parts.join(", ")))
    }
}

fn describe_paths(reason: ExclusionReason, paths: &[PathBuf]) -> String {
    let (one, several) = reason.singular_and_plural();
    let count = paths.len();
    let mut names: Vec<String> =
        paths.iter().take(MAX_NAMED_PATHS).map(|path| path.display().to_string()).collect();
    if count > MAX_NAMED_PATHS {
        names.push("…".to_owned());
    }
    format!("{count} {} ({})", if count == 1 { one } else { several }, names.join(", "))
}

/// Says whether a file, folder or link contains keys or passwords, wherever it is. A folder that is a skill never
/// does, whatever its name.
pub fn is_credential(path: &Path) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    name.is_some_and(|name| credentials::is_credential(path, &name, metadata.file_type()))
}

/// Says whether a file or folder of this name belongs to version control, whose history contains evals. A worktree
/// or submodule has a file of such a name.
pub fn is_version_control(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    name.is_some_and(|name| [".git", ".hg", ".svn", ".jj", ".bzr", "cvs"].contains(&name.as_str()))
}

/// Says whether a path contains this program's own records, which are no part of any project.
fn is_own_record(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".practicum")
}

/// Gives the reason why a file, folder or link of a project is never copied: by its name, its place and, if the
/// name is not enough, its content.
fn reason_to_leave_out(path: &Path, kind: std::fs::FileType, project: &Path) -> Option<ExclusionReason> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    if is_version_control(path) {
        return Some(ExclusionReason::VersionControl);
    }
    if credentials::is_credential(path, &name, kind) {
        return Some(ExclusionReason::Credentials);
    }
    if kind.is_dir() && is_record_of_tool(path, &name) {
        return Some(ExclusionReason::RunRecord);
    }
    if is_eval_file(path) {
        return Some(ExclusionReason::Evals);
    }
    if kind.is_dir() {
        return build_folders::is_build_folder(path, &name).then_some(ExclusionReason::BuildFolder);
    }
    if kind.is_symlink() {
        let leads_out =
            std::fs::read_link(path).map_or(true, |target| link_leads_out(path, &target, project));
        return leads_out.then_some(ExclusionReason::LinkOut);
    }
    let readable = rustix::fs::access(path, rustix::fs::Access::READ_OK).is_ok();
    (kind.is_file() && !readable).then_some(ExclusionReason::Unreadable)
}

/// Says whether a folder contains the records of an eval tool: clauditor, Skillet, BMad, or a workspace with the
/// gradings of a skill's versions. `name` is its name in lowercase.
fn is_record_of_tool(folder: &Path, name: &str) -> bool {
    let is_record = |name: &str| {
        ["history.json", "benchmark.json", "grading", "grading.json"].contains(&name)
            || name.starts_with("iteration-")
    };
    let has_records = || {
        let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_str().is_some_and(is_record))
    };
    [".clauditor", ".skillet", "eval-runs"].contains(&name)
        || is_versions_folder(folder)
        || name.ends_with("-workspace") && has_records()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a project with these files and their contents.
    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, text).expect("write");
        }
        folder
    }

    fn texts(paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn what_git_ignores_is_copied_and_what_is_left_out_is_named() {
        let folder = project(&[
            (".gitignore", "_bmad/\nout.log\n"),
            ("_bmad/config.yaml", "a"),
            ("out.log", "a"),
            (".git/HEAD", "a"),
            (".practicum/runs/r/run.json", "a"),
            (".env", "a"),
            ("evals/s/evals.json", "a"),
            ("reports/eval-runs/r1/grading.json", "a"),
            ("src/a.py", "a"),
            ("skipped/a", "a"),
        ]);
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("out")).expect("linked");
        std::os::unix::fs::symlink("src/a.py", folder.path().join("inside")).expect("linked");
        let listed = ProjectFiles::list(folder.path(), &|path, is_folder| {
            is_folder && path.file_name().is_some_and(|name| name == "skipped")
        });
        let files = [".gitignore", "_bmad/config.yaml", "inside", "out.log", "src/a.py"];
        assert_eq!(texts(&listed.files), files);
        assert_eq!(texts(&listed.folders), ["_bmad", "reports", "src"]);
        assert_eq!(
            listed.describe_left_out().expect("something"),
            "not copied from the project: 1 entry of version control (.git), 1 place of evals (evals), \
             1 record of runs (reports/eval-runs), 1 file or folder of credentials (.env), 1 link that leads \
             out of it (out)"
        );
        assert_eq!(ProjectFiles::default().describe_left_out(), None);
    }

    #[test]
    fn of_many_the_first_are_named_and_all_are_counted() {
        let files: Vec<String> = (1..=7).map(|number| format!("{number}.pem")).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|name| (name.as_str(), "")).collect();
        let listed = ProjectFiles::list(project(&files).path(), &|_, _| false);
        assert_eq!(
            listed.describe_left_out().expect("something"),
            "not copied from the project: 7 files or folders of credentials (1.pem, 2.pem, 3.pem, 4.pem, \
             5.pem, …)"
        );
    }
}
