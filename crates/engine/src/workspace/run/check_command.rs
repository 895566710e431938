//! Runs the commands of checks in the workspace of a trial, behind the same walls and limits as its agent.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::process::{CancelToken, OutputFiles, ProcessRules, supervise};
use super::process_tree::wait_for_init_exit;
use crate::workspace::limits::TrialLimits;
use crate::workspace::observe::ProcessEnd;
use crate::workspace::sandbox::TrialSandbox;
use crate::workspace::secrets::Scrubber;
use crate::workspace::stage::{FolderView, Workspace};
use practicum_agents::agents::Launch;
use practicum_core::model::{CheckCommand, CommandEnd, CommandOutcome, RelPath, WorkspaceView};
use practicum_core::tree::open_regular;

/// The number of bytes that are kept of each output stream of a command.
const LARGEST_OUTPUT: u64 = 256 * 1024;

/// The workspace of a trial as its checks see it: its files, and a way to run commands in it.
pub struct CheckedWorkspace<'w> {
    pub files: FolderView,
    pub workspace: &'w Workspace,
    pub sandbox: &'w TrialSandbox,
    pub limits: &'w TrialLimits,
    pub user_env: &'w BTreeMap<String, String>,
    /// The marker of the trial's processes.
    pub marker: &'w str,
    pub cancel: &'w CancelToken,
    /// The number of commands that were started.
    pub started: AtomicUsize,
}

impl WorkspaceView for CheckedWorkspace<'_> {
    fn read(&self, path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        self.files.read(path)
    }

    fn exists(&self, path: &RelPath) -> std::io::Result<bool> {
        self.files.exists(path)
    }

    fn link_target(&self, path: &RelPath) -> Option<RelPath> {
        self.files.link_target(path)
    }

    fn describe_unreadable(&self, path: &RelPath) -> Option<&'static str> {
        self.files.describe_unreadable(path)
    }

    fn run_command(&self, command: &CheckCommand<'_>) -> Option<std::io::Result<CommandOutcome>> {
        // Checks run on threads of their own or on one of any runtime, so the command gets a runtime for itself.
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(self.run(command))
        };
        let ended = std::thread::scope(|scope| scope.spawn(run).join());
        Some(ended.unwrap_or_else(|_| Err(std::io::Error::other("running it failed"))))
    }
}

impl CheckedWorkspace<'_> {
    async fn run(&self, command: &CheckCommand<'_>) -> std::io::Result<CommandOutcome> {
        let folder = &self.workspace.folder;
        // Each command has its own marker, because ending the processes of one must not end those of another.
        let marker = format!("c{}-{}", self.started.fetch_add(1, Ordering::Relaxed), self.marker);
        let kept = tempfile::Builder::new().prefix("practicum-check-").tempdir()?;
        let output = OutputFiles {
            stdout: kept.path().join("stdout"),
            stderr: kept.path().join("stderr"),
            scrubber: Scrubber::default(),
        };
        let launch = self.sandbox.wrap_check(self.launch(command), folder, command.run);
        let rules = ProcessRules {
            folder,
            marker: &marker,
            time_limit: command.time_limit,
            limits: Some(self.limits),
            has_init_process: self.sandbox.has_init_process(),
        };
        let supervised = supervise(&launch, &rules, &output, self.cancel).await;
        if self.sandbox.has_init_process() {
            wait_for_init_exit(&marker).await;
        }
        let end = match supervised.end {
            ProcessEnd::Exited(code) => CommandEnd::Exited(code),
            ProcessEnd::Signalled(signal) => CommandEnd::Signalled(signal),
            ProcessEnd::TimedOut => CommandEnd::TimedOut,
            ProcessEnd::OverLimit(why) => CommandEnd::OverLimit(why),
            ProcessEnd::Cancelled => CommandEnd::Cancelled,
            ProcessEnd::NotLaunched(why) => return Err(std::io::Error::other(why)),
        };
        Ok(CommandOutcome { end, stdout: beginning_of(&output.stdout), stderr: beginning_of(&output.stderr) })
    }

    /// Decides what to start. The environment has little more than the path: the command may run code that the agent
    /// wrote, and that code must not see the user's keys.
    fn launch(&self, command: &CheckCommand<'_>) -> Launch {
        let mut env: BTreeMap<String, String> =
            self.user_env.get("PATH").map(|path| ("PATH".to_owned(), path.clone())).into_iter().collect();
        env.insert("HOME".to_owned(), self.workspace.folder.display().to_string());
        env.insert("TMPDIR".to_owned(), self.workspace.tmp.display().to_string());
        env.insert("LANG".to_owned(), "C.UTF-8".to_owned());
        Launch {
            program: PathBuf::from("/bin/sh"),
            args: vec!["-c".to_owned(), command.run.to_owned()],
            env,
            files: Vec::new(),
            login_file: None,
            stdin: command.input.map(str::to_owned),
        }
    }
}

fn beginning_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = open_regular(path) {
        // What could be read is shown.
        let _ = file.take(LARGEST_OUTPUT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
