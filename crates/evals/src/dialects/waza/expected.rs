//! What a task expects. waza reads these keys and grades nothing by them; here they are graded as their author meant.

use serde_json::{Value, json};

use super::super::copilot_tools::agent_tool;
use super::super::reading::graders::{portable_pattern, scored_rule};
use super::super::reading::{UnusedKeys, activation_check};
use super::graders::WazaGraderReader;
use practicum_core::model::{ActivationExpectation, Check, Diagnostics, SkillRef};
use practicum_core::tree::{ObjectReader, TreeNode};

/// The notice about the keys that only this program grades.
pub const EXPECTED_NOTICE: &str = "waza does not grade \"expected\"; here it is graded as its author meant it, so a task can fail that waza passes";

/// Makes a rule that a text is in the answer, in upper or lower case. A text that begins with flags is a pattern.
fn text_rule(text: &str) -> Result<Value, String> {
    match text.starts_with("(?") {
        true => Ok(json!({"regex": portable_pattern(text, "")?})),
        false => Ok(json!({"contains": {"text": text, "ignore_case": true}})),
    }
}

/// Reads `expected`. Says whether it has anything that is graded.
pub fn read_expected(
    node: &TreeNode,
    skill: &SkillRef,
    graders: &mut WazaGraderReader<'_>,
    checks: &mut Vec<Check>,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Some(mut expected) = ObjectReader::new(node, "\"expected\"", diagnostics) else { return false };
    let before = checks.len();
    for key in ["should_trigger", "skill_activated"] {
        if let Some(should) = expected.bool(key, diagnostics) {
            let expect = if should { ActivationExpectation::Must } else { ActivationExpectation::MustNot };
            let check = activation_check(vec![skill.name.clone()], expect);
            // Both keys may say the same.
            if !checks[before..].contains(&check) {
                checks.push(check);
            }
        }
    }
    let mut rules = Vec::new();
    for key in ["output_contains", "output_not_contains", "output_contains_any"] {
        let texts = expected.texts(key, diagnostics).unwrap_or_default();
        let made: Result<Vec<Value>, String> = texts.iter().map(|(text, _)| text_rule(text)).collect();
        match made {
            Ok(made) if made.is_empty() => {}
            Ok(made) => rules.push((key, made)),
            Err(why) => graders.report_unsupported(&format!("expected {key}: {why}")),
        }
    }
    for (key, made) in rules {
        let (rule, value) = match key {
            "output_contains" => ("all", Value::Array(made)),
            "output_contains_any" => ("any", Value::Array(made)),
            _ => ("not", json!({"any": made})),
        };
        let id = graders.unique_id(&key.replace('_', "-"));
        match scored_rule(&id, rule, &value) {
            Ok(check) => checks.push(check),
            Err(why) => graders.report_unsupported(&format!("expected {key}: {why}")),
        }
    }
    read_outcomes(&mut expected, graders, checks, diagnostics);
    if let Some(node) = expected.get_non_null("behavior") {
        graders.read_behavior("expected-behavior", node, checks, diagnostics);
    }
    if let Some(node) = expected.get_non_null("tool_calls") {
        read_tool_calls(node, graders, checks, diagnostics);
    }
    UnusedKeys::default().collect_unused(&expected, "\"expected\"", diagnostics);
    checks.len() > before
}

fn read_outcomes(
    expected: &mut ObjectReader<'_>,
    graders: &mut WazaGraderReader<'_>,
    checks: &mut Vec<Check>,
    diagnostics: &mut Diagnostics,
) {
    for node in expected.list("outcomes", diagnostics).unwrap_or_default() {
        let kind = node.get("type").and_then(TreeNode::as_text);
        let tool = ["tool_name", "tool"].iter().find_map(|key| node.get(key)?.as_text());
        match (kind, tool) {
            // Whether the agent finished is known of every run.
            (Some("task_completed"), _) => {}
            (Some("tool_called"), Some(tool)) => {
                let id = graders.unique_id(&format!("calls-{tool}"));
                checks.extend(scored_rule(&id, "tool_used", &json!(agent_tool(tool))).ok());
            }
            _ => {
                let message = "this outcome is not known, so nothing checks it";
                diagnostics.warning("unchecked-outcome", node.span, message);
            }
        }
    }
}

fn read_tool_calls(
    node: &TreeNode,
    graders: &mut WazaGraderReader<'_>,
    checks: &mut Vec<Check>,
    diagnostics: &mut Diagnostics,
) {
    let Some(mut calls) = ObjectReader::new(node, "\"tool_calls\"", diagnostics) else { return };
    for (key, rule) in [("required", "tool_used"), ("forbidden", "tool_not_used")] {
        for item in calls.list(key, diagnostics).unwrap_or_default() {
            let name =
                item.as_text().or_else(|| ["name", "tool"].iter().find_map(|key| item.get(key)?.as_text()));
            let Some(name) = name else {
                diagnostics.warning(
                    "unchecked-outcome",
                    item.span,
                    "this names no tool, so nothing checks it",
                );
                continue;
            };
            let id = graders.unique_id(&format!("{key}-{name}"));
            checks.extend(scored_rule(&id, rule, &json!(agent_tool(name))).ok());
        }
    }
    UnusedKeys::default().collect_unused(&calls, "\"tool_calls\"", diagnostics);
}
