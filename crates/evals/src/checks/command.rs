//! The check `command`: a shell command succeeds in the workspace.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{RuleKind, excerpt};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, CommandEnd, CommandOutcome, NotScoredReason, Rule,
};
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
        match evidence.workspace.run_command(&self.0, COMMAND_TIMEOUT) {
            Some(outcome) => finding_for_outcome(&self.0, outcome),
            None => {
                let why = "the workspace is gone, so no command can run in it";
                CheckFinding::not_scored(NotScoredReason::CheckFailed(why.to_owned()))
            }
        }
    }
}

/// The exit code with which a shell says that there is no such program.
const NO_SUCH_PROGRAM: i32 = 127;

fn finding_for_outcome(command: &str, outcome: std::io::Result<CommandOutcome>) -> CheckFinding {
    let shown = excerpt(command, 80);
    let not_scored = |why: String| CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
    let (end, output) = match outcome {
        Ok(CommandOutcome { end, output }) => (end, output),
        Err(error) => return not_scored(format!("cannot run `{shown}`: {error}")),
    };
    let finding = match end {
        CommandEnd::Exited(0) => CheckFinding::new(true, format!("`{shown}` succeeded")),
        CommandEnd::Exited(NO_SUCH_PROGRAM) => CheckFinding::new(
            false,
            format!(
                "`{shown}` ended with exit code 127: a program is not installed, or the sandbox hides it"
            ),
        ),
        CommandEnd::Exited(code) => {
            CheckFinding::new(false, format!("`{shown}` ended with exit code {code}"))
        }
        CommandEnd::Signalled(signal) => {
            CheckFinding::new(false, format!("`{shown}` was ended by signal {signal}"))
        }
        CommandEnd::TimedOut => {
            return not_scored(format!("`{shown}` did not end within {} s", COMMAND_TIMEOUT.as_secs()));
        }
        CommandEnd::OverLimit(why) => return not_scored(format!("`{shown}`: {why}")),
        CommandEnd::Cancelled => return not_scored(format!("`{shown}` was stopped with the run")),
    };
    if output.trim().is_empty() { finding } else { finding.with_evidence(excerpt(output.trim(), 400)) }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{NoFiles, decode, run_rule, run_with_output};
    use super::*;
    use practicum_core::model::{RelPath, WorkspaceView};

    /// A workspace in which every command ends in the same way.
    struct EndsWith(CommandEnd);

    impl WorkspaceView for EndsWith {
        fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
            Ok(None)
        }

        fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
            Ok(false)
        }

        fn run_command(&self, _: &str, _: Duration) -> Option<std::io::Result<CommandOutcome>> {
            Some(Ok(CommandOutcome { end: self.0.clone(), output: "printed".to_owned() }))
        }
    }

    #[test]
    fn rows() {
        for (end, expected, says) in [
            (CommandEnd::Exited(0), "pass", "succeeded"),
            (CommandEnd::Exited(7), "fail", "exit code 7"),
            (CommandEnd::Exited(127), "fail", "the sandbox hides it"),
            (CommandEnd::Signalled(9), "fail", "signal 9"),
            (CommandEnd::TimedOut, "not_scored", "within 30 s"),
            (CommandEnd::OverLimit("much memory".to_owned()), "not_scored", "much memory"),
            (CommandEnd::Cancelled, "not_scored", "stopped"),
        ] {
            let rule = decode(&KIND, "'make test'").expect("a command");
            let finding = run_rule(rule.as_ref(), &run_with_output(""), &EndsWith(end.clone()));
            assert_eq!(finding.verdict.name(), expected, "{end:?}: {finding:?}");
            assert!(format!("{finding:?}").contains(says), "{end:?}: {finding:?}");
        }
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
