//! The check `command`: a shell command succeeds in the workspace.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::regex::decode_pattern;
use super::{PythonPattern, RuleKind, excerpt};
use practicum_core::model::{
    CheckCommand, CheckEvidence, CheckFinding, CheckTarget, CommandEnd, CommandOutcome, Diagnostics,
    NotScoredReason, Rule, format_duration, parse_duration,
};
use practicum_core::tree::{
    NodeData, ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text, report_wrong_type,
};

pub static KIND: RuleKind = RuleKind {
    key: "command",
    doc: "this shell command, run in the workspace after the agent is done, succeeds within 30 seconds",
    schema,
    decode: |node, diagnostics| Some(Arc::new(ShellCommandRule::decode(node, diagnostics)?)),
};

/// The rule of the check `command`: a shell command, and what is expected of it.
#[derive(Debug, Clone)]
pub struct ShellCommandRule {
    run: String,
    /// The exit code that passes.
    exit_code: i32,
    timeout: Duration,
    /// Whether the command gets the agent's last message on its standard input.
    gets_output: bool,
    stdout_contains: Vec<String>,
    stdout_matches: Option<PythonPattern>,
    stderr_contains: Vec<String>,
    /// The score from which the check passes, if the command prints a score.
    score: Option<f64>,
}

const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// The exit codes with which a shell says that a program cannot be executed or does not exist.
const CANNOT_EXECUTE: i32 = 126;
const NO_SUCH_PROGRAM: i32 = 127;

impl ShellCommandRule {
    /// Reads either the command alone or a mapping.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        let blank = |run| Self {
            run,
            exit_code: 0,
            timeout: COMMAND_TIMEOUT,
            gets_output: false,
            stdout_contains: Vec::new(),
            stdout_matches: None,
            stderr_contains: Vec::new(),
            score: None,
        };
        if node.as_map().is_none() {
            return decode_run(node, diagnostics).map(blank);
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let run = match object.get_non_null("run") {
            Some(node) => decode_run(node, diagnostics),
            None => {
                object.report_missing("run", diagnostics);
                None
            }
        };
        let exit_code = object.int("exit_code", 0, 255, diagnostics).unwrap_or(0);
        let timeout = match object.get_non_null("timeout") {
            Some(node) => decode_timeout(node, diagnostics),
            None => Some(COMMAND_TIMEOUT),
        };
        let gets_output = object.bool("gets_output", diagnostics).unwrap_or(false);
        let mut texts = |key| {
            let found = object.texts(key, diagnostics).unwrap_or_default();
            found.into_iter().map(|(text, _)| text.to_owned()).collect::<Vec<_>>()
        };
        let (stdout_contains, stderr_contains) = (texts("stdout_contains"), texts("stderr_contains"));
        let pattern = object.get_non_null("stdout_matches");
        let pattern = pattern.map(|node| decode_pattern("stdout_matches", node, diagnostics));
        let stdout_matches = match pattern {
            Some(pattern) => Some(pattern?),
            None => None,
        };
        let score = object.number("score", 0.0, 1.0, diagnostics);
        object.reject_unknown_keys(KIND.key, diagnostics);
        let exit_code = i32::try_from(exit_code).ok()?;
        let blank = blank(run?);
        Some(Self {
            exit_code,
            timeout: timeout?,
            gets_output,
            stdout_contains,
            stdout_matches,
            stderr_contains,
            score,
            ..blank
        })
    }

    fn is_plain(&self) -> bool {
        self.value_map().len() == 1
    }

    fn value_map(&self) -> Map<String, Value> {
        let mut map = Map::from_iter([("run".to_owned(), json!(self.run))]);
        let mut set = |key: &str, value: Value| map.insert(key.to_owned(), value);
        if self.exit_code != 0 {
            set("exit_code", json!(self.exit_code));
        }
        if self.timeout != COMMAND_TIMEOUT {
            set("timeout", json!(format_duration(self.timeout)));
        }
        if self.gets_output {
            set("gets_output", json!(true));
        }
        for (key, texts) in
            [("stdout_contains", &self.stdout_contains), ("stderr_contains", &self.stderr_contains)]
        {
            if !texts.is_empty() {
                set(key, json!(texts));
            }
        }
        if let Some(pattern) = &self.stdout_matches {
            set("stdout_matches", json!(pattern.source()));
        }
        if let Some(score) = self.score {
            set("score", json!(score));
        }
        map
    }
}

fn decode_run(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<String> {
    let command = node_text(node, KIND.key, diagnostics)?;
    if command.trim().is_empty() || command.contains('\0') {
        diagnostics.error("empty-text", node.span, "this is no command");
        return None;
    }
    Some(command.to_owned())
}

fn decode_timeout(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Duration> {
    let text = match &node.data {
        NodeData::Text(text) => text.clone(),
        NodeData::Int(seconds) => seconds.to_string(),
        _ => {
            report_wrong_type(node, "timeout", "a duration", diagnostics);
            return None;
        }
    };
    let timeout = parse_duration(&text);
    if timeout.is_none() {
        diagnostics.error("invalid-duration", node.span, format!("{text:?} is not a duration"));
    }
    timeout
}

impl Rule for ShellCommandRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        if self.is_plain() { json!(self.run) } else { Value::Object(self.value_map()) }
    }

    fn reads_agent_output(&self) -> bool {
        self.gets_output
    }

    fn runs_code(&self) -> bool {
        true
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let input = self.gets_output.then_some(evidence.observation.output.as_str());
        let command = CheckCommand { run: &self.run, time_limit: self.timeout, input };
        match evidence.workspace.run_command(&command) {
            Some(outcome) => self.finding_for_outcome(outcome),
            None => {
                let why = "the workspace is gone, so no command can run in it";
                CheckFinding::not_scored(NotScoredReason::CheckFailed(why.to_owned()))
            }
        }
    }
}

impl ShellCommandRule {
    fn finding_for_outcome(&self, outcome: std::io::Result<CommandOutcome>) -> CheckFinding {
        let shown = excerpt(&self.run, 80);
        let not_scored = |why: String| CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return not_scored(format!("cannot run `{shown}`: {error}")),
        };
        let CommandOutcome { end, stdout, stderr } = &outcome;
        match end {
            CommandEnd::Exited(_) | CommandEnd::Signalled(_) => {}
            CommandEnd::TimedOut => {
                return not_scored(format!("`{shown}` did not end within {}", format_duration(self.timeout)));
            }
            CommandEnd::OverLimit(why) => return not_scored(format!("`{shown}`: {why}")),
            CommandEnd::Cancelled => return not_scored(format!("`{shown}` was stopped with the run")),
        }
        // If the program is missing or not executable, its missing score says nothing about the agent.
        if self.score.is_some()
            && matches!(end, CommandEnd::Exited(CANNOT_EXECUTE | NO_SUCH_PROGRAM))
            && printed_object(stdout).is_none()
        {
            return not_scored(format!("`{shown}` cannot be run: {}", excerpt(stderr.trim(), 200)));
        }
        let finding = match self.score {
            Some(least) => score_finding(&shown, stdout, least),
            None => self.finding_for_exit(&shown, &outcome),
        };
        let output = format!("{stdout}{stderr}");
        if output.trim().is_empty() { finding } else { finding.with_evidence(excerpt(output.trim(), 400)) }
    }

    fn finding_for_exit(&self, shown: &str, outcome: &CommandOutcome) -> CheckFinding {
        let CommandOutcome { end, stdout, stderr } = outcome;
        match end {
            CommandEnd::Exited(code) if *code == self.exit_code => {}
            CommandEnd::Exited(NO_SUCH_PROGRAM) => {
                let why = "ended with exit code 127: a program is not installed, or the sandbox hides it";
                return CheckFinding::new(false, format!("`{shown}` {why}"));
            }
            CommandEnd::Exited(code) => {
                return CheckFinding::new(false, format!("`{shown}` ended with exit code {code}"));
            }
            CommandEnd::Signalled(signal) => {
                return CheckFinding::new(false, format!("`{shown}` was ended by signal {signal}"));
            }
            CommandEnd::TimedOut | CommandEnd::OverLimit(_) | CommandEnd::Cancelled => {
                return CheckFinding::new(false, format!("`{shown}` did not end"));
            }
        }
        let missing =
            |texts: &[String], text: &str| texts.iter().find(|needle| !text.contains(*needle)).cloned();
        let missing =
            missing(&self.stdout_contains, stdout).or_else(|| missing(&self.stderr_contains, stderr));
        if let Some(missing) = missing {
            let message = format!("`{shown}` does not print \"{}\"", excerpt(&missing, 80));
            return CheckFinding::new(false, message);
        }
        match self.stdout_matches.as_ref().map(|pattern| (pattern.source(), pattern.is_match(stdout))) {
            Some((pattern, Ok(false))) => {
                let pattern = excerpt(pattern, 80);
                CheckFinding::new(false, format!("`{shown}` prints nothing that matches /{pattern}/"))
            }
            Some((pattern, Err(too_hard))) => CheckFinding::not_scored(NotScoredReason::CheckFailed(
                format!("/{}/ {too_hard}", excerpt(pattern, 80)),
            )),
            None | Some((_, Ok(true))) => CheckFinding::new(true, format!("`{shown}` succeeded")),
        }
    }
}

/// Reads the score that a command prints: the number under `score` in the JSON object of its output. A command that
/// prints none has the score 0, whatever its exit code.
fn score_finding(shown: &str, stdout: &str, least: f64) -> CheckFinding {
    let printed = printed_object(stdout);
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let score =
        printed.as_ref().and_then(|object| number(object.get("score")?)).filter(|score| score.is_finite());
    let Some(score) = score else {
        let finding = CheckFinding::new(false, format!("`{shown}` prints no JSON with a \"score\""));
        return CheckFinding { score: Some(0.0), ..finding };
    };
    let score = score.clamp(0.0, 1.0);
    let details = printed.as_ref().and_then(|object| object.get("details")?.as_str()).unwrap_or_default();
    let finding = CheckFinding::new(
        score >= least,
        format!(
            "`{shown}` gives the score {score}{}{}",
            if details.is_empty() { "" } else { ": " },
            excerpt(details, 200)
        ),
    );
    CheckFinding { score: Some(score), ..finding }
}

/// Gives the JSON object that a command prints: all from the first brace to the last, as other tools read it. Two objects,
/// or braces around something else, are none: which of them is meant is not known.
fn printed_object(stdout: &str) -> Option<Value> {
    let (begin, end) = (stdout.find('{')?, stdout.rfind('}')?);
    serde_json::from_str(stdout.get(begin..=end)?).ok()
}

fn schema() -> Value {
    let mapping = MappingSchema::closed()
        .required("run", "The shell command.", json_schema::nonempty_text())
        .optional(
            "exit_code",
            "The exit code that passes.",
            json_schema::with_default(json_schema::integer_between(0, 255), 0),
        )
        .optional("timeout", "The time limit; a command that needs longer is not scored.", json_schema::duration())
        .optional(
            "gets_output",
            "Whether the command gets the agent's last message on its standard input.",
            json_schema::with_default(json_schema::boolean(), false),
        )
        .optional("stdout_contains", "Texts that the command must print.", json_schema::text_or_texts())
        .optional("stdout_matches", "A pattern that must match in what it prints.", json_schema::text())
        .optional("stderr_contains", "Texts that it must print as errors.", json_schema::text_or_texts())
        .optional(
            "score",
            "The least score that passes. The command then prints JSON with a \"score\" between 0 and 1, which counts \
             instead of its exit code.",
            json_schema::ratio(),
        );
    json_schema::any_of([json_schema::nonempty_text(), mapping.into()])
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::rule_tests::{CommandWorkspace, NoFiles, decode, run_rule, run_with_output};
    use super::*;
    use practicum_core::model::{RelPath, WorkspaceView};

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
    fn rows_of_mappings() {
        let (_kept, view) = folder();
        for (yaml, expected, score) in [
            ("{run: exit 3, exit_code: 3}", "pass", None),
            ("{run: 'true', exit_code: 3}", "fail", None),
            ("{run: cat a.txt, stdout_contains: [one, two]}", "pass", None),
            ("{run: cat a.txt, stdout_contains: three}", "fail", None),
            ("{run: cat a.txt >&2, stdout_contains: one}", "fail", None),
            ("{run: cat a.txt >&2, stderr_contains: one}", "pass", None),
            ("{run: cat a.txt, stdout_matches: '(?m)^two$'}", "pass", None),
            ("{run: cat a.txt, stdout_matches: '^two'}", "fail", None),
            ("{run: grep -q hello, gets_output: true}", "pass", None),
            ("{run: grep -q hello}", "fail", None),
            ("{run: sleep 5, timeout: 100ms}", "not_scored", None),
            (r#"{run: 'echo "{\"score\": 0.75}"', score: 0.5}"#, "pass", Some(0.75)),
            (r#"{run: 'echo noise "{\"score\": 0.25}" more; exit 1', score: 0.5}"#, "fail", Some(0.25)),
            // Which of several things in braces is meant is not known.
            (r#"{run: 'echo noise {x} "{\"score\": 1}"', score: 0.5}"#, "fail", Some(0.0)),
            (r#"{run: 'echo "{\"score\": 7}"', score: 1}"#, "pass", Some(1.0)),
            (r#"{run: 'echo "{\"score\": \"1\"}"', score: 0.5}"#, "pass", Some(1.0)),
            (r#"{run: 'echo "{\"score\": \"all\"}"', score: 0.5}"#, "fail", Some(0.0)),
            ("{run: 'true', score: 0.5}", "fail", Some(0.0)),
            ("{run: no-such-command-here, score: 0.5}", "not_scored", None),
        ] {
            let rule = decode(&KIND, yaml).unwrap_or_else(|why| panic!("{yaml}: {why:?}"));
            let finding = run_rule(rule.as_ref(), &run_with_output("hello"), &view);
            assert_eq!((finding.verdict.name(), finding.score), (expected, score), "{yaml}: {finding:?}");
        }
        for yaml in
            ["{}", "{run: ''}", "{run: a, exit_code: 300}", "{run: a, timeout: soon}", "{run: a, x: 1}"]
        {
            assert!(decode(&KIND, yaml).is_err(), "{yaml}");
        }
    }

    /// A workspace in which every command ends in the same way.
    struct EndsWith(CommandEnd);

    impl WorkspaceView for EndsWith {
        fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
            Ok(None)
        }

        fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
            Ok(false)
        }

        fn run_command(&self, _: &CheckCommand<'_>) -> Option<std::io::Result<CommandOutcome>> {
            let (stdout, stderr) = ("printed".to_owned(), String::new());
            Some(Ok(CommandOutcome { end: self.0.clone(), stdout, stderr }))
        }
    }

    #[test]
    fn rows_of_ends() {
        for (end, expected, says) in [
            (CommandEnd::Exited(0), "pass", "succeeded"),
            (CommandEnd::Exited(7), "fail", "exit code 7"),
            (CommandEnd::Exited(127), "fail", "the sandbox hides it"),
            (CommandEnd::Signalled(9), "fail", "signal 9"),
            (CommandEnd::TimedOut, "not_scored", "within 30s"),
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
