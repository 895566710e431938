//! Reads an earlier state of a skill from git.
//!
//! In: a skill on disk and a git ref. Out: a copy of the skill at that ref. Never: touches the working tree, the
//! index or the history, or starts a program that the repository names.

mod repository;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use self::repository::{GitRepository, TreeEntry, TreeEntryKind};
use practicum_core::tree::read_regular;

use crate::skill::{SKILL_FILE, SkillForm, command_path, name_from_path};

/// An error: a skill cannot be read from git.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git cannot be started: {0}")]
    NoGit(std::io::Error),
    #[error("{0} is in no git repository")]
    NoRepository(PathBuf),
    #[error("git knows no commit \"{0}\"")]
    NoCommit(String),
    #[error("{skill} is not in {reference}; has it been moved since?")]
    NotInCommit { skill: PathBuf, reference: String },
    #[error("git could not read the skill: {0}")]
    Failed(String),
}

/// Writes the skill as of `reference` below the folder `into`, without the files in `left_out`. Gives the path of
/// the copy.
pub fn write_skill_at_ref(
    skill: &Path,
    reference: &str,
    into: &Path,
    left_out: &[PathBuf],
) -> Result<PathBuf, GitError> {
    // A command file shares its folder with others; a skill has a folder of its own.
    let is_command = skill.is_file() && !skill.ends_with(SKILL_FILE);
    let folder = match skill.is_file() {
        true => skill.parent().unwrap_or(skill),
        false => skill,
    };
    let folder = folder.canonicalize().map_err(|_| GitError::NoRepository(skill.to_owned()))?;
    let git = GitRepository { folder: &folder };
    git.query(&["rev-parse", "--show-prefix"])?.ok_or_else(|| GitError::NoRepository(skill.to_owned()))?;
    let commit = git
        .query(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{reference}^{{commit}}")])?
        .ok_or_else(|| GitError::NoCommit(reference.to_owned()))?;
    let not_there = || GitError::NotInCommit { skill: skill.to_owned(), reference: reference.to_owned() };
    let copy = match is_command {
        // The copy keeps the file's own name: a command gets its name from the folders above it.
        true => {
            let name = command_path(&name_from_path(skill, SkillForm::Command));
            let file = name.map(|path| path.join_to(&into.join(".claude/commands")));
            file.and_then(|file| file.parent().map(Path::to_owned)).ok_or_else(not_there)?
        }
        false => into.join(folder.file_name().unwrap_or("skill".as_ref())),
    };
    let mut entries = git.list_files(&commit, ".")?;
    entries.retain(|entry| {
        entry.kind != TreeEntryKind::Submodule && !left_out.contains(&entry.path.join_to(&folder))
    });
    write_entries(&git, entries, &copy)?;
    let found = match (is_command, skill.file_name()) {
        (true, Some(name)) => copy.join(name),
        _ => copy,
    };
    if found.exists() { Ok(found) } else { Err(not_there()) }
}

/// Writes files of a commit below the folder `to`. Links come last, so that no file is written through one.
fn write_entries(git: &GitRepository<'_>, mut entries: Vec<TreeEntry>, to: &Path) -> Result<(), GitError> {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::OpenOptionsExt;
    entries.sort_by_key(|entry| entry.kind == TreeEntryKind::Link);
    let mut objects = git.open_objects()?;
    for entry in entries {
        let path = entry.path.join_to(to);
        let bytes = objects.read(&entry.object)?;
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let mut new_file = std::fs::File::options();
        new_file.write(true).create_new(true);
        let mode = if entry.kind == TreeEntryKind::Program { 0o777 } else { 0o666 };
        let written = folder.and_then(|()| match entry.kind {
            TreeEntryKind::Link => std::os::unix::fs::symlink(std::ffi::OsString::from_vec(bytes), &path),
            TreeEntryKind::File | TreeEntryKind::Program | TreeEntryKind::Submodule => {
                std::io::Write::write_all(&mut new_file.mode(mode).open(&path)?, &bytes)
            }
        });
        written.map_err(|error| GitError::Failed(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

/// Finds the commit that contains a skill's folder or command file in its present state. `None` if there are
/// changes since the last commit, or no repository.
///
/// The files are compared here and not by `git status`, which would start the filters that the repository names.
pub fn find_matching_commit(skill: &Path) -> Option<String> {
    let (folder, what) = match (skill.parent(), skill.file_name()) {
        (Some(folder), Some(name)) if skill.is_file() => (folder, name.to_str()?),
        _ => (skill, "."),
    };
    let git = GitRepository { folder };
    let commit = git.query(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok()??;
    let tracked = git.list_files(&commit, what).ok().filter(|files| !files.is_empty())?;
    let new = git.query(&["ls-files", "-z", "--others", "--exclude-standard", "--", what]).ok()??;
    if !new.is_empty() {
        return None;
    }
    let mut objects = git.open_objects().ok()?;
    let mut is_unchanged = |entry: &TreeEntry| {
        entry.kind != TreeEntryKind::Submodule
            && objects.read(&entry.object).is_ok_and(|content| is_same_on_disk(entry, &content, folder))
    };
    tracked.iter().all(&mut is_unchanged).then_some(commit)
}

/// Compares the files at or below a path with a commit. Gives the first path that is new, changed or gone since
/// then, or `None` if there is none. Ignored files do not count.
///
/// The files are compared here and not by `git diff`, which would start the filters that the repository names.
pub fn first_change_since(path: &Path, commit: &str) -> Result<Option<PathBuf>, GitError> {
    let parent = path.ancestors().find(|above| above.is_dir()).unwrap_or(path);
    let folder = parent.canonicalize().map_err(|_| GitError::NoRepository(path.to_owned()))?;
    let what = match path.strip_prefix(parent) {
        Ok(rest) if rest != Path::new("") => rest.to_string_lossy().into_owned(),
        _ => ".".to_owned(),
    };
    let git = GitRepository { folder: &folder };
    let before = git.list_files(commit, &what)?;
    let listed = ["--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let now = git
        .query(&[&listed[..], &["--", &what]].concat())?
        .ok_or_else(|| GitError::NoRepository(path.to_owned()))?;
    let known: HashSet<&str> = before.iter().map(|entry| entry.path.as_str()).collect();
    let added = now.split('\0').filter(|name| !name.is_empty() && !known.contains(name));
    if let Some(name) = added.map(|name| folder.join(name)).find(|file| file.symlink_metadata().is_ok()) {
        return Ok(Some(name));
    }
    let mut objects = git.open_objects()?;
    for entry in before.iter().filter(|entry| entry.kind != TreeEntryKind::Submodule) {
        if !is_same_on_disk(entry, &objects.read(&entry.object)?, &folder) {
            return Ok(Some(entry.path.join_to(&folder)));
        }
    }
    Ok(None)
}

/// Finds the commit from which the present work began: the last common commit of a ref and the present one, or the
/// ref's own commit if they have none in this clone.
pub fn find_base_commit(folder: &Path, reference: &str) -> Result<String, GitError> {
    let git = GitRepository { folder };
    git.query(&["rev-parse", "--show-prefix"])?.ok_or_else(|| GitError::NoRepository(folder.to_owned()))?;
    let commit = git
        .query(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{reference}^{{commit}}")])?
        .ok_or_else(|| GitError::NoCommit(reference.to_owned()))?;
    let base = git.query(&["merge-base", &commit, "HEAD"])?;
    Ok(base.filter(|base| !base.is_empty()).unwrap_or(commit))
}

/// Finds the branch that others start from: the default branch of the remote, or else a local one of a usual name.
pub fn find_default_branch(folder: &Path) -> Option<String> {
    let git = GitRepository { folder };
    let usual = ["origin/HEAD", "origin/main", "origin/master", "main", "master"];
    let is_commit = |name: &&str| {
        let commit = format!("{name}^{{commit}}");
        git.query(&["rev-parse", "--verify", "--quiet", &commit]).is_ok_and(|found| found.is_some())
    };
    usual.into_iter().find(is_commit).map(str::to_owned)
}

/// Says whether a file is on disk as it is in a commit.
fn is_same_on_disk(entry: &TreeEntry, content: &[u8], folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let path = entry.path.join_to(folder);
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let is_program = metadata.permissions().mode() & 0o100 != 0;
    match entry.kind {
        TreeEntryKind::Link => {
            std::fs::read_link(&path).is_ok_and(|target| target.as_os_str().as_encoded_bytes() == content)
        }
        TreeEntryKind::Submodule => false,
        TreeEntryKind::File | TreeEntryKind::Program => {
            metadata.is_file()
                && is_program == (entry.kind == TreeEntryKind::Program)
                && metadata.len() == content.len() as u64
                && read_regular(&path).is_ok_and(|bytes| bytes == content)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(folder: &Path, args: &[&str]) {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let ran = Command::new("git").arg("-C").arg(folder).args(own).args(args).output().expect("git");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }

    #[test]
    fn a_skill_that_differs_from_its_commit_has_none() {
        let room = tempfile::tempdir().expect("a folder");
        let skill = room.path().join("greeter");
        std::fs::create_dir(&skill).expect("create");
        std::fs::write(skill.join("SKILL.md"), "one").expect("write");
        assert_eq!(find_matching_commit(&skill), None, "no repository");
        git(room.path(), &["init", "-q"]);
        assert_eq!(find_matching_commit(&skill), None, "no commit");
        git(room.path(), &["add", "."]);
        git(room.path(), &["commit", "-qm", "one"]);
        assert_eq!(find_matching_commit(&skill).map(|hash| hash.len()), Some(40));
        std::fs::write(room.path().join("elsewhere"), "x").expect("write");
        assert!(find_matching_commit(&skill).is_some(), "what is not the skill's does not count");
        std::fs::write(skill.join("new.md"), "x").expect("write");
        assert_eq!(find_matching_commit(&skill), None, "a new file");
    }

    #[test]
    fn a_skill_is_as_it_was_and_nothing_else_is_touched() {
        let room = tempfile::tempdir().expect("a folder");
        let repository = room.path().join("repository");
        let skill = repository.join("skills/greeter");
        std::fs::create_dir_all(skill.join("notes")).expect("create");
        let write = |path: &str, text: &str| std::fs::write(skill.join(path), text).expect("write");
        git(&repository, &["init", "-q"]);
        write("SKILL.md", "old");
        write("notes/a.md", "old note");
        write("answers.yaml", "the expectations");
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-qm", "one"]);
        write("SKILL.md", "new");
        git(&repository, &["add", "."]);

        let into = room.path().join("into");
        std::fs::create_dir(&into).expect("create");
        let hidden = [skill.canonicalize().expect("there").join("answers.yaml")];
        let found = write_skill_at_ref(&skill.join("SKILL.md"), "HEAD", &into, &hidden).expect("a copy");
        let read = |path: &Path| std::fs::read_to_string(path).expect("read");
        assert_eq!(
            (read(&found.join("SKILL.md")), read(&found.join("notes/a.md"))),
            ("old".into(), "old note".into())
        );
        assert!(found.ends_with("greeter") && !found.join("answers.yaml").exists());
        assert_eq!(read(&skill.join("SKILL.md")), "new");
        let staged =
            Command::new("git").arg("-C").arg(&repository).args(["diff", "--cached", "--name-only"]).output();
        assert_eq!(staged.expect("git").stdout, b"skills/greeter/SKILL.md\n");

        for (reference, part) in
            [("nowhere", "no commit"), ("--all", "no commit"), ("HEAD:skills", "no commit")]
        {
            let error =
                write_skill_at_ref(&skill, reference, &into, &[]).expect_err("no such ref").to_string();
            assert!(error.contains(part), "{error}");
        }
        std::fs::create_dir(repository.join("fresh")).expect("create");
        let error = write_skill_at_ref(&repository.join("fresh"), "HEAD", &into, &[])
            .expect_err("not there")
            .to_string();
        assert!(error.contains("is not in HEAD"), "{error}");
        let error =
            write_skill_at_ref(room.path(), "HEAD", &into, &[]).expect_err("no repository").to_string();
        assert!(error.contains("no git repository"), "{error}");
    }
}
