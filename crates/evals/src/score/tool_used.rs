use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::RuleKind;
use super::tools::{Calls, Tool, call_in_words, call_shape, names_called, unseen};
use practicum_core::model::{Diagnostics, Evidence, Finding, LooksAt, Rule, counted};
use practicum_core::tree::{Node, Object, shape};

pub static KIND: RuleKind = RuleKind {
    key: "tool_used",
    doc: "the agent called this tool, by its role (read, write, edit, shell, skill) or exact name, \
          with arguments like these, at least `min` (1) and at most `max` times",
    schema,
    looks_at: LooksAt::WholeRun,
    decode: |node, diagnostics| Some(Arc::new(ToolUsed::decode(node, diagnostics)?)),
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUsed {
    calls: Calls,
    min: u32,
    max: Option<u32>,
}

impl ToolUsed {
    /// Either the tool alone, or `{name, args, min, max}`.
    fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            let tool = Tool::decode(KIND.key, node, diagnostics)?;
            return Some(Self { calls: Calls { tool, args: Vec::new() }, min: 1, max: None });
        }
        let mut object = Object::new(node, KIND.key, diagnostics)?;
        let calls = Calls::decode(&mut object, diagnostics);
        let mut number = |key| {
            let given = object.given(key).is_some();
            let number = object.int(key, 0, u32::MAX.into(), diagnostics);
            (given == number.is_some()).then_some(number.and_then(|number| u32::try_from(number).ok()))
        };
        let (min, max) = (number("min"), number("max"));
        object.refuse_rest(KIND.key, diagnostics);
        let (min, max) = (min?.unwrap_or(1), max?);
        if max.is_some_and(|max| max < min) {
            let message = "\"max\" is less than \"min\" (which is 1 unless given)";
            diagnostics.error("contradiction", node.span, message);
            return None;
        }
        Some(Self { calls: calls?, min, max })
    }
}

impl Rule for ToolUsed {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        if self.calls.args.is_empty() && self.min == 1 && self.max.is_none() {
            return json!(self.calls.tool.name());
        }
        let mut map: Map<String, Value> = self.calls.value();
        if self.min != 1 {
            map.insert("min".to_owned(), json!(self.min));
        }
        if let Some(max) = self.max {
            map.insert("max".to_owned(), json!(max));
        }
        Value::Object(map)
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        if let Some(unseen) = unseen(evidence.observation) {
            return unseen;
        }
        let found = self.calls.among(evidence.observation);
        let what = self.calls.in_words();
        let wanted = match self.max {
            Some(max) => format!("{} to {max} wanted", self.min),
            None => format!("at least {} wanted", self.min),
        };
        let times = found.len();
        let enough = times >= self.min as usize && self.max.is_none_or(|max| times <= max as usize);
        let finding = Finding::new(enough, format!("{what} was called {}, {wanted}", counted(times, "time")));
        match found.first() {
            Some(call) => finding.with_evidence(call_in_words(call)),
            None => finding.with_evidence(format!("called: {}", names_called(evidence.observation))),
        }
    }
}

fn schema() -> Value {
    let counted = call_shape()
        .may("min", "How many such calls there must be at least.", shape::default(count(), 1))
        .may("max", "How many such calls there may be at most.", count());
    shape::either([shape::filled(), counted.into()])
}

fn count() -> Value {
    shape::whole(0, u32::MAX.into())
}

#[cfg(test)]
mod tests {
    use super::super::rows::{blind, called, check_run};
    use super::*;

    #[test]
    fn rows() {
        let run = called(&[
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
        check_run(&KIND, "{name: Bash, max: 0, min: 0}", &blind(), "not_scored");
        check_run(&KIND, "Bash", &called(&[]), "fail");
    }
}
