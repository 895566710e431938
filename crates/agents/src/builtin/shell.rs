//! Runs one shell command, with limits on its time and its output.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// The longest output, of standard output and standard error together.
const LONGEST_OUTPUT: usize = 30_000;

/// How long pipes may stay open after the command itself ended: a server that it left running keeps them open.
const PIPE_TIMEOUT_AFTER_EXIT: Duration = Duration::from_millis(300);

pub async fn run_command(command: &str, folder: &Path, limit: Duration) -> Result<String, String> {
    let mut child = spawn(command, folder).map_err(|error| format!("cannot start a shell: {error}"))?;
    let group = child.id();
    let out = child.stdout.take().map(PipeReader::start);
    let err = child.stderr.take().map(PipeReader::start);
    let ended = tokio::time::timeout(limit, child.wait()).await;
    if ended.is_err() {
        kill_group(group);
        // The first process of the group is dead or dying. Without the time limit, a stuck process would block the
        // agent.
        let _ = tokio::time::timeout(PIPE_TIMEOUT_AFTER_EXIT, child.kill()).await;
    }
    let mut output = String::new();
    for listener in [out, err].into_iter().flatten() {
        output.push_str(&listener.finish().await);
    }
    let output = shorten_output(output);
    match ended {
        Ok(Ok(status)) if status.success() => Ok(output),
        Ok(Ok(status)) => Err(append_line(&output, &status.to_string())),
        Ok(Err(error)) => Err(append_line(&output, &error.to_string())),
        Err(_) => {
            Err(append_line(&output, &format!("stopped after {} s: the time limit", limit.as_secs_f64())))
        }
    }
}

fn spawn(command: &str, folder: &Path) -> std::io::Result<Child> {
    let with = |shell: &str| {
        let mut process = Command::new(shell);
        process
            .arg("-c")
            .arg(command)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_secret) {
                process.env_remove(name);
            }
        }
        #[cfg(unix)]
        process.process_group(0);
        process.spawn()
    };
    match with("bash") {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => with("sh"),
        other => other,
    }
}

/// Says whether a variable contains the model's key, which commands must not see.
fn is_secret(variable: &str) -> bool {
    let upper = variable.to_uppercase();
    upper.ends_with("_API_KEY") || upper.ends_with("_AUTH_TOKEN")
}

#[cfg(unix)]
fn kill_group(leader: Option<u32>) {
    let pid = leader.and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // A group that is already gone need not be killed.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_leader: Option<u32>) {}

/// A reader of a pipe that reads to the end but keeps only the beginning: the command must not block on a full
/// pipe.
struct PipeReader {
    received: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl PipeReader {
    fn start(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&received);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 8192];
            while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
                let mut received = shared.lock().unwrap_or_else(PoisonError::into_inner);
                // A character has at most four bytes.
                let room = (LONGEST_OUTPUT * 4).saturating_sub(received.len());
                received.extend_from_slice(&buffer[..read.min(room)]);
            }
        });
        Self { received, task }
    }

    async fn finish(mut self) -> String {
        if tokio::time::timeout(PIPE_TIMEOUT_AFTER_EXIT, &mut self.task).await.is_err() {
            self.task.abort();
        }
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&received).into_owned()
    }
}

fn shorten_output(output: String) -> String {
    match output.char_indices().nth(LONGEST_OUTPUT) {
        Some((at, _)) => format!("{}\n… the rest was left out", &output[..at]),
        None => output,
    }
}

fn append_line(output: &str, what: &str) -> String {
    if output.is_empty() { what.to_owned() } else { format!("{}\n{what}", output.trim_end_matches('\n')) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[tokio::test]
    async fn commands_end_and_tell() {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = Duration::from_millis(1500);
        for (command, expected) in [
            ("echo hi; echo there >&2", Ok("hi\nthere\n")),
            ("exit 3", Err("exit status: 3")),
            ("echo out; exit 3", Err("out\nexit status: 3")),
            ("kill -9 $$", Err("signal: 9")),
            ("cat", Ok("")),
            ("no-such-command-here", Err("not found")),
            // A process left running does not block the agent.
            ("sleep 30 & echo started", Ok("started\n")),
            ("sleep 30", Err("time limit")),
            ("trap '' TERM; sleep 30 & echo x; wait", Err("x\nstopped")),
        ] {
            let began = Instant::now();
            let found = run_command(command, folder.path(), limit).await;
            assert!(began.elapsed() < Duration::from_secs(4), "{command}");
            match (&found, expected) {
                (Ok(output), Ok(expected)) => assert_eq!(output, expected, "{command}"),
                (Err(output), Err(part)) => assert!(output.contains(part), "{command}: {output}"),
                (found, expected) => panic!("{command}: {found:?}, expected {expected:?}"),
            }
        }
    }

    #[tokio::test]
    async fn the_limit_ends_the_whole_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let command = "(sleep 1; touch late) & (sleep 1; touch late) ; wait";
        let found = run_command(command, folder.path(), Duration::from_millis(200)).await;
        assert!(found.is_err());
        tokio::time::sleep(Duration::from_millis(1200)).await;
        assert!(!folder.path().join("late").exists());
    }

    #[tokio::test]
    async fn floods_are_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = run_command("yes é | head -c 3000000", folder.path(), Duration::from_secs(20)).await;
        let output = output.expect("success");
        assert!(output.chars().count() < LONGEST_OUTPUT + 100, "{}", output.len());
        assert!(output.ends_with("left out"));
    }

    #[test]
    fn secrets_are_told_by_their_names() {
        for (name, secret) in [
            ("ANTHROPIC_API_KEY", true),
            ("openai_api_key", true),
            ("ANTHROPIC_AUTH_TOKEN", true),
            ("PATH", false),
            ("API_KEY_FILE", false),
        ] {
            assert_eq!(is_secret(name), secret, "{name}");
        }
    }
}
