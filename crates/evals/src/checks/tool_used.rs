//! The check `tool_used`: the agent called a tool, and how often.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::RuleKind;
use super::call_count::CallCount;
use super::tools::{
    CallPattern, ToolName, call_schema, called_tool_names, describe_call, hidden_calls_finding,
};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, Diagnostics, Rule};
use practicum_core::tree::{ObjectReader, TreeNode, json_schema};

pub static KIND: RuleKind = RuleKind {
    key: "tool_used",
    doc: "the agent called this tool, by its role (read, write, edit, shell, skill) or exact name, \
          with arguments like these, at least `min` (1) and at most `max` times",
    schema,
    decode: |node, diagnostics| Some(Arc::new(ToolUsedRule::decode(node, diagnostics)?)),
};

/// The rule of the check `tool_used`: calls, and how many there must be.
#[derive(Debug, Clone)]
pub struct ToolUsedRule {
    calls: CallPattern,
    count: CallCount,
}

impl ToolUsedRule {
    /// Reads either the tool alone or `{name, args, min, max}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            let tool = ToolName::decode(KIND.key, node, diagnostics)?;
            return Some(Self { calls: CallPattern::of_tool(tool), count: CallCount::SOME });
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let calls = CallPattern::decode(&mut object, diagnostics);
        let count = CallCount::decode(object, KIND.key, diagnostics);
        Some(Self { calls: calls?, count: count? })
    }
}

impl Rule for ToolUsedRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        if self.calls.args.is_empty() && self.calls.input.is_none() && self.count == CallCount::SOME {
            return json!(self.calls.tool.name());
        }
        let mut map: Map<String, Value> = self.calls.value();
        self.count.add_to(&mut map);
        Value::Object(map)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let unseen = hidden_calls_finding(evidence.observation);
        if let Some(unseen) = unseen.or_else(|| self.calls.too_hard_finding(evidence.observation)) {
            return unseen;
        }
        let found = self.calls.find_calls(evidence.observation);
        let what = self.calls.describe();
        let (enough, said) = self.count.compare(&what, found.len());
        let finding = CheckFinding::new(enough, said);
        match found.first() {
            Some(call) => finding.with_evidence(describe_call(call)),
            None => finding.with_evidence(format!("called: {}", called_tool_names(evidence.observation))),
        }
    }
}

fn schema() -> Value {
    let counted = CallCount::add_to_schema(call_schema());
    json_schema::any_of([json_schema::nonempty_text(), counted.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_calls, run_without_transcript};
    use super::*;

    #[test]
    fn rows() {
        let run = run_with_calls(&[
            ("Read", json!({"file_path": "/w/in.txt"})),
            ("Bash", json!({"command": "ls"})),
            ("Bash", json!({"command": "git status"})),
            ("Write", json!({"file_path": "/w/out.md", "content": "x"})),
        ]);
        for (yaml, expected) in [
            ("Bash", "pass"),
            ("shell", "pass"),
            ("bash", "fail"),
            ("skill", "fail"),
            ("{name: shell, min: 2}", "pass"),
            ("{name: shell, min: 3}", "fail"),
            ("{name: shell, max: 1}", "fail"),
            ("{name: skill, min: 0, max: 0}", "pass"),
            ("{name: shell, args: {command: 'git *'}}", "pass"),
            ("{name: shell, args: {command: 'git *'}, min: 2}", "fail"),
            ("{name: Write, args: {file_path: '*.md'}}", "pass"),
            ("{name: write, args: {path: '*.md', content: y}}", "fail"),
            ("{name: shell, min: -1}", "refused"),
            ("{name: shell, min: 3, max: 2}", "refused"),
            ("{name: shell, max: 0}", "refused"),
            ("{name: shell, args: [x]}", "refused"),
            ("{name: shell, args: {command: 5}}", "refused"),
            ("{args: {command: x}}", "refused"),
            ("{name: shell, times: 2}", "refused"),
            ("''", "refused"),
            ("[Bash]", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "{name: Bash, max: 0, min: 0}", &run_without_transcript(), "not_scored");
        check_run(&KIND, "Bash", &run_with_calls(&[]), "fail");
    }
}
