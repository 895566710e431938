//! The check `mock_order`: the agent called mocks in a certain order.

use std::sync::Arc;

use serde_json::Value;

use super::RuleKind;
use super::mock_calls::{MockCallPattern, call_schema, list_calls, mock_calls};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, Diagnostics, Rule};
use practicum_core::tree::{TreeNode, json_schema, report_wrong_type};

pub static KIND: RuleKind = RuleKind {
    key: "mock_order",
    doc: "the agent called these mocks in this order; other calls may come before, between and after",
    schema: || {
        json_schema::nonempty_list(json_schema::any_of([json_schema::nonempty_text(), call_schema().into()]))
    },
    decode: |node, diagnostics| Some(Arc::new(MockOrderRule(decode(node, diagnostics)?))),
};

/// The rule of the check `mock_order`, with the calls in order. Never empty.
#[derive(Debug, Clone)]
pub struct MockOrderRule(Vec<MockCallPattern>);

fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<MockCallPattern>> {
    match node.as_list() {
        None => {
            report_wrong_type(node, KIND.key, "a list of calls", diagnostics);
            None
        }
        Some([]) => {
            diagnostics.error("empty-list", node.span, format!("\"{}\" must name a mock", KIND.key));
            None
        }
        Some(items) => {
            items.iter().map(|item| MockCallPattern::decode(KIND.key, item, diagnostics)).collect()
        }
    }
}

impl Rule for MockOrderRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn reads_agent_output(&self) -> bool {
        false
    }

    fn value(&self) -> Value {
        self.0.iter().map(|call| Value::Object(call.value())).collect()
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let calls = match mock_calls(evidence.observation) {
            Ok(calls) => calls,
            Err(finding) => return finding,
        };
        let mut rest = calls.iter();
        for pattern in &self.0 {
            if !rest.any(|call| pattern.matches(call)) {
                let message = format!("{} was not called, or not in this order", pattern.describe());
                return CheckFinding::new(false, message).with_evidence(list_calls(calls));
            }
        }
        CheckFinding::new(true, "all were called in this order").with_evidence(list_calls(calls))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_mock_calls, run_with_output};
    use super::*;

    #[test]
    fn rows() {
        let run = run_with_mock_calls();
        for (yaml, expected) in [
            ("[az, shop/buy]", "pass"),
            ("[shop/buy, {command: az, args: [group, list]}]", "fail"),
            ("[{command: az, args: [group, list]}, shop/buy, {command: az, args: delete}]", "pass"),
            ("[az, az]", "pass"),
            ("[az, az, az]", "fail"),
            ("[kubectl]", "fail"),
            ("[]", "refused"),
            ("az", "refused"),
            ("[{command: az, min: 2}]", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "[az]", &run_with_output("done"), "not_scored");
    }
}
