//! A command of this program as a process, whose output is the answer of a tool.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

/// The longest output that is given to an agent, from its end: verdicts and errors are there.
const LONGEST_OUTPUT: usize = 24 * 1024;
/// The longest line of progress that is read.
const LONGEST_LINE: u64 = 16 * 1024;

/// A running command. Dropping it asks the command to end; it then stops its agents and keeps its results.
pub struct CommandProcess {
    child: Child,
}

/// How far a run has come.
pub struct TrialProgress {
    /// The number of finished trials.
    pub done: u64,
    /// The number of planned trials.
    pub all: u64,
    /// What the command says about the trial that finished.
    pub line: String,
}

/// What a command that has ended left: its output, its messages and its exit status.
pub struct CommandOutput {
    output: String,
    messages: String,
    status: ExitStatus,
}

impl CommandProcess {
    /// Starts this program with these arguments in a folder.
    pub fn start(program: &Path, folder: &Path, arguments: &[String]) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(Self { child: command.spawn()? })
    }

    /// Waits until the command has ended, and tells about each trial that has finished before.
    pub async fn wait(mut self, tell: impl Fn(TrialProgress)) -> std::io::Result<CommandOutput> {
        let output = self.child.stdout.take().map(read_end);
        let messages = self.child.stderr.take().map(|stream| read_messages(stream, tell));
        let (output, messages) = tokio::join!(
            async { if let Some(output) = output { output.await } else { Ok(String::new()) } },
            async { if let Some(messages) = messages { messages.await } else { Ok(String::new()) } },
        );
        let status = self.child.wait().await?;
        Ok(CommandOutput { output: output?, messages: messages?, status })
    }
}

impl Drop for CommandProcess {
    fn drop(&mut self) {
        // There is no id once the process has been waited for.
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            // A process that is gone needs no signal.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

impl CommandOutput {
    /// Says whether the command could not do its work at all.
    pub fn is_bad_usage(&self) -> bool {
        matches!(self.status.code(), Some(2) | None)
    }

    /// Gives all that an agent should read.
    pub fn text(&self) -> String {
        let meaning = match self.status.code() {
            Some(0) => "exit code 0: no gate failed, and there is no error",
            Some(1) => "exit code 1: a gate failed, or a comparison found a loss",
            Some(2) => "exit code 2: bad usage, an eval file that cannot be understood, or an invalid skill",
            Some(3) => "exit code 3: incomplete, there is no answer; this is not a pass",
            Some(4) => "exit code 4: the budget was used up; this is not a pass",
            Some(_) | None => "the command was interrupted; this is not a pass",
        };
        let parts = [self.messages.trim_end(), self.output.trim(), meaning];
        parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("\n\n")
    }
}

/// Reads a stream to its end and keeps the last part.
async fn read_end(mut stream: impl AsyncRead + Unpin) -> std::io::Result<String> {
    let mut kept = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return Ok(last_part(&kept));
        }
        kept.extend_from_slice(&piece[..read]);
        if kept.len() > 2 * LONGEST_OUTPUT {
            kept.drain(..kept.len() - LONGEST_OUTPUT);
            kept.splice(..0, *b"(the beginning is left out)\n");
        }
    }
}

fn last_part(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(LONGEST_OUTPUT);
    let text = String::from_utf8_lossy(&bytes[from..]).into_owned();
    if from == 0 { text } else { format!("(the beginning is left out)\n{text}") }
}

/// Reads the messages of a command. Lines about finished trials are told, and all others are kept.
async fn read_messages(
    stream: impl AsyncRead + Unpin,
    tell: impl Fn(TrialProgress),
) -> std::io::Result<String> {
    let mut lines = BufReader::new(stream);
    let mut kept = Vec::new();
    loop {
        let mut line = Vec::new();
        if (&mut lines).take(LONGEST_LINE).read_until(b'\n', &mut line).await? == 0 {
            return Ok(last_part(&kept));
        }
        match read_progress(String::from_utf8_lossy(&line).trim_end()) {
            Some(progress) => tell(progress),
            None if kept.len() < LONGEST_OUTPUT => kept.extend_from_slice(&line),
            None => {}
        }
    }
}

/// Reads a line such as `[2/6] passed  some-case #1 (claude, 3.0 s)`.
fn read_progress(line: &str) -> Option<TrialProgress> {
    let (counts, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (done, all) = counts.split_once('/')?;
    Some(TrialProgress { done: done.parse().ok()?, all: all.parse().ok()?, line: rest.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_and_other_lines_are_not() {
        let read = read_progress("[2/6] passed     some-case #1 (claude, 3.0 s)").expect("it is there");
        assert_eq!((read.done, read.all), (2, 6));
        assert!(read.line.starts_with("passed"));
        for other in ["plan: 6 trials", "[x/6] passed", "[2] passed", "", "[2/6]"] {
            assert!(read_progress(other).is_none(), "{other}");
        }
    }

    #[tokio::test]
    async fn of_an_endless_output_the_end_is_kept() {
        let text = format!("{}the verdict", "x".repeat(10 * LONGEST_OUTPUT));
        let kept = read_end(text.as_bytes()).await.expect("read");
        assert!(kept.len() <= LONGEST_OUTPUT + 100);
        assert!(kept.starts_with("(the beginning is left out)"));
        assert!(kept.ends_with("the verdict"));
    }
}
