//! Runs a program of this machine on files that nobody trusts: in a folder of its own, behind walls, without network
//! where the machine allows it, and under limits.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::process::{CancelToken, OutputFiles, ProcessRules, supervise};
use super::process_tree::wait_for_init_exit;
use crate::workspace::limits::{ResourceLimits, TrialLimits};
use crate::workspace::observe::ProcessEnd;
use crate::workspace::sandbox::Sandbox;
use crate::workspace::secrets::Scrubber;
use practicum_agents::agents::{Launch, find_program};
use practicum_core::model::SandboxMode;
use practicum_core::tree::open_regular;

/// The time after which a program is ended.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// What the processes of one program may use.
const LIMITS: ResourceLimits = ResourceLimits {
    memory: 1024 * 1024 * 1024,
    processes: 256,
    cpu: Duration::from_secs(120),
    open_files: 1024,
    disk: 512 * 1024 * 1024,
    files: 5000,
};

/// The longest part of a program's error output that is shown.
const LONGEST_MESSAGE: u64 = 300;

/// A sandbox for programs that read untrusted files. It is built when the first of them is started.
#[derive(Clone)]
pub struct ProgramIsolation {
    user_env: Arc<BTreeMap<String, String>>,
    sandbox: Arc<OnceLock<Result<Sandbox, String>>>,
}

impl ProgramIsolation {
    /// Makes an isolation for programs on this user's PATH.
    pub fn new(user_env: &BTreeMap<String, String>) -> Self {
        Self { user_env: Arc::new(user_env.clone()), sandbox: Arc::default() }
    }

    /// Finds a program on the user's PATH.
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        find_program(program, &self.user_env)
    }

    /// Runs a program in a folder, which is all that it can change. `marker` marks its processes. The error says why it
    /// did not succeed.
    pub async fn run(
        &self,
        program: &Path,
        args: Vec<String>,
        folder: &Path,
        marker: &str,
        cancel: &CancelToken,
    ) -> Result<(), String> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let failed = |error: std::io::Error| error.to_string();
        let walls = self.sandbox()?.for_program(folder, program, &self.user_env);
        let walls = walls.map_err(|error| error.to_string())?;
        let folder_text = folder.display().to_string();
        let mut env: BTreeMap<String, String> =
            ["HOME", "TMPDIR"].map(|name| (name.to_owned(), folder_text.clone())).into();
        env.extend(self.user_env.get("PATH").map(|path| ("PATH".to_owned(), path.clone())));
        env.insert("LANG".to_owned(), "C.UTF-8".to_owned());
        let launch = Launch {
            program: program.to_owned(),
            args,
            env,
            files: Vec::new(),
            login_file: None,
            stdin: None,
        };
        let launch = walls.wrap_check(launch, folder, "");
        let kept = tempfile::Builder::new().prefix("practicum-output-").tempdir().map_err(failed)?;
        let output = OutputFiles {
            stdout: kept.path().join("stdout"),
            stderr: kept.path().join("stderr"),
            scrubber: Scrubber::default(),
        };
        // Each program has its own marker, because ending the processes of one must not end those of another.
        let marker = format!("p{}-{marker}", STARTED.fetch_add(1, Ordering::Relaxed));
        let rules = ProcessRules {
            folder,
            marker: &marker,
            time_limit: TIME_LIMIT,
            limits: Some(&TrialLimits::new(LIMITS, folder, false)),
            has_init_process: walls.has_init_process(),
        };
        let supervised = supervise(&launch, &rules, &output, cancel).await;
        if walls.has_init_process() {
            wait_for_init_exit(&marker).await;
        }
        match supervised.end {
            ProcessEnd::Exited(0) => Ok(()),
            ProcessEnd::Exited(code) => {
                Err(format!("it exited with code {code}{}", last_line(&output.stderr)))
            }
            ProcessEnd::Signalled(signal) => Err(format!("signal {signal} ended it")),
            ProcessEnd::TimedOut => Err(format!("it took longer than {} s", TIME_LIMIT.as_secs())),
            ProcessEnd::OverLimit(why) | ProcessEnd::NotLaunched(why) => Err(why),
            ProcessEnd::Cancelled => Err("the run was stopped".to_owned()),
        }
    }

    /// Gives the strongest sandbox that works here. There is no way to do without one.
    fn sandbox(&self) -> Result<&Sandbox, String> {
        let build = || {
            let home = || self.user_env.get("HOME").map(PathBuf::from);
            let build = |mode| Sandbox::build(mode, &self.user_env, home(), LIMITS);
            build(SandboxMode::Strict)
                .or_else(|_| build(SandboxMode::Auto))
                .map_err(|error| error.to_string())
        };
        self.sandbox.get_or_init(build).as_ref().map_err(Clone::clone)
    }
}

/// Gives the last line that a program wrote, as the end of a message.
fn last_line(path: &Path) -> String {
    let mut bytes = Vec::new();
    // What cannot be read adds nothing to the message.
    let _ = open_regular(path).and_then(|file| file.take(64 * LONGEST_MESSAGE).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!(": {}", line.chars().take(LONGEST_MESSAGE as usize).collect::<String>()),
        None => String::new(),
    }
}
