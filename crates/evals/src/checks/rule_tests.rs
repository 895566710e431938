//! Helpers for tests of rules: a value as YAML, a text or a run, a verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::RuleKind;
use practicum_core::model::{
    AgentEnding, CheckCommand, CheckEvidence, CheckFinding, CheckedText, CommandEnd, CommandOutcome,
    Diagnostics, MissingEvidence, MockCall, MockOutcome, MockedTool, Observation, RelPath, Rule, Step,
    TokenUsage, ToolCall, WorkspaceView,
};
use practicum_core::tree::{SourceFile, SourceSyntax};

/// Tests rows of a value as YAML, the text to check, and the expected verdict's name or "refused".
pub fn check_rows(kind: &RuleKind, rows: &[(&str, &str, &str)]) {
    for (yaml, text, expected) in rows {
        check_run(kind, yaml, &run_with_output(text), expected);
    }
}

/// Tests one value on a whole run.
pub fn check_run(kind: &RuleKind, yaml: &str, run: &Observation, expected: &str) {
    let found = match decode(kind, yaml) {
        Ok(rule) => run_rule(rule.as_ref(), run, &NoFiles).verdict.name(),
        Err(_) => "refused",
    };
    assert_eq!(found, expected, "{}: {yaml} on {run:?}", kind.key);
}

/// Decodes a rule, or gives the errors in its value. Also tests that the value of the rule reads back as an equal
/// rule.
pub fn decode(kind: &RuleKind, yaml: &str) -> Result<Arc<dyn Rule>, Vec<String>> {
    let rule = decode_once(kind, yaml)?;
    let written = rule.value().to_string();
    let again = decode_once(kind, &written).unwrap_or_else(|problems| panic!("{written}: {problems:?}"));
    assert_eq!((rule.key(), rule.value()), (kind.key, again.value()), "{yaml}");
    Ok(rule)
}

fn decode_once(kind: &RuleKind, yaml: &str) -> Result<Arc<dyn Rule>, Vec<String>> {
    let mut diagnostics = Diagnostics::default();
    let source =
        SourceFile::parse(Path::new("row.yaml"), yaml.to_owned(), SourceSyntax::Yaml, &mut diagnostics);
    let rule = source.and_then(|source| (kind.decode)(&source.root, &mut diagnostics));
    match rule {
        Some(rule) if !diagnostics.has_errors() => Ok(rule),
        Some(_) | None => Err(diagnostics.iter().map(|problem| problem.message.clone()).collect()),
    }
}

pub fn run_rule(rule: &dyn Rule, observation: &Observation, workspace: &dyn WorkspaceView) -> CheckFinding {
    let texts = [CheckedText::without_path(observation.output.as_str())];
    rule.check(&CheckEvidence { texts: &texts, observation, workspace, url_checker: None })
}

/// Makes a run with this output and nothing else.
pub fn run_with_output(text: &str) -> Observation {
    Observation {
        ended: AgentEnding::Finished,
        ended_because: None,
        limit_resets_at: None,
        steps: vec![Step::User("do it".to_owned()), Step::Text(text.to_owned())],
        output: text.to_owned(),
        skills_listed: None,
        commands_listed: Vec::new(),
        leaked: Vec::new(),
        activated: Vec::new(),
        refused: Vec::new(),
        uncertain: Vec::new(),
        text_findings: Vec::new(),
        hides_tools: false,
        unread: None,
        files: Vec::new(),
        mock_calls: None,
        usage: TokenUsage::default(),
        cost_usd: None,
        api_calls: None,
        turns: 1,
        model: None,
        agent_version: None,
        seconds: 1.0,
        missing: MissingEvidence::default(),
    }
}

/// Makes a run with calls of these tools.
pub fn run_with_calls(calls: &[(&str, Value)]) -> Observation {
    let mut run = run_with_output("done");
    for (name, input) in calls {
        run.steps.push(Step::Tool(ToolCall {
            name: (*name).to_owned(),
            input: input.clone(),
            result: Some("ok".to_owned()),
            ok: Some(true),
        }));
    }
    run
}

/// Makes a run in which two mocks were called: `az` twice, and between that the tool `buy` of the server `shop`.
pub fn run_with_mock_calls() -> Observation {
    let call = |of| MockCall { of, outcome: MockOutcome::Answered, answer: "ok".to_owned() };
    let az = |args: &[&str]| MockedTool::Command {
        command: "az".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
    };
    let buy = MockedTool::Mcp {
        server: "shop".to_owned(),
        tool: "buy".to_owned(),
        input: serde_json::json!({"item": "pear", "count": 2}),
    };
    let calls = [az(&["group", "list"]), buy, az(&["group", "delete", "--name", "prod"])];
    Observation { mock_calls: Some(calls.map(call).to_vec()), ..run_with_output("done") }
}

/// Makes a run that shows only the answer.
pub fn run_without_transcript() -> Observation {
    Observation { hides_tools: true, ..run_with_output("done") }
}

/// A workspace without any files.
pub struct NoFiles;

impl WorkspaceView for NoFiles {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Ok(false)
    }
}

/// A workspace that is a folder.
pub struct FolderWorkspace(pub PathBuf);

impl WorkspaceView for FolderWorkspace {
    fn read(&self, path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        std::fs::read(path.join_to(&self.0)).map(Some)
    }

    fn exists(&self, path: &RelPath) -> std::io::Result<bool> {
        Ok(path.join_to(&self.0).exists())
    }
}

/// A workspace that is a folder, in which commands are run without a sandbox.
pub struct CommandWorkspace(pub PathBuf);

impl WorkspaceView for CommandWorkspace {
    fn read(&self, path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        std::fs::read(path.join_to(&self.0)).map(Some)
    }

    fn exists(&self, path: &RelPath) -> std::io::Result<bool> {
        Ok(path.join_to(&self.0).exists())
    }

    fn run_command(&self, command: &CheckCommand<'_>) -> Option<std::io::Result<CommandOutcome>> {
        use std::os::unix::process::ExitStatusExt;
        let input = self.0.join(".input");
        std::fs::write(&input, command.input.unwrap_or_default()).expect("written");
        let limit = format!("{}s", command.time_limit.as_secs_f64());
        let output = std::process::Command::new("timeout")
            .args(["--signal=KILL", &limit, "sh", "-c", command.run])
            .current_dir(&self.0)
            .stdin(std::fs::File::open(input).expect("opened"))
            .output()
            .expect("timeout starts");
        let end = match (output.status.code(), output.status.signal()) {
            (Some(137), _) | (None, Some(9)) if command.time_limit.as_secs() < 1 => CommandEnd::TimedOut,
            (Some(137), _) => CommandEnd::Signalled(9),
            (Some(code), _) => CommandEnd::Exited(code),
            (None, signal) => CommandEnd::Signalled(signal.unwrap_or(0)),
        };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Some(Ok(CommandOutcome { end, stdout: text(output.stdout), stderr: text(output.stderr) }))
    }
}
