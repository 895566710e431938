//! The check `tool_order`: the agent called tools in a certain order.

use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::tools::{ToolName, called_tool_names, hidden_calls_finding, tool_calls};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, Diagnostics, Rule};
use practicum_core::tree::{TreeNode, json_schema, report_wrong_type};

pub static KIND: RuleKind = RuleKind {
    key: "tool_order",
    doc: "the agent called these tools in this order; other calls may come before, between and after",
    schema: || json_schema::nonempty_list(json_schema::nonempty_text()),
    decode: |node, diagnostics| Some(Arc::new(ToolOrderRule(decode(node, diagnostics)?))),
};

/// The rule of the check `tool_order`, with the tools in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOrderRule(Vec<ToolName>);

fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<ToolName>> {
    match node.as_list() {
        None => {
            report_wrong_type(node, KIND.key, "a list of tools", diagnostics);
            None
        }
        Some([]) => {
            diagnostics.error("empty-list", node.span, format!("\"{}\" must name a tool", KIND.key));
            None
        }
        Some(items) => items.iter().map(|item| ToolName::decode(KIND.key, item, diagnostics)).collect(),
    }
}

impl Rule for ToolOrderRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        json!(self.0.iter().map(ToolName::name).collect::<Vec<_>>())
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        if let Some(unseen) = hidden_calls_finding(evidence.observation) {
            return unseen;
        }
        let mut wanted = self.0.iter().peekable();
        for call in tool_calls(evidence.observation) {
            if wanted.peek().is_some_and(|tool| tool.matches(&call.name)) {
                wanted.next();
            }
        }
        let names: Vec<&str> = self.0.iter().map(ToolName::name).collect();
        match wanted.next() {
            None => CheckFinding::new(true, format!("called in this order: {}", names.join(", "))),
            Some(missing) => {
                let reached = self.0.len() - wanted.count() - 1;
                let message = match names[..reached].last() {
                    Some(before) => format!("{} was not called after {before}", missing.name()),
                    None => format!("{} was not called", missing.name()),
                };
                CheckFinding::new(false, message)
                    .with_evidence(format!("called: {}", called_tool_names(evidence.observation)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{
        NoFiles, check_run, decode, run_rule, run_with_calls, run_without_transcript,
    };
    use super::KIND;
    use serde_json::Value;

    #[test]
    fn rows() {
        let run = run_with_calls(&[
            ("Skill", Value::Null),
            ("Read", Value::Null),
            ("Bash", Value::Null),
            ("Read", Value::Null),
            ("Write", Value::Null),
        ]);
        for (yaml, expected) in [
            ("[Read, Write]", "pass"),
            ("[skill, read, read, write]", "pass"),
            ("[Read, Read, Read]", "fail"),
            ("[Write, Read]", "fail"),
            ("[shell]", "pass"),
            ("[]", "refused"),
            ("Read", "refused"),
            ("[Read, 5]", "refused"),
            ("[Read, '']", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "[Read]", &run_without_transcript(), "not_scored");
        let rule = decode(&KIND, "[Read, Write, Bash]").expect("a good order");
        let finding = run_rule(rule.as_ref(), &run, &NoFiles);
        assert_eq!(finding.rationale, "Bash was not called after Write");
    }
}
