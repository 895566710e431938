//! Reads an earlier state of a skill from git.
//!
//! In: a skill on disk and a git ref. Out: a copy of the skill at that ref. Never: touches the working tree, the
//! index or the history.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skill::{SKILL_FILE, SkillForm, command_path, name_from_path};

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
    #[error("git could not write the skill: {0}")]
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
    let git = GitRepository { folder: &folder, index: into.join("index") };
    let prefix = git
        .query(&["rev-parse", "--show-prefix"])?
        .ok_or_else(|| GitError::NoRepository(skill.to_owned()))?;
    let commit = git
        .query(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{reference}^{{commit}}")])?
        .ok_or_else(|| GitError::NoCommit(reference.to_owned()))?;
    let not_there = || GitError::NotInCommit { skill: skill.to_owned(), reference: reference.to_owned() };
    let tree = format!("{commit}:{}", prefix.trim_end_matches('/'));
    let tree = git.query(&["rev-parse", "--verify", "--quiet", &tree])?.ok_or_else(not_there)?;
    let copy = match is_command {
        // The copy keeps the file's own name: a command gets its name from the folders above it.
        true => {
            let name = command_path(&name_from_path(skill, SkillForm::Command));
            let file = name.map(|path| path.join_to(&into.join(".claude/commands")));
            file.and_then(|file| file.parent().map(Path::to_owned)).ok_or_else(not_there)?
        }
        false => into.join(folder.file_name().unwrap_or("skill".as_ref())),
    };
    let top = git.query(&["rev-parse", "--show-toplevel"])?.ok_or_else(not_there)?;
    // From a folder below the top, git would write only the files of that folder.
    let git = GitRepository { folder: Path::new(&top), index: git.index };
    git.execute(&["read-tree", &tree])?;
    git.execute(&["checkout-index", "--all", &format!("--prefix={}/", copy.display())])?;
    for path in left_out {
        if let Ok(relative) = path.strip_prefix(&folder) {
            // A file that did not exist at that ref need not be removed.
            let _ = std::fs::remove_file(copy.join(relative));
        }
    }
    let found = match (is_command, skill.file_name()) {
        (true, Some(name)) => copy.join(name),
        _ => copy,
    };
    if found.exists() { Ok(found) } else { Err(not_there()) }
}

/// Finds the commit that contains a skill's folder or command file in its present state. `None` if there are
/// changes since the last commit, or no repository.
pub fn find_matching_commit(skill: &Path) -> Option<String> {
    let (folder, what) = match (skill.parent(), skill.file_name()) {
        (Some(folder), Some(name)) if skill.is_file() => (folder, name.to_str()?),
        _ => (skill, "."),
    };
    let says = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("--no-optional-locks").arg("-C").arg(folder).args(args);
        let output = command.output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let changes = says(&["status", "--porcelain", "--untracked-files=all", "--", what])?;
    if !changes.trim().is_empty() {
        return None;
    }
    // A folder that git ignores has no changes either, but is in no commit.
    let tracked = says(&["ls-files", "--", what]).filter(|files| !files.trim().is_empty());
    tracked
        .and_then(|_| says(&["rev-parse", "--verify", "--quiet", "HEAD"]))
        .map(|hash| hash.trim().to_owned())
}

/// A git repository, used with an index of the program's own.
struct GitRepository<'g> {
    folder: &'g Path,
    index: PathBuf,
}

impl GitRepository<'_> {
    fn run(&self, args: &[&str]) -> Result<std::process::Output, GitError> {
        let mut command = Command::new("git");
        command.arg("-C").arg(self.folder).args(args).env("GIT_INDEX_FILE", &self.index);
        command.output().map_err(GitError::NoGit)
    }

    /// Runs a git command and gives its output; `None` if git refuses.
    fn query(&self, args: &[&str]) -> Result<Option<String>, GitError> {
        let output = self.run(args)?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok(output.status.success().then_some(text))
    }

    fn execute(&self, args: &[&str]) -> Result<(), GitError> {
        let output = self.run(args)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(GitError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
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
