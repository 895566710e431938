//! Runs the setup and teardown scripts of a case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::{CancelToken, OutputFiles, ProcessRules, supervise};
use super::process_tree::wait_for_init_exit;
use crate::workspace::limits::TrialLimits;
use crate::workspace::observe::ProcessEnd;
use crate::workspace::sandbox::TrialSandbox;
use crate::workspace::secrets::Scrubber;
use practicum_agents::agents::Launch;
use practicum_core::tree::open_regular;

/// The time limit of a setup or teardown script.
const SCRIPT_TIME_LIMIT: Duration = Duration::from_secs(30);

/// How a setup or teardown script ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptEnd {
    Done,
    Failed(String),
    /// The script used more than a limit allows. The text says which.
    OverLimit(String),
}

/// The environment of a script: the trial's own home and workspace.
pub struct ScriptContext<'s> {
    pub folder: &'s Path,
    pub home: &'s Path,
    pub tmp: &'s Path,
    pub user_env: &'s BTreeMap<String, String>,
    pub sandbox: &'s TrialSandbox,
    /// What the script may use; `None` for as much as it wants.
    pub limits: Option<&'s TrialLimits>,
    pub marker: &'s str,
    /// The folder for its output.
    pub record_folder: &'s Path,
    /// Removes secrets from its output before it is written.
    pub scrubber: &'s Scrubber,
}

pub async fn run_script(script: &str, scene: &ScriptContext<'_>, cancel: &CancelToken) -> ScriptEnd {
    let ScriptContext {
        folder,
        home,
        tmp,
        user_env,
        sandbox: walls,
        limits,
        marker,
        record_folder: record,
        scrubber,
    } = scene;
    let inherited = ["PATH", "LANG", "LC_ALL", "TZ"]
        .into_iter()
        .filter_map(|name| user_env.get(name).map(|value| (name.to_owned(), value.clone())));
    let mut env: BTreeMap<String, String> = inherited.collect();
    env.insert("HOME".to_owned(), home.display().to_string());
    env.insert("TMPDIR".to_owned(), tmp.display().to_string());
    let launch = Launch {
        program: PathBuf::from("/bin/bash"),
        args: vec!["-c".to_owned(), script.to_owned()],
        env,
        files: Vec::new(),
        login_file: None,
        stdin: None,
    };
    let launch = walls.wrap_script(launch, folder, script);
    let output = OutputFiles {
        stdout: record.join("scripts.txt"),
        stderr: record.join("scripts-stderr.txt"),
        scrubber: (*scrubber).clone(),
    };
    // Setup and teardown write to the same files, one after the other.
    let written_before = [&output.stderr, &output.stdout].map(|path| length(path));
    let rules = ProcessRules {
        folder,
        marker,
        time_limit: SCRIPT_TIME_LIMIT,
        limits: *limits,
        has_init_process: walls.has_init_process(),
    };
    let supervised = supervise(&launch, &rules, &output, cancel).await;
    if walls.has_init_process() {
        wait_for_init_exit(marker).await;
    }
    let why = match supervised.end {
        ProcessEnd::Exited(0) => return ScriptEnd::Done,
        ProcessEnd::Exited(code) => format!("it exited with code {code}"),
        ProcessEnd::Signalled(signal) => format!("signal {signal} killed it"),
        ProcessEnd::TimedOut => format!("it took longer than {} seconds", SCRIPT_TIME_LIMIT.as_secs()),
        ProcessEnd::OverLimit(why) => return ScriptEnd::OverLimit(why),
        ProcessEnd::Cancelled => "the run was stopped".to_owned(),
        ProcessEnd::NotLaunched(why) => why,
    };
    // Many scripts print errors to standard output and nothing to standard error.
    let [stderr, stdout] = written_before;
    let printed = last_lines(&output.stderr, stderr).or_else(|| last_lines(&output.stdout, stdout));
    ScriptEnd::Failed(match printed {
        Some(printed) => format!("{why}:\n{printed}"),
        None => why,
    })
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

/// The longest end of a script's output that is shown if it failed.
const MOST_LINES: usize = 5;
const MOST_BYTES: u64 = 2000;

/// Reads the last lines that a script wrote to a file after this many bytes; `None` if it wrote nothing.
fn last_lines(path: &Path, written_before: u64) -> Option<String> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = open_regular(path).ok()?;
    let start = written_before.max(length(path).saturating_sub(MOST_BYTES));
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(MOST_LINES)..];
    (!last.is_empty()).then(|| last.join("\n"))
}
