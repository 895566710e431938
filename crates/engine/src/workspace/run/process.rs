//! Runs one process under a time limit and captures its output.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::control_group::{ControlGroup, new_control_group};
use super::dialogue::Dialogue;
use super::process_tree::{MARKER_VARIABLE, TrialProcesses, reap_dead};
use super::stream_capture::capture_stream;
use super::watchdog::wait_until_exceeded;
use crate::workspace::limits::TrialLimits;
use crate::workspace::observe::ProcessEnd;
use crate::workspace::secrets::Scrubber;
use practicum_agents::agents::{AgentClient, Launch};

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

    /// Waits until the token is cancelled.
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

/// The rules under which a process runs.
pub struct ProcessRules<'r> {
    /// The folder in which it starts.
    pub folder: &'r Path,
    /// The marker in the environment of the process and of those that it starts.
    pub marker: &'r str,
    pub time_limit: Duration,
    /// What it may use; `None` for as much as it wants.
    pub limits: Option<&'r TrialLimits>,
    /// Whether it is the outer end of a namespace of processes.
    pub has_init_process: bool,
}

/// How long a process may go on after it was asked to end, to write what it holds.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// How long a process may go on after its client has closed its standard input, before it is asked to end.
const CLOSE_PERIOD: Duration = Duration::from_millis(500);

/// Runs one process until it ends, exceeds a limit or is cancelled. At its time limit and when it is cancelled it is
/// first asked to end.
pub async fn supervise(
    launch: &Launch,
    rules: &ProcessRules<'_>,
    output: &OutputFiles,
    cancel: &CancelToken,
) -> ProcessResult {
    supervise_with_client(launch, rules, output, cancel, None).await
}

/// Runs one process like `supervise`, and lets a client talk with it. When the client is done, the process is ended, and
/// has ended well.
pub async fn supervise_with_client(
    launch: &Launch,
    rules: &ProcessRules<'_>,
    output: &OutputFiles,
    cancel: &CancelToken,
    client: Option<Box<dyn AgentClient>>,
) -> ProcessResult {
    let ProcessRules { folder, marker, time_limit, limits, has_init_process } = *rules;
    let (mut notes, mut cut) = (Vec::new(), None);
    let group = limits.and_then(|limits| new_control_group(&limits.limits)).map(Arc::new);
    let mut child = match start_process(launch, folder, marker, group.as_deref(), client.is_some()).await {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{}: {error}", launch.program.display());
            return ProcessResult { end: ProcessEnd::NotLaunched(why), cut_reason: None, notes };
        }
    };
    let family = TrialProcesses {
        root: child.id(),
        marker: marker.to_owned(),
        folder: folder.to_owned(),
        has_init_process,
    };
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let mut asked_to_end = None;
    let (dialogue, client_end) = client.map(|client| Dialogue::new(client, child.stdin.take())).unzip();
    let (mut is_closing, mut client_is_done) = (false, false);
    let end = {
        let listen = async {
            tokio::join!(
                capture_stream(stdout, &output.stdout, &output.scrubber, dialogue),
                capture_stream(stderr, &output.stderr, &output.scrubber, None)
            )
        };
        let client_end = async {
            match client_end {
                Some(end) => match end.await {
                    Ok(end) => end,
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        let watch = async {
            match limits {
                Some(limits) => wait_until_exceeded(limits, &family, group.as_ref()).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(listen, watch, client_end);
        let mut listening = true;
        let deadline = tokio::time::sleep(time_limit);
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
                    break asked_to_end.unwrap_or_else(|| process_end(status));
                }
                why = &mut watch => break ProcessEnd::OverLimit(why),
                end = &mut client_end, if asked_to_end.is_none() => {
                    asked_to_end = Some(end.map_or_else(ProcessEnd::NotLaunched, |()| ProcessEnd::Exited(0)));
                    (is_closing, client_is_done) = (true, true);
                    deadline.as_mut().reset(tokio::time::Instant::now() + CLOSE_PERIOD);
                }
                () = &mut deadline => {
                    if std::mem::take(&mut is_closing) {
                        ask_to_end(&family, deadline.as_mut());
                        continue;
                    }
                    if let Some(end) = asked_to_end {
                        break end;
                    }
                    asked_to_end = Some(ProcessEnd::TimedOut);
                    ask_to_end(&family, deadline.as_mut());
                }
                () = cancel.wait_until_cancelled(), if asked_to_end.is_none() => {
                    asked_to_end = Some(ProcessEnd::Cancelled);
                    ask_to_end(&family, deadline.as_mut());
                }
            }
        }
    };
    // A process may end before the first look.
    let LastLook { excess, is_nothing_left } = match (limits, &end) {
        (None, _) | (_, ProcessEnd::TimedOut | ProcessEnd::Cancelled | ProcessEnd::OverLimit(_)) => {
            LastLook::default()
        }
        (Some(limits), _) => look_once_more(limits, &family, group.as_ref()).await,
    };
    let end = excess.map_or(end, ProcessEnd::OverLimit);
    let ended_by_us = client_is_done
        || matches!(end, ProcessEnd::TimedOut | ProcessEnd::Cancelled | ProcessEnd::OverLimit(_));
    if ended_by_us || !is_nothing_left && family.may_be_alive() {
        group.iter().for_each(|group| group.kill());
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

/// Asks the processes to end, and gives them a moment for that.
fn ask_to_end(family: &TrialProcesses, deadline: Pin<&mut tokio::time::Sleep>) {
    family.ask_to_end();
    deadline.reset(tokio::time::Instant::now() + GRACE_PERIOD);
}

/// What was found when the first process had ended.
#[derive(Default)]
struct LastLook {
    /// The limit that was exceeded.
    excess: Option<String>,
    /// Whether it is certain that no process is left. Where nothing runs, nothing can be started.
    is_nothing_left: bool,
}

/// Says which limit was exceeded when the first process ended: by what the kernel refused, by processes that it left
/// running, or on the disk.
async fn look_once_more(
    limits: &TrialLimits,
    family: &TrialProcesses,
    group: Option<&Arc<ControlGroup>>,
) -> LastLook {
    let (limits, family, group) = (limits.clone(), family.clone(), group.cloned());
    let look = move || {
        let refused = group.and_then(|group| group.excess(&limits.limits));
        let is_nothing_left = !family.may_be_alive();
        let left = || if is_nothing_left { None } else { family.excess(&limits) };
        let excess = refused.or_else(left).or_else(|| limits.disk_excess());
        LastLook { excess, is_nothing_left }
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

/// Starts the process. Tries again a few times if the machine lacks a resource for a moment.
async fn start_process(
    launch: &Launch,
    folder: &Path,
    marker: &str,
    group: Option<&ControlGroup>,
    has_client: bool,
) -> std::io::Result<Child> {
    let mut waits = [20, 100, 500].into_iter();
    loop {
        let stdin = match &launch.stdin {
            _ if has_client => Stdio::piped(),
            Some(text) => Stdio::from(unnamed_file(text)?),
            None => Stdio::null(),
        };
        let mut command = Command::new(&launch.program);
        if let Some(entrance) = group.and_then(|group| group.entrance().ok()) {
            let enter = move || {
                // If this fails, the watchdog and the limits of the process still hold.
                let _ = rustix::io::write(&entrance, b"0");
                Ok(())
            };
            #[expect(unsafe_code, reason = "a process must enter its group before it can start another one")]
            // SAFETY: between fork and exec this makes a single system call and uses no memory of its own.
            unsafe {
                command.pre_exec(enter);
            }
        }
        let spawned = command
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
