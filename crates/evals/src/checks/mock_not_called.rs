//! The check `mock_not_called`: the agent never called a mock.

use std::sync::Arc;

use serde_json::Value;

use super::mock_calls::{MockCallPattern, call_schema, mock_calls};
use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, Rule};
use practicum_core::tree::json_schema;

pub static KIND: RuleKind = RuleKind {
    key: "mock_not_called",
    doc: "the agent never called this mock, a command or `server/tool`, or never with arguments like these",
    schema: || json_schema::any_of([json_schema::nonempty_text(), call_schema().into()]),
    decode: |node, diagnostics| {
        Some(Arc::new(MockNotCalledRule(MockCallPattern::decode(KIND.key, node, diagnostics)?)))
    },
};

/// The rule of the check `mock_not_called`, with the forbidden calls.
#[derive(Debug, Clone)]
pub struct MockNotCalledRule(MockCallPattern);

impl Rule for MockNotCalledRule {
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
        Value::Object(self.0.value())
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let calls = match mock_calls(evidence.observation) {
            Ok(calls) => calls,
            Err(finding) => return finding,
        };
        let what = self.0.describe();
        match calls.iter().find(|call| self.0.matches(call)) {
            Some(call) => CheckFinding::new(false, format!("{what} was called, and must not be"))
                .with_evidence(excerpt(&call.describe(), 200)),
            None => CheckFinding::new(true, format!("{what} was not called")),
        }
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
            ("kubectl", "pass"),
            ("az", "fail"),
            ("{command: az, args: [group, delete]}", "fail"),
            ("{command: az, args: [vm]}", "pass"),
            ("shop/pay", "pass"),
            ("{server: shop, tool: buy, input: {item: pear}}", "fail"),
            ("{server: shop, tool: buy, input: {item: plum}}", "pass"),
            ("{command: az, min: 1}", "refused"),
            ("[az]", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "az", &run_with_output("done"), "not_scored");
    }
}
