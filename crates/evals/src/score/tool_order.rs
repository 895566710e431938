use std::sync::Arc;

use serde_json::{Value, json};

use super::RuleKind;
use super::tools::{Tool, calls, names_called, unseen};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule};
use practicum_core::tree::{Node, shape, wrong_type};

pub static KIND: RuleKind = RuleKind {
    key: "tool_order",
    doc: "the agent called these tools in this order; other calls may come before, between and after",
    schema: || shape::some(shape::filled()),
    looks_at: LooksAt::WholeRun,
    decode: |node, diagnostics| Some(Arc::new(ToolOrder(decode(node, diagnostics)?))),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOrder(Vec<Tool>);

fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Vec<Tool>> {
    match node.as_list() {
        None => {
            wrong_type(node, KIND.key, "a list of tools", diagnostics);
            None
        }
        Some([]) => {
            diagnostics.error("empty-list", node.span, format!("\"{}\" must name a tool", KIND.key));
            None
        }
        Some(items) => items.iter().map(|item| Tool::decode(KIND.key, item, diagnostics)).collect(),
    }
}

impl Rule for ToolOrder {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!(self.0.iter().map(Tool::name).collect::<Vec<_>>())
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        if let Some(unseen) = unseen(evidence.observation) {
            return unseen;
        }
        let mut wanted = self.0.iter().peekable();
        for call in calls(evidence.observation) {
            if wanted.peek().is_some_and(|tool| tool.is(&call.name)) {
                wanted.next();
            }
        }
        let names: Vec<&str> = self.0.iter().map(Tool::name).collect();
        match wanted.next() {
            None => Finding::new(true, format!("called in this order: {}", names.join(", "))),
            Some(missing) => {
                let reached = self.0.len() - wanted.count() - 1;
                let message = match names[..reached].last() {
                    Some(before) => format!("{} was not called after {before}", missing.name()),
                    None => format!("{} was not called", missing.name()),
                };
                Finding::new(false, message)
                    .with_evidence(format!("called: {}", names_called(evidence.observation)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{NoFiles, blind, called, check_run, decode, mark};
    use super::KIND;
    use serde_json::Value;

    #[test]
    fn rows() {
        let run = called(&[
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
        check_run(&KIND, "[Read]", &blind(), "not_scored");
        let rule = decode(&KIND, "[Read, Write, Bash]").expect("a good order");
        let finding = mark(rule.as_ref(), &run, &NoFiles);
        assert_eq!(finding.rationale, "Bash was not called after Write");
    }
}
