use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::kept::keep;
use super::tree::{Family, MARKER, bury};
use crate::observe::ProcessEnd;
use practicum_agents::agents::Launch;

/// Tells every running trial to stop now.
#[derive(Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Cancel {
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as we do, so this only ends when the value is true.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}

/// Where a process's output goes.
pub struct Output {
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

/// After the process itself is gone, how long its pipes may stay open in other hands.
const LINGER: Duration = Duration::from_millis(500);

pub struct Supervised {
    pub end: ProcessEnd,
    /// Why not all of its output was kept, if so.
    pub cut: Option<String>,
    /// Things worth telling: output cut, processes that outlived their parent.
    pub notes: Vec<String>,
}

/// Runs one process to its end, or to ours.
pub async fn supervise(
    launch: &Launch,
    folder: &Path,
    marker: &str,
    limit: Duration,
    output: &Output,
    cancel: &Cancel,
) -> Supervised {
    let (mut notes, mut cut) = (Vec::new(), None);
    let mut child = match launched(launch, folder, marker).await {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{}: {error}", launch.program.display());
            return Supervised { end: ProcessEnd::NotLaunched(why), cut: None, notes };
        }
    };
    let root = child.id();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let end = {
        let listen = async { tokio::join!(keep(stdout, &output.stdout), keep(stderr, &output.stderr)) };
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
                    if listening && let Ok((of_stdout, of_stderr)) = tokio::time::timeout(LINGER, &mut listen).await {
                        cut.clone_from(&of_stdout);
                        notes.extend(of_stdout.into_iter().chain(of_stderr));
                    }
                    break ended(status);
                }
                () = &mut deadline => break ProcessEnd::TimedOut,
                () = cancel.cancelled() => break ProcessEnd::Cancelled,
            }
        }
    };
    let ended_by_us = matches!(end, ProcessEnd::TimedOut | ProcessEnd::Cancelled);
    let family = Family { root, marker: marker.to_owned(), folder: folder.to_owned() };
    if ended_by_us || family.may_live() {
        let left = tokio::task::spawn_blocking(move || family.sweep()).await.unwrap_or(0);
        if left > 0 {
            notes.push(format!("{left} processes of this trial could not be ended"));
        } else if !ended_by_us {
            notes.push("the agent left processes running; they were ended".to_owned());
        }
    }
    // Reaps the child if we killed it.
    let _ = child.wait().await;
    bury(None);
    Supervised { end, cut, notes }
}

/// Starts the process. A machine that is out of something for a moment is asked again.
async fn launched(launch: &Launch, folder: &Path, marker: &str) -> std::io::Result<Child> {
    let mut waits = [20, 100, 500].into_iter();
    loop {
        let stdin = match &launch.stdin {
            Some(text) => Stdio::from(unnamed(text)?),
            None => Stdio::null(),
        };
        let spawned = Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(&launch.env)
            .env(MARKER, marker)
            .current_dir(folder)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        match (spawned, waits.next()) {
            (Err(error), Some(wait)) if is_passing(&error) => {
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            (spawned, _) => return spawned,
        }
    }
}

/// A file without a name, so that nobody else finds it and nothing is left of it.
fn unnamed(text: &str) -> std::io::Result<std::fs::File> {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// No process, no memory, no file to be had; or a program that is just being written.
fn is_passing(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::TXTBSY];
    passing.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn ended(status: std::io::Result<std::process::ExitStatus>) -> ProcessEnd {
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
