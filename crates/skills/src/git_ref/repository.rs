//! The git commands of this program. All of them only read, and none starts a program that a repository names.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use practicum_core::model::RelPath;

use super::GitError;

/// The largest file that is read from a repository.
const MAX_OBJECT_SIZE: u64 = 256 * 1024 * 1024;

/// Settings that win over those of a repository, which may come from an untrusted source: no file monitor and no hooks are
/// started, and a folder that only looks like a bare repository is none.
const SAFE_SETTINGS: [&str; 4] =
    ["safe.bareRepository=explicit", "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat"];

/// Variables that would lead git to another repository than that of the folder.
const LOCATION_VARIABLES: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// Makes a git command for a folder in which nothing is trusted. Filters are not switched off, because they have
/// arbitrary names: only commands that start none may be used.
fn git_command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-optional-locks").arg("--no-pager").arg("-C").arg(folder);
    for setting in SAFE_SETTINGS {
        command.arg("-c").arg(setting);
    }
    for variable in LOCATION_VARIABLES {
        command.env_remove(variable);
    }
    // An object that is missing in a partial clone is not fetched: its remote may name a program.
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    command
}

/// A folder in a git repository.
pub struct GitRepository<'g> {
    pub folder: &'g Path,
}

/// A file in a commit.
pub struct TreeEntry {
    /// The path relative to the folder of the [`GitRepository`].
    pub path: RelPath,
    pub kind: TreeEntryKind,
    /// The name of the object with the content.
    pub object: String,
}

/// The kind of a file in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeEntryKind {
    File,
    Program,
    Link,
    /// The commit of another repository, whose files are not in this one.
    Submodule,
}

impl GitRepository<'_> {
    /// Runs a git command and gives its output; `None` if git refuses.
    pub fn query(&self, args: &[&str]) -> Result<Option<String>, GitError> {
        let output = git_command(self.folder).args(args).output().map_err(GitError::NoGit)?;
        let text = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok(output.status.success().then_some(text))
    }

    /// Lists the files of a commit at or below a path of the folder.
    pub fn list_files(&self, commit: &str, path: &str) -> Result<Vec<TreeEntry>, GitError> {
        let output = git_command(self.folder)
            .args(["--literal-pathspecs", "ls-tree", "-r", "-z", commit, "--", path])
            .output()
            .map_err(GitError::NoGit)?;
        if !output.status.success() {
            return Err(GitError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let lines = output.stdout.split(|&byte| byte == 0).filter(|line| !line.is_empty());
        lines.map(parse_entry).collect()
    }

    /// Starts the reading of objects.
    pub fn open_objects(&self) -> Result<GitObjects, GitError> {
        let mut command = git_command(self.folder);
        command.args(["cat-file", "--batch"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(GitError::NoGit)?;
        match (process.stdin.take(), process.stdout.take()) {
            (Some(names), Some(contents)) => {
                Ok(GitObjects { process, names: Some(names), contents: BufReader::new(contents) })
            }
            _ => Err(GitError::Failed("git has no input or output".to_owned())),
        }
    }
}

/// Reads a line of `git ls-tree`: mode, type and object, a tab, and the path.
fn parse_entry(line: &[u8]) -> Result<TreeEntry, GitError> {
    let wrong = || GitError::Failed(format!("{:?} is not a file", String::from_utf8_lossy(line)));
    let line = std::str::from_utf8(line).map_err(|_| wrong())?;
    let (about, path) = line.split_once('\t').ok_or_else(wrong)?;
    let mut about = about.split(' ');
    let (mode, object) = (about.next(), about.nth(1).ok_or_else(wrong)?);
    let kind = match mode {
        Some("100755") => TreeEntryKind::Program,
        Some("120000") => TreeEntryKind::Link,
        Some("160000") => TreeEntryKind::Submodule,
        _ => TreeEntryKind::File,
    };
    let path = RelPath::new(path).ok_or_else(wrong)?;
    Ok(TreeEntry { path, kind, object: object.to_owned() })
}

/// The objects of a repository, read by one git process. Their content is what was committed: no filter changes it.
pub struct GitObjects {
    process: Child,
    /// `None` only while the process ends.
    names: Option<ChildStdin>,
    contents: BufReader<ChildStdout>,
}

impl GitObjects {
    /// Reads the content of one object.
    pub fn read(&mut self, object: &str) -> Result<Vec<u8>, GitError> {
        self.read_content(object).map_err(|error| GitError::Failed(format!("{object}: {error}")))
    }

    fn read_content(&mut self, object: &str) -> std::io::Result<Vec<u8>> {
        let other = |problem: &str| std::io::Error::other(problem.to_owned());
        let names = self.names.as_mut().ok_or_else(|| other("git has ended"))?;
        writeln!(names, "{object}")?;
        let mut head = String::new();
        self.contents.by_ref().take(1024).read_line(&mut head)?;
        let size = head.trim_end().rsplit(' ').next().and_then(|size| size.parse::<u64>().ok());
        let size = size.ok_or_else(|| other("the repository does not have it"))?;
        if size > MAX_OBJECT_SIZE {
            return Err(other("it is too large"));
        }
        let mut bytes = Vec::new();
        self.contents.by_ref().take(size + 1).read_to_end(&mut bytes)?;
        // A line break follows the content.
        match bytes.pop() {
            Some(b'\n') if bytes.len() as u64 == size => Ok(bytes),
            _ => Err(other("git ended too early")),
        }
    }
}

impl Drop for GitObjects {
    fn drop(&mut self) {
        // Without more names, git ends. If it is still writing, it is ended.
        drop(self.names.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
