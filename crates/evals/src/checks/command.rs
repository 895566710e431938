//! The check `command`: a shell command succeeds in the workspace.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde_json::{Value, json};

use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, NotScoredReason, Rule};
use practicum_core::tree::{json_schema, node_text};

pub static KIND: RuleKind = RuleKind {
    key: "command",
    doc: "this shell command, run in the workspace after the agent is done, succeeds within 30 seconds",
    schema: json_schema::nonempty_text,
    decode: |node, diagnostics| {
        let command = node_text(node, KIND.key, diagnostics)?;
        if command.trim().is_empty() || command.contains('\0') {
            diagnostics.error("empty-text", node.span, "this is no command");
            return None;
        }
        Some(Arc::new(CommandRule(command.to_owned())))
    },
};

/// The rule of the check `command`, with the shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRule(String);

const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of bytes of a command's output that are kept.
const LARGEST_OUTPUT: usize = 16 * 1024;

impl Rule for CommandRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        json!(self.0)
    }

    fn reads_agent_output(&self) -> bool {
        false
    }

    fn runs_code(&self) -> bool {
        true
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let Some(folder) = evidence.workspace.folder() else {
            let why = "the workspace is gone, so no command can run in it";
            return CheckFinding::not_scored(NotScoredReason::CheckFailed(why.to_owned()));
        };
        finding_for_outcome(&self.0, run_command(&self.0, folder, COMMAND_TIMEOUT))
    }
}

enum CommandOutcome {
    Ended { status: ExitStatus, output: String },
    TimedOut,
}

fn finding_for_outcome(command: &str, outcome: std::io::Result<CommandOutcome>) -> CheckFinding {
    let shown = excerpt(command, 80);
    let (status, output) = match outcome {
        Ok(CommandOutcome::Ended { status, output }) => (status, output),
        Ok(CommandOutcome::TimedOut) => {
            let why = format!("`{shown}` did not end within {} s", COMMAND_TIMEOUT.as_secs());
            return CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
        }
        Err(error) => {
            return CheckFinding::not_scored(NotScoredReason::CheckFailed(format!(
                "cannot run `{shown}`: {error}"
            )));
        }
    };
    let finding = match (status.code(), status.signal()) {
        (Some(0), _) => CheckFinding::new(true, format!("`{shown}` succeeded")),
        (Some(code), _) => CheckFinding::new(false, format!("`{shown}` ended with exit code {code}")),
        (None, Some(signal)) => CheckFinding::new(false, format!("`{shown}` was ended by signal {signal}")),
        (None, None) => CheckFinding::new(false, format!("`{shown}` failed")),
    };
    if output.trim().is_empty() { finding } else { finding.with_evidence(excerpt(output.trim(), 400)) }
}

/// Runs a command with an environment that has only the path. The command may run code that the agent wrote, and
/// that code must not see our keys.
fn run_command(command: &str, folder: &Path, limit: Duration) -> std::io::Result<CommandOutcome> {
    let mut child = Command::new("sh")
        .arg("-c")
        .arg(command)
        .current_dir(folder)
        .env_clear()
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .env("HOME", folder)
        .env("LANG", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let outputs = [child.stdout.take().map(read_in_background), child.stderr.take().map(read_in_background)];
    let ended = ends_within(&child, limit);
    // The group is also killed after a success: a process that the command left in the background must not outlive
    // the check. This happens before the child is reaped, so that its process id is still its own.
    kill_group(&child);
    let status = child.wait()?;
    if !ended? {
        return Ok(CommandOutcome::TimedOut);
    }
    // The pipes are closed by now, unless a process left the group and kept them open. The check does not wait for
    // such a process.
    let soon = Duration::from_millis(500);
    let output: String = outputs
        .into_iter()
        .flatten()
        .filter_map(|output| output.recv_timeout(soon).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    Ok(CommandOutcome::Ended { status, output })
}

/// Reads a pipe to its end in a thread and sends its beginning. The rest is read and dropped, so that the writer
/// never stalls.
fn read_in_background(mut pipe: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let room = LARGEST_OUTPUT.saturating_sub(kept.len());
            kept.extend_from_slice(&buffer[..count.min(room)]);
        }
        // Sending fails only if the receiver has stopped waiting.
        let _ = sender.send(kept);
    });
    receiver
}

/// Waits for the child to end, without reaping it. Gives `false` if the time is up first.
fn ends_within(child: &Child, limit: Duration) -> std::io::Result<bool> {
    let Some(pid) = pid(child) else { return Ok(false) };
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    while waitid(WaitId::Pid(pid), look)?.is_none() {
        if began.elapsed() >= limit {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
    Ok(true)
}

fn kill_group(child: &Child) {
    if let Some(group) = pid(child) {
        // This fails only if no process is left in the group, which is the goal.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{CommandWorkspace, NoFiles, decode, run_rule, run_with_output};
    use super::*;

    fn folder() -> (tempfile::TempDir, CommandWorkspace) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").expect("a file");
        let view = CommandWorkspace(folder.path().to_owned());
        (folder, view)
    }

    #[test]
    fn rows() {
        let (_kept, view) = folder();
        for (command, expected, says) in [
            ("test $(wc -l < a.txt) -lt 40", "pass", "succeeded"),
            ("grep -q three a.txt", "fail", "exit code 1"),
            ("exit 7", "fail", "exit code 7"),
            ("no-such-command-here", "fail", "exit code 127"),
            ("kill -9 $$", "fail", "signal 9"),
            ("cat >/dev/null", "pass", "succeeded"),
            ("yes | head -c 10000000", "pass", "succeeded"),
            ("sleep 60 & exit 0", "pass", "succeeded"),
            ("test -z \"$CARGO_MANIFEST_DIR$USER\"", "pass", "succeeded"),
        ] {
            let rule = decode(&KIND, &json!(command).to_string()).expect("a command");
            let began = Instant::now();
            let finding = run_rule(rule.as_ref(), &run_with_output(""), &view);
            assert_eq!(finding.verdict.name(), expected, "{command}: {finding:?}");
            assert!(finding.rationale.contains(says), "{command}: {finding:?}");
            assert!(began.elapsed() < Duration::from_secs(20), "{command}");
        }
    }

    #[test]
    fn a_command_that_does_not_end_has_no_answer() {
        let (_kept, view) = folder();
        let command = "sleep 60 & echo $! > pid; wait";
        let outcome = run_command(command, &view.0, Duration::from_millis(300));
        let finding = finding_for_outcome(command, outcome);
        assert_eq!(finding.verdict.name(), "not_scored");
        let pid = std::fs::read_to_string(view.0.join("pid")).expect("the child said its number");
        let gone = || match cfg!(target_os = "linux") {
            true => std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
                .map_or(true, |stat| stat.contains(") Z ")),
            false => {
                let listed = Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output();
                let state = listed.expect("ps starts").stdout.trim_ascii().to_vec();
                state.is_empty() || state.starts_with(b"Z")
            }
        };
        let began = Instant::now();
        while !gone() && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(gone(), "its child lives on");
    }

    #[test]
    fn without_a_workspace_there_is_no_answer() {
        let rule = decode(&KIND, "'true'").expect("a command");
        assert_eq!(run_rule(rule.as_ref(), &run_with_output(""), &NoFiles).verdict.name(), "not_scored");
        for yaml in ["''", "'  '", "5", "[ls]"] {
            assert!(decode(&KIND, yaml).is_err(), "{yaml}");
        }
    }
}
