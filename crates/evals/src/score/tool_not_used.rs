use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::tools::{Calls, Tool, call_in_words, call_shape, unseen};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule};
use practicum_core::tree::{Node, Object, shape};

pub static KIND: RuleKind = RuleKind {
    key: "tool_not_used",
    doc: "the agent never called this tool, or never with arguments like these",
    schema,
    looks_at: LooksAt::WholeRun,
    decode: |node, diagnostics| Some(Arc::new(ToolNotUsed(decode(node, diagnostics)?))),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNotUsed(Calls);

/// Either the tool alone, or `{name, args}`.
fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Calls> {
    if node.as_map().is_none() {
        return Some(Calls { tool: Tool::decode(KIND.key, node, diagnostics)?, args: Vec::new() });
    }
    let mut object = Object::new(node, KIND.key, diagnostics)?;
    let calls = Calls::decode(&mut object, diagnostics);
    object.refuse_rest(KIND.key, diagnostics);
    calls
}

impl Rule for ToolNotUsed {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        if self.0.args.is_empty() { json!(self.0.tool.name()) } else { Value::Object(self.0.value()) }
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        if let Some(unseen) = unseen(evidence.observation) {
            return unseen;
        }
        let what = self.0.in_words();
        match self.0.forbidden_among(evidence.observation).first() {
            Some(call) => Finding::new(false, format!("{what} was called, and must not be"))
                .with_evidence(call_in_words(call)),
            None => Finding::new(true, format!("{what} was not called")),
        }
    }
}

fn schema() -> Value {
    shape::either([shape::filled(), call_shape().into()])
}

#[cfg(test)]
mod tests {
    use super::super::rows::{blind, called, check_run};
    use super::*;

    #[test]
    fn rows() {
        let run = called(&[("Bash", json!({"command": "git push --force"})), ("Read", json!({}))]);
        for (yaml, expected) in [
            ("Write", "pass"),
            ("shell", "fail"),
            ("bash", "fail"),
            ("BASH", "fail"),
            ("{name: bash, args: {command: 'rm *'}}", "pass"),
            ("{name: shell, args: {command: '*--force*'}}", "fail"),
            ("{name: shell, args: {command: 'rm *'}}", "pass"),
            ("{name: shell, min: 1}", "refused"),
            ("~", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "Write", &blind(), "not_scored");
    }
}
