//! Recognises evals, and results of evals, by the keys that each format needs.

use std::path::Path;

use super::unpacked::Unpacked;
use super::{ContentKind, activation_keys, case_stream};
use practicum_core::model::Diagnostics;
use practicum_core::tree::{NodeData, SourceFile, SourceSyntax, TreeNode};

/// The largest document that is read as a whole.
const LARGEST_WHOLE: u64 = 1024 * 1024;

/// Keys of a case's question, and keys of what is expected of the answer. Together they make a case; `input` and
/// `expected` alone would match the data of any unit test.
const CASE_KEYS: [(&[&str], &[&str]); 2] = [
    (
        &["prompt", "query", "question", "user_input", "user_request", "user_prompt"],
        &[
            "expectations",
            "assertions",
            "expected_output",
            "expected_behavior",
            "expected",
            "rubric",
            "expectation",
            "ground_truth",
            "must_contain",
            "must_not_contain",
            "must_include",
            "must_not_include",
            "anti_expectations",
            "failure_conditions",
            "expected_output_contains",
            "expected_checks",
        ],
    ),
    (&["input"], &["expectations", "rubric", "expectation"]),
];

/// The keys among `CASE_KEYS` that hold a question.
const QUESTION_KEYS: [&str; 7] =
    ["prompt", "query", "question", "user_input", "user_request", "user_prompt", "input"];

/// The keys of files that hold only a list of cases: evals, cases, and sets of trigger queries.
pub const CASE_LIST_KEYS: [&str; 9] = [
    "evals",
    "cases",
    "queries",
    "triggers",
    "trigger_queries",
    "tests",
    "test_cases",
    "scenarios",
    "expects",
];

/// Says whether a text file is evals of any format, a script of the gateway, or the results of evals, whatever its
/// name.
pub fn classify_eval_document(file: &Unpacked<'_>) -> ContentKind {
    let Some(bytes) = file.head(LARGEST_WHOLE + 1) else { return ContentKind::Other };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let is_json = text.trim_start().starts_with(['{', '[']);
    let is_whole = bytes.len() as u64 <= LARGEST_WHOLE;
    let read = is_whole.then(|| kind_of_text(text)).flatten();
    match read {
        Some(kind) => kind,
        // JSON Lines, or a document that is too large to be read as a whole.
        None if is_json && file.reader().is_some_and(case_stream::holds_cases) => ContentKind::Evals,
        None => ContentKind::Other,
    }
}

/// Gives the code blocks of a Markdown text that are eval files.
pub fn eval_code_blocks(file: &Unpacked<'_>) -> Vec<String> {
    let Some(bytes) = file.head(LARGEST_WHOLE) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let mut found = Vec::new();
    let mut block: Option<String> = None;
    for line in text.lines() {
        match (&mut block, is_code_fence(line)) {
            (Some(code), true) => {
                found.extend(is_eval_text(code).then(|| std::mem::take(code)));
                block = None;
            }
            (None, true) => block = Some(String::new()),
            (Some(code), false) => {
                code.push_str(line);
                code.push('\n');
            }
            (None, false) => {}
        }
    }
    found
}

/// Whether a line of Markdown begins or ends a block of code.
fn is_code_fence(line: &str) -> bool {
    ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence))
}

/// The keys of eval cases that occur in a text of any kind, for example in a patch, a table or a program.
#[derive(Debug, Clone, Copy)]
pub struct NamedCaseKeys {
    /// Whether the text has keys with values that together make a case.
    pub make_case: bool,
    /// Whether the text has a key that says whether a skill must be activated.
    pub expect_activation: bool,
}

/// Finds the keys of eval cases in a text.
pub fn named_case_keys(file: &Unpacked<'_>) -> NamedCaseKeys {
    let bytes = file.head(LARGEST_WHOLE).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let has_value = |key: &str| {
        text.match_indices(key).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + key.len()..]);
            let is_whole = !before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
            let after = after.strip_prefix(['"', '\'']).unwrap_or(after).trim_start_matches([' ', '\t']);
            // A colon as in JSON and YAML, or an equals sign as in TOML.
            is_whole && (after.starts_with(':') || after.starts_with('=') && !after.starts_with("=="))
        })
    };
    NamedCaseKeys {
        make_case: has_keys_of_case(has_value),
        expect_activation: activation_keys().any(|key| text.contains(key)),
    }
}

fn is_eval_text(text: &str) -> bool {
    match kind_of_text(text) {
        Some(kind) => kind != ContentKind::Other,
        None => case_stream::holds_cases(text.as_bytes()),
    }
}

/// Classifies a text, read as JSON or as YAML documents. `None` if it begins like JSON and is neither.
fn kind_of_text(text: &str) -> Option<ContentKind> {
    let read = |text: &str, syntax| {
        SourceFile::parse(Path::new("text"), text.to_owned(), syntax, &mut Diagnostics::default())
    };
    if text.trim_start().starts_with(['{', '[']) {
        let source = read(text, SourceSyntax::Json).or_else(|| read(text, SourceSyntax::Yaml))?;
        return Some(classify_json(&source.root));
    }
    // Most files are not evals, and parsing all of them would take long.
    let has_key = |key: &str| text.match_indices(key).any(|(at, _)| text[at + key.len()..].starts_with(':'));
    let asks = || QUESTION_KEYS.into_iter().any(has_key);
    let expects = || CASE_KEYS.iter().flat_map(|(_, answers)| *answers).copied().chain(activation_keys());
    if !(text.contains("practicum") || asks() && expects().any(has_key)) {
        return Some(ContentKind::Other);
    }
    let kind = |text: &str| match read(text, SourceSyntax::Yaml) {
        Some(source) if ["prompt", "expected"].iter().all(|key| source.root.has(key)) => ContentKind::Evals,
        Some(source) => classify_json(&source.root),
        // A slip in the file does not make its answers unreadable for an agent. What is Markdown has no slip.
        None => {
            let is_markdown = text.lines().any(is_code_fence);
            let has_line = |key: &&str| text.lines().any(|line| line.starts_with(key));
            match !is_markdown && ["prompt:", "expected:"].iter().all(has_line) {
                true => ContentKind::Evals,
                false => ContentKind::Other,
            }
        }
    };
    let kinds = text.split("\n---").map(kind);
    Some(kinds.into_iter().find(|kind| *kind != ContentKind::Other).unwrap_or(ContentKind::Other))
}

fn is_native_format(root: &TreeNode) -> bool {
    let is_number = |key: &str| root.get(key).is_some_and(|node| matches!(node.data, NodeData::Int(_)));
    is_number("practicum") || is_number("practicum_script")
}

fn classify_json(root: &TreeNode) -> ContentKind {
    let is_evals = match &root.data {
        NodeData::List(items) => are_cases(items),
        NodeData::Map(_) => {
            is_native_format(root) || is_skillet(root) || has_cases(root) || is_clauditor(root)
        }
        _ => false,
    };
    match is_evals {
        true => ContentKind::Evals,
        false if is_results(root) => ContentKind::Results,
        false => ContentKind::Other,
    }
}

/// Says whether a document is in Skillet's format. Skillet reads YAML, which includes JSON.
fn is_skillet(root: &TreeNode) -> bool {
    ["name", "prompt", "expected"].iter().all(|key| root.has(key))
}

fn list_at_key<'n>(node: &'n TreeNode, key: &str) -> &'n [TreeNode] {
    node.get(key).and_then(TreeNode::as_list).unwrap_or_default()
}

fn expects_activation(case: &TreeNode) -> bool {
    activation_keys().any(|key| case.has(key))
}

/// Says whether one of the items is a case: it has a question and what is expected of the answer.
fn are_cases(items: &[TreeNode]) -> bool {
    items.iter().any(|item| {
        let criteria = list_at_key(item, "expectations").iter().any(|item| item.has("criterion"));
        criteria || has_keys_of_case(|key| item.has(key))
    })
}

/// Says whether an object with these keys is a case.
pub fn has_keys_of_case(has: impl Fn(&str) -> bool) -> bool {
    let has_any = |keys: &[&str]| keys.iter().any(|key| has(key));
    CASE_KEYS.iter().any(|(question, answer)| has_any(question) && has_any(answer))
        || has_any(&QUESTION_KEYS) && activation_keys().any(&has)
}

fn has_cases(root: &TreeNode) -> bool {
    let of_skills =
        list_at_key(root, "skills").iter().any(|skill| !list_at_key(skill, "test_cases").is_empty());
    of_skills
        || !list_at_key(root, "negative_cases").is_empty()
        || CASE_LIST_KEYS.iter().any(|key| are_cases(list_at_key(root, key)))
        || are_cases(std::slice::from_ref(root)) && expects_activation(root)
}

fn is_clauditor(root: &TreeNode) -> bool {
    let typed = list_at_key(root, "assertions")
        .iter()
        .any(|assertion| assertion.has("type") && (assertion.has("id") || root.has("skill_name")));
    let criteria = !list_at_key(root, "grading_criteria").is_empty();
    let triggers = root.get("trigger_tests").is_some_and(|tests| tests.as_map().is_some());
    typed || criteria || triggers
}

/// Says whether a document is a grading or a benchmark in the format of skill-creator and similar tools.
fn is_results(root: &TreeNode) -> bool {
    let graded = |key: &str| {
        list_at_key(root, key).iter().any(|item| ["text", "passed"].iter().all(|key| item.has(key)))
    };
    let is_grading = graded("expectations") || graded("assertion_results");
    let rates = |summary: &TreeNode| {
        summary.as_map().is_some_and(|arms| arms.iter().any(|arm| arm.value.has("pass_rate")))
    };
    is_grading || root.get("run_summary").is_some_and(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evals_of_every_format_are_told_from_other_data() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text, expected) in [
            ("001.yaml", "timestamp: t\nname: n\nprompt: p\nexpected: e\n", ContentKind::Evals),
            ("001.yaml.bak", "{name: n, prompt: p, expected: e}", ContentKind::Evals),
            ("slip.yaml", "name: n: m\nprompt: p\nexpected: e\n", ContentKind::Evals),
            ("how.md", "Write:\n```yaml\nname: n\nprompt: p\nexpected: e\n```\n", ContentKind::Other),
            ("half.yaml", "name: n\nprompt: p\n", ContentKind::Other),
            ("inner.yaml", "jobs:\n  prompt: p\n  expected: e\n", ContentKind::Other),
            ("s.yaml", "practicum_script: 1\ndefault: x\n", ContentKind::Evals),
            ("s.json", r#"{"practicum_script": 1, "default": "x"}"#, ContentKind::Evals),
            ("flow.yaml", "{practicum: 1, cases: []}", ContentKind::Evals),
            ("a.json", r#"{"evals": [{"prompt": "p", "expectations": ["e"]}]}"#, ContentKind::Evals),
            ("comma.json", r#"{"evals": [{"prompt": "p", "expectations": ["e"]},]}"#, ContentKind::Evals),
            ("a.json", r#"{"evals": [{"prompt": "p", "assertions": ["e"]}]}"#, ContentKind::Evals),
            ("a.json", r#"{"cases": [{"expectations": [{"criterion": "c"}]}]}"#, ContentKind::Evals),
            ("a.json", r#"{"cases": [{"input": "i", "rubric": ["r"]}]}"#, ContentKind::Evals),
            ("a.json", r#"{"skills": [{"name": "s", "test_cases": [{"prompt": "p"}]}]}"#, ContentKind::Evals),
            ("a.json", r#"[{"query": "q", "should_trigger": true}]"#, ContentKind::Evals),
            ("a.json", r#"[{"input": "i", "expected_skill": null}]"#, ContentKind::Evals),
            ("a.json", r#"{"queries": [{"query": "q", "should_trigger": true}]}"#, ContentKind::Evals),
            ("a.json", r#"[{"question": "q", "ground_truth": "t"}]"#, ContentKind::Evals),
            (
                "a.json",
                r#"{"scenarios": [{"user_request": "q", "must_contain": ["t"]}]}"#,
                ContentKind::Evals,
            ),
            (
                "a.json",
                r#"{"skill_name": "s", "assertions": [{"type": "contains", "value": "v"}]}"#,
                ContentKind::Evals,
            ),
            ("a.json", r#"{"assertions": [{"id": "a", "type": "contains"}]}"#, ContentKind::Evals),
            ("a.json", r#"{"grading_criteria": [{"id": "a", "criterion": "c"}]}"#, ContentKind::Evals),
            (
                "g.json",
                r#"{"expectations": [{"text": "t", "passed": true, "evidence": "e"}], "summary": {}}"#,
                ContentKind::Results,
            ),
            (
                "g.json",
                r#"{"assertion_results": [{"text": "t", "passed": true, "evidence": "e"}], "summary": {}}"#,
                ContentKind::Results,
            ),
            ("g.json", r#"{"expectations": [{"text": "t", "passed": false}]}"#, ContentKind::Results),
            ("g.json", r#"{"expectations": [{"text": "t"}]}"#, ContentKind::Other),
            (
                "b.json",
                r#"{"run_summary": {"with_skill": {"pass_rate": {"mean": 1}}}}"#,
                ContentKind::Results,
            ),
            ("a.yaml", "evals:\n- id: A\n  prompt: p\n  expectations: [e]\n", ContentKind::Evals),
            ("a.yaml", "---\n- query: q\n  should_trigger: true\n", ContentKind::Evals),
            ("a.yaml", "a: 1\n---\ncases:\n- prompt: p\n  rubric: [e]\n", ContentKind::Evals),
            ("a.jsonl", "{\"id\": 1}\n{\"prompt\": \"p\", \"expectations\": [\"e\"]}\n", ContentKind::Evals),
            ("b.jsonl", "{\"prompt\": \"p\"}\n{\"expected\": \"e\"}\n", ContentKind::Other),
            // Data of other programs.
            ("a.json", r#"{"cases": [{"input": 1, "expected": 2}]}"#, ContentKind::Other),
            ("a.json", r#"[{"input": "a", "expected": "b"}]"#, ContentKind::Other),
            ("a.json", r#"{"skills": ["a"], "tests": [{"name": "t"}]}"#, ContentKind::Other),
            ("a.json", r#"{"assertions": [{"type": "x"}], "summary": "s"}"#, ContentKind::Other),
            ("a.json", r#"{"query": "q", "results": []}"#, ContentKind::Other),
            ("package.json", r#"{"name": "practicum", "scripts": {}}"#, ContentKind::Other),
            ("README.md", "# practicum\n\nThe prompt is expected.\n", ContentKind::Other),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            assert_eq!(classify_eval_document(&Unpacked::new(&path)), expected, "{name} {text}");
        }
    }
}
