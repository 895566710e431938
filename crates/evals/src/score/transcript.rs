use std::sync::Arc;

use serde_json::{Value, json};

use super::contains::around;
use super::line_ends::as_read_by;
use super::regex::decode_pattern;
use super::{Pattern, RuleKind, excerpt};
use practicum_core::model::{
    Diagnostics, Evidence, Finding, LooksAt, Observation, Rule, Step, ToolCall, Why,
};
use practicum_core::tree::{
    Node, Object,
    shape::{self, Mapping},
    text_of,
};

pub static KIND: RuleKind = RuleKind {
    key: "transcript",
    doc: "the pattern matches somewhere in what the agent said, the tools it called and what they \
          answered; `expect: absent` turns it round",
    schema,
    looks_at: LooksAt::WholeRun,
    decode: |node, diagnostics| Some(Arc::new(Transcript::decode(node, diagnostics)?)),
};

#[derive(Debug, Clone)]
pub struct Transcript {
    pattern: Pattern,
    /// Whether it must be there, or must not.
    present: bool,
}

impl Transcript {
    /// Either the pattern alone, or `{pattern, expect}`.
    fn decode(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return Some(Self { pattern: decode_pattern(KIND.key, node, diagnostics)?, present: true });
        }
        let mut object = Object::new(node, KIND.key, diagnostics)?;
        let pattern = object.given("pattern").map(|node| decode_pattern("pattern", node, diagnostics));
        let present = match object.given("expect") {
            Some(node) => decode_expect(node, diagnostics),
            None => Some(true),
        };
        object.refuse_rest(KIND.key, diagnostics);
        if pattern.is_none() {
            object.missing("pattern", diagnostics);
        }
        Some(Self { pattern: pattern??, present: present? })
    }
}

fn decode_expect(node: &Node, diagnostics: &mut Diagnostics) -> Option<bool> {
    match text_of(node, "expect", diagnostics)? {
        "present" => Some(true),
        "absent" => Some(false),
        other => {
            diagnostics.error_help(
                "unknown-value",
                node.span,
                format!("\"expect\" cannot be \"{other}\""),
                "it may be present or absent",
            );
            None
        }
    }
}

impl Rule for Transcript {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn value(&self) -> Value {
        json!({"pattern": self.pattern.source(), "expect": if self.present { "present" } else { "absent" }})
    }

    fn mark(&self, evidence: &Evidence<'_>) -> Finding {
        let shown = excerpt(self.pattern.source(), 80);
        let text = as_read_by(self, rendered(evidence.observation).into());
        match (self.pattern.find(&text), self.present) {
            (Ok(Some(range)), true) => {
                Finding::new(true, format!("/{shown}/ matches")).with_evidence(around(&text, range.start))
            }
            (Ok(Some(range)), false) => Finding::new(false, format!("/{shown}/ matches, and must not"))
                .with_evidence(around(&text, range.start)),
            (Ok(None), present) => Finding::new(!present, format!("/{shown}/ matches nowhere")),
            (Err(too_hard), _) => Finding::not_scored(Why::CheckFailed(format!("/{shown}/ {too_hard}"))),
        }
    }
}

/// What the agent said and did, one thing after the other. Our own messages are left out: a
/// pattern must not find itself in the question.
pub fn rendered(observation: &Observation) -> String {
    let mut out = String::new();
    for step in &observation.steps {
        match step {
            Step::User(_) => {}
            Step::Text(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Step::Tool(call) => render_call(call, &mut out),
        }
    }
    out.extend(observation.unstepped());
    out
}

/// The call as JSON; below, in plain, the texts that JSON would escape, because people write
/// patterns for what they see.
fn render_call(call: &ToolCall, out: &mut String) {
    out.push_str(&format!("{} {}\n", call.name, call.input));
    for (name, value) in call.input.as_object().into_iter().flatten() {
        if let Value::String(text) = value
            && text.contains(['"', '\\', '\n', '\t', '\r'])
        {
            out.push_str(&format!("{name}: {text}\n"));
        }
    }
    if let Some(result) = &call.result {
        out.push_str(result);
        out.push('\n');
    }
}

fn schema() -> Value {
    let doc = "The pattern (Python's `re` syntax), over what was said, called and answered.";
    let found = Mapping::closed().must("pattern", doc, shape::text()).may(
        "expect",
        "Whether it must be there, or must not.",
        shape::default(shape::words(&["present", "absent"]), "present"),
    );
    shape::either([shape::text(), found.into()])
}

#[cfg(test)]
mod tests {
    use super::super::rows::{called, check_run};
    use super::*;

    #[test]
    fn rows() {
        let run = called(&[
            ("Skill", json!({"skill": "greeter"})),
            ("Bash", json!({"command": "git commit -m \"first\"\ngit push"})),
        ]);
        for (yaml, expected) in [
            ("done", "pass"),
            ("'do it'", "fail"),
            (r#"'"skill":"greeter"'"#, "pass"),
            ("'Skill .*greeter'", "pass"),
            (r#"'commit -m "first"'"#, "pass"),
            ("'(?m)^git push$'", "pass"),
            ("'(?m)^ok$'", "pass"),
            ("{pattern: 'rm -rf', expect: absent}", "pass"),
            ("{pattern: 'git push', expect: absent}", "fail"),
            ("{pattern: 'git push', expect: present}", "pass"),
            ("{pattern: 'git push'}", "pass"),
            ("{pattern: '(?=(a+)+$)b|x(?=y)'}", "fail"),
            ("{pattern: x, expect: maybe}", "refused"),
            ("{expect: absent}", "refused"),
            ("'('", "refused"),
        ] {
            check_run(&KIND, yaml, &run, expected);
        }
    }
}
