//! The check `mock_called`: the agent called a mock, and how often.

use std::sync::Arc;

use serde_json::Value;

use super::RuleKind;
use super::call_count::CallCount;
use super::mock_calls::{MockCallPattern, call_schema, list_calls, mock_calls};
use practicum_core::model::{CheckEvidence, CheckFinding, CheckTarget, Diagnostics, Rule};
use practicum_core::tree::{ObjectReader, TreeNode, json_schema};

pub static KIND: RuleKind = RuleKind {
    key: "mock_called",
    doc: "the agent called this mock, a command or `server/tool`, with arguments like these, at least `min` (1) and \
          at most `max` times",
    schema,
    decode: |node, diagnostics| Some(Arc::new(MockCalledRule::decode(node, diagnostics)?)),
};

/// The rule of the check `mock_called`: calls, and how many there must be.
#[derive(Debug, Clone)]
pub struct MockCalledRule {
    calls: MockCallPattern,
    count: CallCount,
}

impl MockCalledRule {
    /// Reads the calls alone, or with `min` and `max`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            let calls = MockCallPattern::decode(KIND.key, node, diagnostics)?;
            return Some(Self { calls, count: CallCount::SOME });
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let calls = MockCallPattern::decode_object(&mut object, diagnostics);
        let count = CallCount::decode(object, KIND.key, diagnostics);
        Some(Self { calls: calls?, count: count? })
    }
}

impl Rule for MockCalledRule {
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
        let mut map = self.calls.value();
        self.count.add_to(&mut map);
        Value::Object(map)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let calls = match mock_calls(evidence.observation) {
            Ok(calls) => calls,
            Err(finding) => return finding,
        };
        let times = calls.iter().filter(|call| self.calls.matches(call)).count();
        let (enough, said) = self.count.compare(&self.calls.describe(), times);
        CheckFinding::new(enough, said).with_evidence(list_calls(calls))
    }
}

fn schema() -> Value {
    let counted = CallCount::add_to_schema(call_schema());
    json_schema::any_of([json_schema::nonempty_text(), counted.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_mock_calls, run_with_output};
    use super::*;

    #[test]
    fn rows() {
        let run = run_with_mock_calls();
        for (yaml, expected) in [
            ("az", "pass"),
            ("kubectl", "fail"),
            ("shop/buy", "pass"),
            ("shop/pay", "fail"),
            ("{command: az, args: [group, list]}", "pass"),
            ("{command: az, args: [list]}", "fail"),
            ("{command: az, args: 'delete .*prod'}", "pass"),
            ("{command: az, min: 2}", "pass"),
            ("{command: az, max: 1}", "fail"),
            ("{command: kubectl, min: 0, max: 0}", "pass"),
            ("{server: shop, tool: buy, input: {item: pear}}", "pass"),
            ("{server: shop, tool: buy, input: {item: plum}}", "fail"),
            ("{server: shop, tool: buy, input: {count: integer, item: /^p/}}", "pass"),
            ("{server: shop, tool: buy, input_match: '\"item\":\"pear\"'}", "pass"),
            ("{server: shop, tool: buy, input: [a]}", "refused"),
            ("{server: shop, tool: buy, input: {a: '/[/'}}", "refused"),
            ("{server: shop}", "refused"),
            ("{server: shop, tool: buy, args: [a]}", "refused"),
            ("{command: az, tool: buy}", "refused"),
            ("{command: az, times: 2}", "refused"),
            ("{command: az, min: 2, max: 1}", "refused"),
            ("''", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
        check_run(&KIND, "az", &run_with_output("done"), "not_scored");
    }
}
