//! What tests of rules have in common: a value as YAML, a text or a run, a verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::RuleKind;
use practicum_core::model::{
    CheckedText, Diagnostics, Ended, Evidence, Finding, Observation, RelPath, Rule, Step, ToolCall, Usage,
    WorkspaceView,
};
use practicum_core::tree::{Source, Syntax};

/// Rows of a value as YAML, the text to look at, and the verdict's name, or "refused".
pub fn check(kind: &RuleKind, rows: &[(&str, &str, &str)]) {
    for (yaml, text, expected) in rows {
        check_run(kind, yaml, &said(text), expected);
    }
}

/// As `check`, on a whole run.
pub fn check_run(kind: &RuleKind, yaml: &str, run: &Observation, expected: &str) {
    let found = match decode(kind, yaml) {
        Ok(rule) => mark(rule.as_ref(), run, &NoFiles).verdict.name(),
        Err(_) => "refused",
    };
    assert_eq!(found, expected, "{}: {yaml} on {run:?}", kind.key);
}

/// The rule, or what was wrong with its value. What a rule says of itself must read back as the
/// same rule.
pub fn decode(kind: &RuleKind, yaml: &str) -> Result<Arc<dyn Rule>, Vec<String>> {
    let rule = decode_once(kind, yaml)?;
    let written = rule.value().to_string();
    let again = decode_once(kind, &written).unwrap_or_else(|problems| panic!("{written}: {problems:?}"));
    assert_eq!((rule.key(), rule.value()), (kind.key, again.value()), "{yaml}");
    Ok(rule)
}

fn decode_once(kind: &RuleKind, yaml: &str) -> Result<Arc<dyn Rule>, Vec<String>> {
    let mut diagnostics = Diagnostics::default();
    let source = Source::parse(Path::new("row.yaml"), yaml.to_owned(), Syntax::Yaml, &mut diagnostics);
    let rule = source.and_then(|source| (kind.decode)(&source.root, &mut diagnostics));
    match rule {
        Some(rule) if !diagnostics.has_errors() => Ok(rule),
        Some(_) | None => Err(diagnostics.iter().map(|problem| problem.message.clone()).collect()),
    }
}

pub fn mark(rule: &dyn Rule, observation: &Observation, workspace: &dyn WorkspaceView) -> Finding {
    let texts = [CheckedText::unnamed(observation.output.as_str())];
    rule.mark(&Evidence { texts: &texts, observation, workspace, network: None })
}

/// A run in which this was said and nothing else happened.
pub fn said(text: &str) -> Observation {
    Observation {
        ended: Ended::Finished,
        ended_because: None,
        steps: vec![Step::User("do it".to_owned()), Step::Text(text.to_owned())],
        output: text.to_owned(),
        skills_listed: None,
        commands_listed: Vec::new(),
        leaked: Vec::new(),
        activated: Vec::new(),
        refused: Vec::new(),
        hides_tools: false,
        unread: None,
        files: Vec::new(),
        usage: Usage::default(),
        cost_usd: None,
        api_calls: None,
        turns: 1,
        model: None,
        agent_version: None,
        seconds: 1.0,
    }
}

/// A run in which these tools were called.
pub fn called(calls: &[(&str, Value)]) -> Observation {
    let mut run = said("done");
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

/// A run of which only the answer is seen.
pub fn blind() -> Observation {
    Observation { hides_tools: true, ..said("done") }
}

/// Nothing is left of the workspace.
pub struct NoFiles;

impl WorkspaceView for NoFiles {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Ok(false)
    }

    fn folder(&self) -> Option<&Path> {
        None
    }
}

/// A workspace in which commands may run.
pub struct Folder(pub PathBuf);

impl WorkspaceView for Folder {
    fn read(&self, path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        std::fs::read(path.under(&self.0)).map(Some)
    }

    fn exists(&self, path: &RelPath) -> std::io::Result<bool> {
        Ok(path.under(&self.0).exists())
    }

    fn folder(&self) -> Option<&Path> {
        Some(&self.0)
    }
}
