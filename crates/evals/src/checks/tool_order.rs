//! The check `tool_order`: the agent called tools in a certain order.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::RuleKind;
use super::tools::{CallPattern, ToolName, call_schema, called_tool_names, hidden_calls_finding, tool_calls};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, Observation, Rule, ToolCall,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    report_wrong_type,
};

pub static KIND: RuleKind = RuleKind {
    key: "tool_order",
    doc: "the agent called these tools in this order; other calls may come before, between and after, unless \
          `only` forbids them; with `first`, the first call of each must be in this order",
    schema,
    decode: |node, diagnostics| Some(Arc::new(ToolOrderRule::decode(node, diagnostics)?)),
};

/// The rule of the check `tool_order`, with the calls in order.
#[derive(Debug, Clone)]
pub struct ToolOrderRule {
    /// The calls; never empty.
    calls: Vec<CallPattern>,
    /// Whether only the first call that fits each pattern counts.
    first: bool,
    /// Whether no other call is allowed.
    only: bool,
}

impl ToolOrderRule {
    /// Reads either the list of calls or `{calls, first, only}`.
    fn decode(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return Some(Self { calls: decode_calls(node, diagnostics)?, first: false, only: false });
        }
        let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
        let calls = match object.get_non_null("calls") {
            Some(node) => decode_calls(node, diagnostics),
            None => {
                object.report_missing("calls", diagnostics);
                None
            }
        };
        let first = object.bool("first", diagnostics).unwrap_or(false);
        let only = object.bool("only", diagnostics).unwrap_or(false);
        object.reject_unknown_keys(KIND.key, diagnostics);
        Some(Self { calls: calls?, first, only })
    }

    /// Gives the position of the call that fits each pattern, as far as the order holds.
    fn positions(&self, calls: &[&ToolCall]) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        for pattern in &self.calls {
            let after = found.last().map_or(0, |last| last + 1);
            let from = if self.first { 0 } else { after };
            let next = (from..calls.len()).find(|&at| pattern.matches(calls[at]));
            match next.filter(|at| *at >= after) {
                Some(at) => found.push(at),
                None => break,
            }
        }
        found
    }
}

fn decode_calls(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Vec<CallPattern>> {
    match node.as_list() {
        None => {
            report_wrong_type(node, KIND.key, "a list of tools", diagnostics);
            None
        }
        Some([]) => {
            diagnostics.error("empty-list", node.span, format!("\"{}\" must name a tool", KIND.key));
            None
        }
        Some(items) => items.iter().map(|item| decode_call(item, diagnostics)).collect(),
    }
}

fn decode_call(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<CallPattern> {
    if node.as_map().is_none() {
        return Some(CallPattern::of_tool(ToolName::decode(KIND.key, node, diagnostics)?));
    }
    let mut object = ObjectReader::new(node, KIND.key, diagnostics)?;
    let call = CallPattern::decode(&mut object, diagnostics);
    object.reject_unknown_keys(KIND.key, diagnostics);
    call
}

impl Rule for ToolOrderRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        let plain = |call: &CallPattern| call.args.is_empty() && call.input.is_none();
        let call = |call: &CallPattern| match plain(call) {
            true => json!(call.tool.name()),
            false => Value::Object(call.value()),
        };
        let calls: Value = self.calls.iter().map(call).collect();
        if !self.first && !self.only {
            return calls;
        }
        let mut map = Map::from_iter([("calls".to_owned(), calls)]);
        for (key, is_set) in [("first", self.first), ("only", self.only)] {
            if is_set {
                map.insert(key.to_owned(), json!(true));
            }
        }
        Value::Object(map)
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let observation: &Observation = evidence.observation;
        let too_hard = || self.calls.iter().find_map(|call| call.too_hard_finding(observation));
        if let Some(unseen) = hidden_calls_finding(observation).or_else(too_hard) {
            return unseen;
        }
        let calls: Vec<&ToolCall> = tool_calls(observation).collect();
        let reached = self.positions(&calls).len();
        let names: Vec<String> = self.calls.iter().map(CallPattern::describe).collect();
        let called = || format!("called: {}", called_tool_names(observation));
        if let Some(missing) = names.get(reached) {
            let message = match names[..reached].last() {
                Some(before) => format!("{missing} was not called after {before}"),
                None => format!("{missing} was not called"),
            };
            return CheckFinding::new(false, message).with_evidence(called());
        }
        if self.only && calls.len() > names.len() {
            let message = format!("{} other calls, and none is allowed", calls.len() - names.len());
            return CheckFinding::new(false, message).with_evidence(called());
        }
        CheckFinding::new(true, format!("called in this order: {}", names.join(", ")))
    }
}

fn schema() -> Value {
    let call = || json_schema::any_of([json_schema::nonempty_text(), call_schema().into()]);
    let mapping = MappingSchema::closed()
        .required("calls", "The tools, in order.", json_schema::nonempty_list(call()))
        .optional(
            "first",
            "Whether the first call of each must be in this order.",
            json_schema::with_default(json_schema::boolean(), false),
        )
        .optional(
            "only",
            "Whether there may be no other calls.",
            json_schema::with_default(json_schema::boolean(), false),
        );
    json_schema::any_of([json_schema::nonempty_list(call()), mapping.into()])
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
            ("{calls: [Bash, Read]}", "pass"),
            ("{calls: [Bash, Read], first: true}", "fail"),
            ("{calls: [Read, Bash, Write], first: true}", "pass"),
            ("{calls: [Read, Write], only: true}", "fail"),
            ("{calls: [Skill, Read, Bash, Read, Write], only: true}", "pass"),
            ("{calls: [{name: Read, input: nu.l}, Write]}", "pass"),
            ("{calls: [{name: Read, input: x}, Write]}", "fail"),
            ("{calls: [{name: Read, input: '('}]}", "refused"),
            ("{first: true}", "refused"),
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
