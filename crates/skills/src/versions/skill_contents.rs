//! The files that belong to a skill.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::diff;
use crate::own_files::{ContentKind, OwnFiles};
use crate::project_files::{is_credential, is_version_control};
use crate::skill::{SKILL_FILE, SkillForm, is_eval_file, normalise_path};
use practicum_core::model::{Case, Digest, RelPath, Suite};
use practicum_core::tree::read_regular;

/// The files of a skill, without those that agents must not see (evals of any format, results and reports of runs,
/// credentials), and without files that are not the skill's own. For a command file that is the file alone,
/// whatever lies beside it.
#[derive(Debug, Clone)]
pub struct SkillContents {
    folder: PathBuf,
    form: SkillForm,
    /// The SKILL.md or command file, relative to the folder.
    main_file: RelPath,
    own_files: Vec<RelPath>,
    other_files: Vec<PathBuf>,
}

/// An error: the files of a skill cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SkillContentsError {
    #[error("no skill at {0}: it is neither a folder with a SKILL.md nor a command file")]
    NoSkill(PathBuf),
    #[error("{0} has a name that is not plain text; rename it")]
    BadName(PathBuf),
    #[error("{0} is larger than any skill; move files that are not part of the skill out of it")]
    TooLarge(PathBuf),
    #[error(
        "the evals {0} are among the skill's own files; move them into its evals folder, so that they are not part of it"
    )]
    EvalsInside(PathBuf),
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
}

/// The greatest number of files. A folder with more is not a skill.
const MAX_FILES: usize = 20_000;
const MAX_BYTES: u64 = 512 * 1024 * 1024;

impl SkillContents {
    /// Lists a skill's folder. Links that lead out of it do not belong to the skill.
    pub fn scan(skill: &Path) -> Result<Self, SkillContentsError> {
        let no_skill = || SkillContentsError::NoSkill(skill.to_owned());
        let named_file = skill.file_name().is_some_and(|name| name == SKILL_FILE) && skill.is_file();
        if !named_file && skill.is_file() && skill.extension().is_some_and(|ending| ending == "md") {
            return Self::scan_command(&skill.canonicalize().map_err(|_| no_skill())?);
        }
        let folder = if named_file { skill.parent().unwrap_or(skill) } else { skill };
        let folder = folder.canonicalize().map_err(|_| no_skill())?;
        if !folder.join(SKILL_FILE).is_file() {
            return Err(no_skill());
        }
        let main = RelPath::new(SKILL_FILE).ok_or_else(no_skill)?;
        let mut contents = Self {
            folder: folder.clone(),
            form: SkillForm::Folder,
            main_file: main,
            own_files: Vec::new(),
            other_files: Vec::new(),
        };
        contents.scan_folders(&OwnFiles::near_paths([folder.as_path()]))?;
        contents.own_files.sort();
        contents.other_files.sort();
        Ok(contents)
    }

    fn scan_command(file: &Path) -> Result<Self, SkillContentsError> {
        let name = file.file_name().and_then(|name| name.to_str()).and_then(RelPath::new);
        let main = name.ok_or_else(|| SkillContentsError::BadName(file.to_owned()))?;
        if file.metadata().is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
            return Err(SkillContentsError::TooLarge(file.to_owned()));
        }
        let folder = file.parent().unwrap_or(file).to_owned();
        Ok(Self {
            folder,
            form: SkillForm::Command,
            own_files: vec![main.clone()],
            main_file: main,
            other_files: Vec::new(),
        })
    }

    /// Lists the files of a folder and of those inside it, one folder after the other: a hostile skill may have
    /// thousands of folders inside each other.
    fn scan_folders(&mut self, written: &OwnFiles) -> Result<(), SkillContentsError> {
        let mut bytes = 0;
        let mut folders = vec![self.folder.clone()];
        while let Some(at) = folders.pop() {
            let unreadable = |error| SkillContentsError::Unreadable { path: at.clone(), error };
            for entry in std::fs::read_dir(&at).map_err(unreadable)? {
                let path = entry.map_err(unreadable)?.path();
                let metadata = std::fs::symlink_metadata(&path).map_err(unreadable)?;
                let is_hidden = match written.kind(&path) {
                    ContentKind::Written | ContentKind::Evals | ContentKind::Results => true,
                    // An archive in a skill is part of it.
                    ContentKind::ClosedArchive | ContentKind::Other => false,
                };
                if self.is_left_out(&path, &metadata) || is_hidden {
                    let relative = path.strip_prefix(&self.folder).unwrap_or(&path).to_owned();
                    self.other_files.push(relative);
                } else if metadata.is_dir() {
                    folders.push(path);
                } else {
                    let relative = path.strip_prefix(&self.folder).ok().and_then(Path::to_str);
                    let relative = relative.and_then(RelPath::new);
                    self.own_files.push(relative.ok_or_else(|| SkillContentsError::BadName(path.clone()))?);
                    bytes = u64::saturating_add(bytes, metadata.len());
                }
                let listed = self.own_files.len() + self.other_files.len() + folders.len();
                if bytes > MAX_BYTES || listed > MAX_FILES {
                    return Err(SkillContentsError::TooLarge(self.folder.clone()));
                }
            }
        }
        Ok(())
    }

    fn is_left_out(&self, path: &Path, metadata: &std::fs::Metadata) -> bool {
        let leads_out = metadata.is_symlink()
            && std::fs::read_link(path).map_or(true, |target| {
                let leads_to =
                    path.parent().map_or_else(|| target.clone(), |at| normalise_path(&at.join(&target)));
                target.is_absolute() || !leads_to.starts_with(&self.folder)
            });
        let odd = !(metadata.is_dir() || metadata.is_file() || metadata.is_symlink());
        let hidden = is_version_control(path) || is_eval_file(path) || is_credential(path);
        leads_out || odd || hidden
    }

    /// Gives the folder that the paths are relative to; for a command file, the one it lies in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives the path of the skill itself: its folder, or the command file.
    pub fn skill_path(&self) -> PathBuf {
        self.skill_path_in(&self.folder)
    }

    /// Gives the path of the skill in a copy in another folder.
    fn skill_path_in(&self, folder: &Path) -> PathBuf {
        match self.form {
            SkillForm::Folder => folder.to_owned(),
            SkillForm::Command => self.main_file.join_to(folder),
        }
    }

    pub fn form(&self) -> SkillForm {
        self.form
    }

    /// Gives the SKILL.md or command file, relative to the folder.
    pub fn main_file(&self) -> &RelPath {
        &self.main_file
    }

    /// Gives the skill's files and the links among them.
    pub fn own_files(&self) -> &[RelPath] {
        &self.own_files
    }

    /// Gives what lies in the folder and is not the skill's: evals, history, credentials, links to elsewhere.
    pub fn other_files(&self) -> &[PathBuf] {
        &self.other_files
    }

    /// Checks that no evals are among the files that are kept, shown and changed. Evals with usual names are left
    /// out anyway; evals under other names must not lie in the skill.
    pub fn check_no_evals<'s>(
        &self,
        suites: impl IntoIterator<Item = &'s Suite>,
    ) -> Result<(), SkillContentsError> {
        for suite in suites {
            let path = suite.origin.path.canonicalize().unwrap_or_else(|_| suite.origin.path.clone());
            // Evals that are recognised only by their content could be overwritten by whoever changes the skill.
            let by_content = self.other_files.iter().filter(|other| !is_eval_file(other));
            let among_files: Vec<PathBuf> = self
                .own_files
                .iter()
                .map(|own| own.join_to(&self.folder))
                .chain(by_content.map(|other| self.folder.join(other)))
                .collect();
            let inside = |path: &Path| among_files.iter().any(|file| file == path || file.starts_with(path));
            // A suite's folder may be the skill's own, or contain it. Then the files of its cases decide.
            let is_case = |case: &Case| {
                ["yaml", "yml"].iter().any(|ending| inside(&path.join(format!("{}.{ending}", case.id))))
            };
            let among = if path.is_dir() { suite.cases.iter().any(is_case) } else { inside(&path) };
            if among {
                return Err(SkillContentsError::EvalsInside(suite.origin.path.clone()));
            }
        }
        Ok(())
    }

    /// Gives every file that is text, in order. Links are only other names of files and are left out.
    pub fn text_files(&self) -> Result<Vec<(RelPath, String)>, SkillContentsError> {
        let mut texts = Vec::new();
        for path in &self.own_files {
            if let FileOrLink::File(bytes) = self.read_entry(path)?
                && let Ok(text) = String::from_utf8(bytes)
            {
                texts.push((path.clone(), text));
            }
        }
        Ok(texts)
    }

    /// Computes the digest of the skill. Two skills with the same digest are the same.
    pub fn digest(&self) -> Result<Digest, SkillContentsError> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for path in &self.own_files {
            let (kind, bytes) = match self.read_entry(path)? {
                FileOrLink::File(bytes) => ("file", bytes),
                FileOrLink::Link(target) => ("link", target.to_string_lossy().into_owned().into_bytes()),
            };
            parts.extend([kind.as_bytes().to_vec(), path.as_str().as_bytes().to_vec(), bytes]);
        }
        Ok(Digest::of_parts(parts.iter().map(Vec::as_slice)))
    }

    /// Copies the skill's own files into an existing folder. Gives the path of the copied skill.
    pub fn copy_to(&self, folder: &Path) -> Result<PathBuf, SkillContentsError> {
        for path in &self.own_files {
            let (from, to) = (path.join_to(&self.folder), path.join_to(folder));
            let copied = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| {
                match std::fs::symlink_metadata(&from)?.is_symlink() {
                    true => std::os::unix::fs::symlink(std::fs::read_link(&from)?, &to),
                    false => std::fs::copy(&from, &to).map(|_| ()),
                }
            });
            copied.map_err(|error| SkillContentsError::Unreadable { path: from, error })?;
        }
        Ok(self.skill_path_in(folder))
    }

    fn read_entry(&self, path: &RelPath) -> Result<FileOrLink, SkillContentsError> {
        let path = path.join_to(&self.folder);
        let held = std::fs::symlink_metadata(&path).and_then(|metadata| match metadata.is_symlink() {
            true => std::fs::read_link(&path).map(FileOrLink::Link),
            false => read_regular(&path).map(FileOrLink::File),
        });
        held.map_err(|error| SkillContentsError::Unreadable { path, error })
    }
}

/// Gives the changes from one version's files to another's as a unified diff.
pub fn diff_versions(before: &Path, after: &Path) -> Result<String, SkillContentsError> {
    let texts = |folder: &Path| SkillContents::scan(folder)?.text_files();
    let before: BTreeMap<RelPath, String> = texts(before)?.into_iter().collect();
    let files = texts(after)?.into_iter().map(|(path, text)| {
        diff::unified_diff(path.as_str(), before.get(&path).map_or("", String::as_str), &text)
    });
    Ok(files.collect())
}

enum FileOrLink {
    File(Vec<u8>),
    Link(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evals_and_what_leads_out_are_not_the_skill() {
        let room = tempfile::tempdir().expect("a folder");
        let skill = room.path().join("greeter");
        for path in ["evals", "scripts", ".git", "notes"] {
            std::fs::create_dir_all(skill.join(path)).expect("create");
        }
        for path in ["SKILL.md", "scripts/a.sh", "evals/evals.json", "SKILL.eval.json", ".git/HEAD"] {
            std::fs::write(skill.join(path), path).expect("write");
        }
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, skill.join(at)).expect("link");
        link("/etc/passwd", "out");
        link("../../elsewhere", "notes/up");
        link("../scripts/a.sh", "notes/inside");
        let contents = SkillContents::scan(&skill.join("SKILL.md")).expect("a skill");
        let own: Vec<&str> = contents.own_files().iter().map(RelPath::as_str).collect();
        assert_eq!(own, ["SKILL.md", "notes/inside", "scripts/a.sh"]);
        let others: Vec<String> =
            contents.other_files().iter().map(|path| path.display().to_string()).collect();
        assert_eq!(others, [".git", "SKILL.eval.json", "evals", "notes/up", "out"]);

        let copy = room.path().join("copy");
        std::fs::create_dir(&copy).expect("create");
        contents.copy_to(&copy).expect("copied");
        let copied = SkillContents::scan(&copy).expect("a skill");
        assert_eq!(copied.digest().expect("one"), contents.digest().expect("one"));
        assert_eq!(copied.other_files().len(), 0);
        std::fs::write(skill.join("evals/evals.json"), "other").expect("write");
        assert_eq!(contents.digest().expect("one"), copied.digest().expect("one"));
        std::fs::write(skill.join("scripts/a.sh"), "other").expect("write");
        assert_ne!(contents.digest().expect("one"), copied.digest().expect("one"));
        assert!(matches!(SkillContents::scan(room.path()), Err(SkillContentsError::NoSkill(_))));
    }
}
