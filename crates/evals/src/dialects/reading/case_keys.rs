//! The keys under which people write cases in JSON and YAML, and the lists of cases of a document.

use super::has_activation_key;
use practicum_core::tree::{MapEntry, NodeData, TreeNode};

/// The keys that hold what the user says, the documented one first.
pub const PROMPT_KEYS: [&str; 12] = [
    "prompt",
    "query",
    "question",
    "input",
    "user_request",
    "user_input",
    "user_prompt",
    "user_message",
    "request",
    "task",
    "message",
    "instruction",
];

/// The keys that hold several messages of the user.
pub const TURN_KEYS: [&str; 2] = ["turns", "prompts"];

/// The keys of a document that hold its cases.
const CASE_LIST_KEYS: [&str; 8] =
    ["evals", "cases", "test_cases", "tests", "scenarios", "queries", "expects", "eval_cases"];

/// How other keys that hold cases end, such as `pressure_tests` and `boundary_cases`.
const CASE_LIST_ENDINGS: [&str; 5] = ["_cases", "_evals", "_tests", "_scenarios", "_queries"];

/// The key of a document for trigger queries in two lists. It is read in its own way.
pub const TRIGGERS_KEY: &str = "trigger_evals";

/// How the items under a key are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementKind {
    /// A judge decides whether each statement is true, or code if it names an exact check.
    Judged,
    /// A judge decides whether each statement is not true.
    JudgedNot,
    /// The answer contains each text.
    Contains,
    /// The answer contains none of the texts.
    ContainsNot,
    /// Each path is a file in the workspace.
    File,
}

/// The keys of a case under which people list what must and must not be true, each with how its items are checked.
pub const STATEMENT_KEYS: [(&str, StatementKind); 46] = [
    ("expectations", StatementKind::Judged),
    ("assertions", StatementKind::Judged),
    ("expected_behavior", StatementKind::Judged),
    ("expected_behaviors", StatementKind::Judged),
    ("expected_behaviour", StatementKind::Judged),
    ("expected_outputs", StatementKind::Judged),
    ("expected_output_characteristics", StatementKind::Judged),
    ("expected_checks", StatementKind::Judged),
    ("expected_calls", StatementKind::Judged),
    ("checks", StatementKind::Judged),
    ("rubric", StatementKind::Judged),
    ("rubrics", StatementKind::Judged),
    ("criteria", StatementKind::Judged),
    ("evaluation_criteria", StatementKind::Judged),
    ("success_criteria", StatementKind::Judged),
    ("acceptance_criteria", StatementKind::Judged),
    ("quality_criteria", StatementKind::Judged),
    ("pass_criteria", StatementKind::Judged),
    ("must", StatementKind::Judged),
    ("must_have", StatementKind::Judged),
    ("must_include", StatementKind::Judged),
    ("must_mention", StatementKind::Judged),
    ("should_include", StatementKind::Judged),
    ("should_mention", StatementKind::Judged),
    ("must_not", StatementKind::JudgedNot),
    ("must_not_have", StatementKind::JudgedNot),
    ("must_not_include", StatementKind::JudgedNot),
    ("must_not_mention", StatementKind::JudgedNot),
    ("should_not_include", StatementKind::JudgedNot),
    ("forbid", StatementKind::JudgedNot),
    ("forbidden", StatementKind::JudgedNot),
    ("forbidden_outputs", StatementKind::JudgedNot),
    ("forbidden_behavior", StatementKind::JudgedNot),
    ("forbidden_behaviors", StatementKind::JudgedNot),
    ("anti_expectations", StatementKind::JudgedNot),
    ("anti_patterns", StatementKind::JudgedNot),
    ("failure_conditions", StatementKind::JudgedNot),
    ("must_contain", StatementKind::Contains),
    ("should_contain", StatementKind::Contains),
    ("output_contains", StatementKind::Contains),
    ("expected_output_contains", StatementKind::Contains),
    ("must_not_contain", StatementKind::ContainsNot),
    ("should_not_contain", StatementKind::ContainsNot),
    ("output_not_contains", StatementKind::ContainsNot),
    ("expected_output_excludes", StatementKind::ContainsNot),
    ("required_artifacts", StatementKind::File),
];

/// The keys of a case for what success looks like. A judge reads it, and decides by it if nothing else is expected.
pub const EXPECTED_TEXT_KEYS: [&str; 5] =
    ["expected_output", "ground_truth", "expected_result", "expected_response", "expected_answer"];

/// The keys of a case for what is expected as text, as a list of statements, or as a mapping of them.
pub const EXPECTED_KEYS: [&str; 2] = ["expected", "expect"];

/// Says whether an item has what the user says.
pub fn has_prompt(item: &TreeNode) -> bool {
    let is_said = |key: &str| {
        item.get(key).is_some_and(|node| matches!(node.data, NodeData::Text(_) | NodeData::Map(_)))
    };
    PROMPT_KEYS.iter().any(|key| is_said(key))
        || TURN_KEYS.iter().any(|key| item.get(key).is_some_and(|node| node.as_list().is_some()))
}

/// Says whether an item says what must be true after a run, apart from activation.
pub fn has_statements(item: &TreeNode) -> bool {
    let statements = STATEMENT_KEYS.iter().map(|(key, _)| *key);
    statements
        .chain(EXPECTED_TEXT_KEYS)
        .chain(EXPECTED_KEYS)
        .chain(["expected_script"])
        .any(|key| item.get(key).is_some_and(|node| !node.is_null()))
}

/// Says whether an item is a case: it has a prompt and expects something.
pub fn is_case(item: &TreeNode) -> bool {
    has_prompt(item) && (has_statements(item) || has_activation_key(item))
}

/// Says whether a list holds trigger queries: an item says only whether the skill must be activated.
pub fn are_trigger_queries(items: &[TreeNode]) -> bool {
    items.iter().any(|item| has_prompt(item) && has_activation_key(item))
        && !items.iter().any(|item| {
            // Here, `expect` is a label such as "no-trigger".
            let label = |key: &str| key == "expect" && item.get(key).is_some_and(|at| at.as_text().is_some());
            let keys = STATEMENT_KEYS.iter().map(|(key, _)| *key);
            keys.chain(EXPECTED_TEXT_KEYS).chain(EXPECTED_KEYS).any(|key| item.has(key) && !label(key))
        })
}

/// Finds the lists of cases of a document. `evals` is one whatever it holds; under any other key, each item must have
/// a prompt and one of them must expect something, and beside `evals` each of them must.
pub fn case_lists(root: &TreeNode) -> Vec<&MapEntry> {
    let has_evals = root.get("evals").is_some_and(|evals| evals.as_list().is_some());
    let is_case_list = |entry: &&MapEntry| {
        let Some(items) = entry.value.as_list() else { return false };
        let key = entry.key.as_str();
        if key == "evals" {
            return true;
        }
        let is_named = key != TRIGGERS_KEY
            && (CASE_LIST_KEYS.contains(&key) || CASE_LIST_ENDINGS.iter().any(|end| key.ends_with(end)));
        let expect = match has_evals {
            true => items.iter().all(is_case),
            false => items.iter().any(is_case),
        };
        is_named && !items.is_empty() && items.iter().all(has_prompt) && expect
    };
    root.as_map().unwrap_or_default().iter().filter(is_case_list).collect()
}
