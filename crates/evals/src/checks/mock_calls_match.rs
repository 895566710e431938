//! The check `mock_calls_match`: a pattern matches in the calls that mocks got.

use std::sync::Arc;

use serde_json::{Value, json};

use super::mock_calls::mock_calls;
use super::transcript::PatternExpectation;
use super::{RuleKind, excerpt};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, MockedTool, NotScoredReason, Rule};

pub static KIND: RuleKind = RuleKind {
    key: "mock_calls_match",
    doc: "the pattern matches in some call of a mock, written as one line of JSON; `expect: absent` turns it round",
    schema: || PatternExpectation::schema("The pattern (Python's `re` syntax), over each call of a mock."),
    decode: |node, diagnostics| {
        let expectation = PatternExpectation::decode("mock_calls_match", node, diagnostics)?;
        Some(Arc::new(MockCallsMatchRule(expectation)))
    },
};

/// The rule of the check `mock_calls_match`: a pattern, and whether it must match.
#[derive(Debug, Clone)]
pub struct MockCallsMatchRule(PatternExpectation);

impl Rule for MockCallsMatchRule {
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
        self.0.value()
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let calls = match mock_calls(evidence.observation) {
            Ok(calls) => calls,
            Err(finding) => return finding,
        };
        let PatternExpectation { pattern, present } = &self.0;
        let shown = excerpt(pattern.source(), 80);
        for line in calls.iter().map(|call| call_line(&call.of)) {
            match pattern.is_match(&line) {
                Ok(true) => {
                    let must = if *present { "" } else { ", and must not" };
                    return CheckFinding::new(*present, format!("/{shown}/ matches{must}"))
                        .with_evidence(excerpt(&line, 200));
                }
                Ok(false) => {}
                Err(too_hard) => {
                    let why = format!("/{shown}/ {too_hard}");
                    return CheckFinding::not_scored(NotScoredReason::CheckFailed(why));
                }
            }
        }
        CheckFinding::new(!present, format!("/{shown}/ matches in no call of a mock"))
    }
}

/// Writes a call as one line of JSON.
fn call_line(called: &MockedTool) -> String {
    match called {
        MockedTool::Mcp { server, tool, input } => json!({"server": server, "tool": tool, "input": input}),
        MockedTool::Command { command, args } => json!({"command": command, "args": args}),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_mock_calls, run_with_output};
    use super::*;

    #[test]
    fn rows() {
        let run = run_with_mock_calls();
        for (yaml, expected) in [
            ("buy|pay", "pass"),
            ("pay", "fail"),
            ("{pattern: buy, expect: absent}", "fail"),
            ("{pattern: pay, expect: absent}", "pass"),
            ("'\"args\":\\[\"group\",\"list\"'", "pass"),
            ("'['", "refused"),
            ("{pattern: a, count: 2}", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "{pattern: pay, expect: absent}", &run_with_output("done"), "not_scored");
    }
}
