//! The check `transcript`: a pattern matches in the transcript of a run.

use std::sync::Arc;

use serde_json::{Value, json};

use super::contains::line_around;
use super::line_ends::text_for_rule;
use super::regex::decode_pattern;
use super::{PythonPattern, RuleKind, excerpt};
use practicum_core::model::{
    CheckEvidence, CheckFinding, CheckTarget, Diagnostics, NotScoredReason, Observation, Rule, Step, ToolCall,
};
use practicum_core::tree::{
    ObjectReader, TreeNode,
    json_schema::{self, MappingSchema},
    node_text,
};

pub static KIND: RuleKind = RuleKind {
    key: "transcript",
    doc: "the pattern matches somewhere in what the agent said, the tools it called and what they \
          answered; `expect: absent` turns it round",
    schema: || {
        PatternExpectation::schema(
            "The pattern (Python's `re` syntax), over what was said, called and answered.",
        )
    },
    decode: |node, diagnostics| {
        Some(Arc::new(TranscriptRule(PatternExpectation::decode("transcript", node, diagnostics)?)))
    },
};

/// The rule of the check `transcript`: a pattern, and whether it must match.
#[derive(Debug, Clone)]
pub struct TranscriptRule(PatternExpectation);

/// A pattern, and whether it must match or must not match.
#[derive(Debug, Clone)]
pub struct PatternExpectation {
    pub pattern: PythonPattern,
    /// Whether the pattern must match.
    pub present: bool,
}

impl PatternExpectation {
    /// Reads either the pattern alone or `{pattern, expect}`.
    pub fn decode(key: &str, node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<Self> {
        if node.as_map().is_none() {
            return Some(Self { pattern: decode_pattern(key, node, diagnostics)?, present: true });
        }
        let mut object = ObjectReader::new(node, key, diagnostics)?;
        let pattern = object.get_non_null("pattern").map(|node| decode_pattern("pattern", node, diagnostics));
        let present = match object.get_non_null("expect") {
            Some(node) => decode_expect(node, diagnostics),
            None => Some(true),
        };
        object.reject_unknown_keys(key, diagnostics);
        if pattern.is_none() {
            object.report_missing("pattern", diagnostics);
        }
        Some(Self { pattern: pattern??, present: present? })
    }

    pub fn value(&self) -> Value {
        json!({"pattern": self.pattern.source(), "expect": if self.present { "present" } else { "absent" }})
    }

    /// Gives the schema, with a sentence about what the pattern is searched in.
    pub fn schema(doc: &str) -> Value {
        let found = MappingSchema::closed().required("pattern", doc, json_schema::text()).optional(
            "expect",
            "Whether it must be there, or must not.",
            json_schema::with_default(json_schema::one_of_words(&["present", "absent"]), "present"),
        );
        json_schema::any_of([json_schema::text(), found.into()])
    }
}

fn decode_expect(node: &TreeNode, diagnostics: &mut Diagnostics) -> Option<bool> {
    match node_text(node, "expect", diagnostics)? {
        "present" => Some(true),
        "absent" => Some(false),
        other => {
            diagnostics.error_with_help(
                "unknown-value",
                node.span,
                format!("\"expect\" cannot be \"{other}\""),
                "it may be present or absent",
            );
            None
        }
    }
}

impl Rule for TranscriptRule {
    fn key(&self) -> &'static str {
        KIND.key
    }

    fn default_target(&self) -> CheckTarget {
        CheckTarget::WholeRun
    }

    fn value(&self) -> Value {
        self.0.value()
    }

    fn check(&self, evidence: &CheckEvidence<'_>) -> CheckFinding {
        let PatternExpectation { pattern, present } = &self.0;
        let shown = excerpt(pattern.source(), 80);
        let text = text_for_rule(self, render_transcript(evidence.observation).into());
        match (pattern.find(&text), *present) {
            (Ok(Some(range)), true) => CheckFinding::new(true, format!("/{shown}/ matches"))
                .with_evidence(line_around(&text, range.start)),
            (Ok(Some(range)), false) => CheckFinding::new(false, format!("/{shown}/ matches, and must not"))
                .with_evidence(line_around(&text, range.start)),
            (Ok(None), present) => CheckFinding::new(!present, format!("/{shown}/ matches nowhere")),
            (Err(too_hard), _) => {
                CheckFinding::not_scored(NotScoredReason::CheckFailed(format!("/{shown}/ {too_hard}")))
            }
        }
    }
}

/// Writes what the agent said and did, in order. The user's messages are left out: a pattern must not match in the
/// prompt.
pub fn render_transcript(observation: &Observation) -> String {
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
    out.extend(observation.output_outside_steps());
    out
}

/// Writes the call as JSON. Below it come, unescaped, the texts that JSON would escape, because people write
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

#[cfg(test)]
mod tests {
    use super::super::rule_tests::{check_run, run_with_calls};
    use super::*;

    #[test]
    fn rows() {
        let run = run_with_calls(&[
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
