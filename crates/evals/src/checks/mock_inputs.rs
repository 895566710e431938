//! The check `mock_inputs`: every call of a mock had the arguments that the mock expects.

use std::sync::Arc;

use serde_json::{Value, json};

use super::mock_calls::mock_calls;
use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, MockOutcome, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "mock_inputs",
    doc: "every call of a mocked tool had the arguments that its `expect` asks for",
    schema: || json!({"const": true}),
    decode: |node, diagnostics| {
        let is_true = node.to_value() == json!(true);
        if !is_true {
            let message = format!("\"{}\" can only be true", KIND.key);
            diagnostics.error("unknown-value", node.span, message);
        }
        is_true.then(|| Arc::new(MockInputsRule) as Arc<dyn Rule>)
    },
};

/// The rule of the check `mock_inputs`.
#[derive(Debug, Clone)]
pub struct MockInputsRule;

impl Rule for MockInputsRule {
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
        json!(true)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let calls = match mock_calls(evidence.observation) {
            Ok(calls) => calls,
            Err(finding) => return finding,
        };
        let unexpected = calls.iter().find_map(|call| match &call.outcome {
            MockOutcome::Unexpected(why) => Some((call, why)),
            MockOutcome::Answered | MockOutcome::Unmocked | MockOutcome::ModelFailed(_) => None,
        });
        match unexpected {
            Some((call, why)) => {
                CheckFinding::new(false, why.clone()).with_evidence(excerpt(&call.describe(), 200))
            }
            None => CheckFinding::new(true, "every call had the arguments that its mock expects"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_mock_calls, run_with_output};
    use super::*;

    #[test]
    fn rows() {
        let mut run = run_with_mock_calls();
        check_run(&KIND, "true", &run, "pass");
        check_run(&KIND, "false", &run, "refused");
        check_run(&KIND, "true", &run_with_output("done"), "not_scored");
        let calls = run.mock_calls.as_mut().expect("calls");
        calls[0].outcome = MockOutcome::Unexpected("name must be \"string\" and is missing".to_owned());
        check_run(&KIND, "true", &run, "fail");
    }
}
