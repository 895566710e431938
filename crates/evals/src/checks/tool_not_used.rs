//! The check `tool_not_used`: the agent never called a tool.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::tools::{CallPattern, ToolName, call_schema, describe_call, hidden_calls_finding};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, Diagnostics, Rule};
use practicum_core::tree::{ObjectReader, TreeNode, json_schema};

pub static KIND: RuleKind = RuleKind {
    key: "tool_not_used",
    doc: "the agent never called this tool, or never with arguments like these",
    schema,
    decode: |node, diagnostics| Some(Arc::new(ToolNotUsedRule(decode(node, diagnostics)?))),
};

/// The rule of the check `tool_not_used`, with the forbidden calls.
#[derive(Debug, Clone)]
pub struct ToolNotUsedRule(CallPattern);

/// Reads either the tool alone or `{name, args, input}`.
fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<CallPattern> {
    if node.as_map().is_none() {
        return Some(CallPattern::of_tool(ToolName::decode(KIND.key, node, diagnostics)?));
    }
    let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
    let calls = CallPattern::decode(&mut object, diagnostics);
    object.reject_unknown_keys(KIND.key, diagnostics);
    calls
}

impl Rule for ToolNotUsedRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        match self.0.args.is_empty() && self.0.input.is_none() {
            true => json!(self.0.tool.name()),
            false => Value::Object(self.0.value()),
        }
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let unseen = hidden_calls_finding(evidence.observation);
        if let Some(unseen) = unseen.or_else(|| self.0.too_hard_finding(evidence.observation)) {
            return unseen;
        }
        let what = self.0.describe();
        match self.0.find_forbidden(evidence.observation).first() {
            Some(call) => CheckFinding::new(false, format!("{what} was called, and must not be"))
                .with_evidence(describe_call(call)),
            None => CheckFinding::new(true, format!("{what} was not called")),
        }
    }
}

fn schema() -> Value {
    json_schema::any_of([json_schema::nonempty_text(), call_schema().into()])
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_calls, run_without_transcript};
    use super::*;

    #[test]
    fn rows() {
        let run = run_with_calls(&[("Bash", json!({"command": "git push --force"})), ("Read", json!({}))]);
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
        check_run(&KIND, "Write", &run_without_transcript(), "not_scored");
    }
}
