//! Runs one process under a time limit and captures its output.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::process_tree::{MARKER_VARIABLE, TrialProcesses, reap_dead};
use super::stream_capture::capture_stream;
use crate::workspace::observe::ProcessEnd;
use crate::workspace::secrets::Scrubber;
use practicum_agents::agents::Launch;

/// A token that cancels all running trials.
#[derive(Clone)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl CancelToken {
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn wait_until_cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`, so this returns only when the value is true.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}

/// The files for a process's output.
pub struct OutputFiles {
    pub stdout: PathBuf,
    pub stderr: PathBuf,
    /// Removes secrets before anything is written.
    pub scrubber: Scrubber,
}

/// How long the pipes of an ended process may stay open in other processes.
const PIPE_LINGER: Duration = Duration::from_millis(500);

/// The result of running a process.
pub struct ProcessResult {
    pub end: ProcessEnd,
    /// The reason why some output was not stored, if so.
    pub cut_reason: Option<String>,
    /// Notes for the user: output that was cut, processes that outlived their parent.
    pub notes: Vec<String>,
}

/// Runs one process until it ends, reaches its time limit or is cancelled.
pub async fn supervise(
    launch: &Launch,
    folder: &Path,
    marker: &str,
    limit: Duration,
    output: &OutputFiles,
    cancel: &CancelToken,
) -> ProcessResult {
    let (mut notes, mut cut) = (Vec::new(), None);
    let mut child = match start_process(launch, folder, marker).await {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{}: {error}", launch.program.display());
            return ProcessResult { end: ProcessEnd::NotLaunched(why), cut_reason: None, notes };
        }
    };
    let root = child.id();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let end = {
        let listen = async {
            tokio::join!(
                capture_stream(stdout, &output.stdout, &output.scrubber),
                capture_stream(stderr, &output.stderr, &output.scrubber)
            )
        };
        tokio::pin!(listen);
        let mut listening = true;
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                (of_stdout, of_stderr) = &mut listen, if listening => {
                    listening = false;
                    cut.clone_from(&of_stdout);
                    notes.extend(of_stdout.into_iter().chain(of_stderr));
                }
                status = child.wait() => {
                    if listening && let Ok((of_stdout, of_stderr)) = tokio::time::timeout(PIPE_LINGER, &mut listen).await {
                        cut.clone_from(&of_stdout);
                        notes.extend(of_stdout.into_iter().chain(of_stderr));
                    }
                    break process_end(status);
                }
                () = &mut deadline => break ProcessEnd::TimedOut,
                () = cancel.wait_until_cancelled() => break ProcessEnd::Cancelled,
            }
        }
    };
    let ended_by_us = matches!(end, ProcessEnd::TimedOut | ProcessEnd::Cancelled);
    let family = TrialProcesses { root, marker: marker.to_owned(), folder: folder.to_owned() };
    if ended_by_us || family.may_be_alive() {
        let left = tokio::task::spawn_blocking(move || family.kill_all()).await.unwrap_or(0);
        if left > 0 {
            notes.push(format!("{left} processes of this trial could not be ended"));
        } else if !ended_by_us {
            notes.push("the agent left processes running; they were ended".to_owned());
        }
    }
    // This reaps the child if it was killed.
    let _ = child.wait().await;
    reap_dead(None);
    ProcessResult { end, cut_reason: cut, notes }
}

/// Starts the process. Tries again a few times if the machine lacks a resource for a moment.
async fn start_process(launch: &Launch, folder: &Path, marker: &str) -> std::io::Result<Child> {
    let mut waits = [20, 100, 500].into_iter();
    loop {
        let stdin = match &launch.stdin {
            Some(text) => Stdio::from(unnamed_file(text)?),
            None => Stdio::null(),
        };
        let spawned = Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(&launch.env)
            .env(MARKER_VARIABLE, marker)
            .current_dir(folder)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        match (spawned, waits.next()) {
            (Err(error), Some(wait)) if is_temporary_error(&error) => {
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            (spawned, _) => return spawned,
        }
    }
}

/// Makes a file without a name, so that no other process finds it and nothing is left of it.
fn unnamed_file(text: &str) -> std::io::Result<std::fs::File> {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Says whether an error is likely to go away: too few processes, memory or file descriptors, or a program that is
/// just being written.
fn is_temporary_error(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY];
    passing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn process_end(status: std::io::Result<std::process::ExitStatus>) -> ProcessEnd {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ProcessEnd::Exited(code),
            (None, Some(signal)) => ProcessEnd::Signalled(signal),
            (None, None) => ProcessEnd::Signalled(0),
        },
        Err(error) => ProcessEnd::NotLaunched(error.to_string()),
    }
}
