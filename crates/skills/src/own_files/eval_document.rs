//! Which documents are evals, or results of evals, by the keys that a format cannot do without.

use std::path::Path;

use super::{Kind, activation_keys};
use practicum_core::model::Diagnostics;
use practicum_core::tree::{Data, Node, Source, Syntax, read_bounded};

/// A larger file is not looked through for evals: eval files are written by hand.
const LARGEST_EVALS: u64 = 1024 * 1024;

/// Keys that hold what a case asks, and those that hold what is expected of the answer. Together they make a
/// case; `input` and `expected` alone would be the data of any unit test.
const CASES: [(&[&str], &[&str]); 2] = [
    (
        &["prompt", "query", "user_input"],
        &[
            "expectations",
            "assertions",
            "expected_output",
            "expected_behavior",
            "expected",
            "rubric",
            "expectation",
        ],
    ),
    (&["input"], &["expectations", "rubric", "expectation"]),
];

/// The keys of CASES that hold a question.
const QUESTIONS: [&str; 4] = ["prompt", "query", "user_input", "input"];

/// Keys of the files that hold nothing but cases in a list: evals, cases, and sets of trigger queries.
const LISTS: [&str; 7] = ["evals", "cases", "queries", "triggers", "trigger_queries", "tests", "test_cases"];

/// Whether a text file is evals of any format, a script of the gateway, or the results of evals, whatever its
/// name is.
pub fn look_at(path: &Path, length: u64) -> Kind {
    if length > LARGEST_EVALS {
        return Kind::Other;
    }
    let Ok(bytes) = read_bounded(path, LARGEST_EVALS) else { return Kind::Other };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let read = |syntax| Source::parse(path, text.to_owned(), syntax, &mut Diagnostics::default());
    let is_json = text.trim_start().starts_with(['{', '[']);
    if is_json && let Some(source) = read(Syntax::Json).or_else(|| read(Syntax::Yaml)) {
        return kind_of_json(&source.root);
    }
    // Most files are no evals, and parsing all of them would take long.
    if !(text.contains("practicum") || text.contains("prompt") && text.contains("expected")) {
        return Kind::Other;
    }
    let is_evals = match read(Syntax::Yaml) {
        Some(source) => {
            is_of_practicum(&source.root) || ["prompt", "expected"].iter().all(|key| source.root.has(key))
        }
        // A slip in the file does not make its answers unreadable for an agent.
        None => ["prompt:", "expected:"].iter().all(|key| text.lines().any(|line| line.starts_with(key))),
    };
    if is_evals { Kind::Evals } else { Kind::Other }
}

fn is_of_practicum(root: &Node) -> bool {
    let is_number = |key: &str| root.get(key).is_some_and(|node| matches!(node.data, Data::Int(_)));
    is_number("practicum") || is_number("practicum_script")
}

fn kind_of_json(root: &Node) -> Kind {
    let is_evals = match &root.data {
        Data::List(items) => are_cases(items),
        Data::Map(_) => is_of_practicum(root) || is_skillet(root) || has_cases(root) || is_clauditor(root),
        _ => false,
    };
    match is_evals {
        true => Kind::Evals,
        false if is_results(root) => Kind::Results,
        false => Kind::Other,
    }
}

/// Skillet reads YAML, of which JSON is a part.
fn is_skillet(root: &Node) -> bool {
    ["name", "prompt", "expected"].iter().all(|key| root.has(key))
}

fn list_of<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).and_then(Node::as_list).unwrap_or_default()
}

fn says_activation(case: &Node) -> bool {
    activation_keys().any(|key| case.has(key))
}

/// Whether one of the items is a case: it asks something, and says what is expected.
fn are_cases(items: &[Node]) -> bool {
    items.iter().any(|item| {
        let has = |keys: &[&str]| keys.iter().any(|key| item.has(key));
        let criteria = list_of(item, "expectations").iter().any(|item| item.has("criterion"));
        criteria
            || CASES.iter().any(|(question, answer)| has(question) && has(answer))
            || has(&QUESTIONS) && says_activation(item)
    })
}

fn has_cases(root: &Node) -> bool {
    let of_skills = list_of(root, "skills").iter().any(|skill| !list_of(skill, "test_cases").is_empty());
    of_skills
        || !list_of(root, "negative_cases").is_empty()
        || LISTS.iter().any(|key| are_cases(list_of(root, key)))
        || are_cases(std::slice::from_ref(root)) && says_activation(root)
}

fn is_clauditor(root: &Node) -> bool {
    let typed = list_of(root, "assertions")
        .iter()
        .any(|assertion| assertion.has("type") && (assertion.has("id") || root.has("skill_name")));
    let criteria = !list_of(root, "grading_criteria").is_empty();
    let triggers = root.get("trigger_tests").is_some_and(|tests| tests.as_map().is_some());
    typed || criteria || triggers
}

/// Whether a document is a grading or a benchmark as skill-creator and its relatives write them.
fn is_results(root: &Node) -> bool {
    let graded = |key: &str| {
        let items = list_of(root, key);
        items.iter().any(|item| ["text", "passed", "evidence"].iter().all(|key| item.has(key)))
    };
    let is_grading = root.has("summary") && (graded("expectations") || graded("assertion_results"));
    let rates = |summary: &Node| {
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
            ("001.yaml", "timestamp: t\nname: n\nprompt: p\nexpected: e\n", Kind::Evals),
            ("001.yaml.bak", "{name: n, prompt: p, expected: e}", Kind::Evals),
            ("slip.yaml", "name: n: m\nprompt: p\nexpected: e\n", Kind::Evals),
            ("half.yaml", "name: n\nprompt: p\n", Kind::Other),
            ("inner.yaml", "jobs:\n  prompt: p\n  expected: e\n", Kind::Other),
            ("s.yaml", "practicum_script: 1\ndefault: x\n", Kind::Evals),
            ("s.json", r#"{"practicum_script": 1, "default": "x"}"#, Kind::Evals),
            ("flow.yaml", "{practicum: 1, cases: []}", Kind::Evals),
            ("a.json", r#"{"evals": [{"prompt": "p", "expectations": ["e"]}]}"#, Kind::Evals),
            ("comma.json", r#"{"evals": [{"prompt": "p", "expectations": ["e"]},]}"#, Kind::Evals),
            ("a.json", r#"{"evals": [{"prompt": "p", "assertions": ["e"]}]}"#, Kind::Evals),
            ("a.json", r#"{"cases": [{"expectations": [{"criterion": "c"}]}]}"#, Kind::Evals),
            ("a.json", r#"{"cases": [{"input": "i", "rubric": ["r"]}]}"#, Kind::Evals),
            ("a.json", r#"{"skills": [{"name": "s", "test_cases": [{"prompt": "p"}]}]}"#, Kind::Evals),
            ("a.json", r#"[{"query": "q", "should_trigger": true}]"#, Kind::Evals),
            ("a.json", r#"[{"input": "i", "expected_skill": null}]"#, Kind::Evals),
            ("a.json", r#"{"queries": [{"query": "q", "should_trigger": true}]}"#, Kind::Evals),
            (
                "a.json",
                r#"{"skill_name": "s", "assertions": [{"type": "contains", "value": "v"}]}"#,
                Kind::Evals,
            ),
            ("a.json", r#"{"assertions": [{"id": "a", "type": "contains"}]}"#, Kind::Evals),
            ("a.json", r#"{"grading_criteria": [{"id": "a", "criterion": "c"}]}"#, Kind::Evals),
            (
                "g.json",
                r#"{"expectations": [{"text": "t", "passed": true, "evidence": "e"}], "summary": {}}"#,
                Kind::Results,
            ),
            (
                "g.json",
                r#"{"assertion_results": [{"text": "t", "passed": true, "evidence": "e"}], "summary": {}}"#,
                Kind::Results,
            ),
            ("b.json", r#"{"run_summary": {"with_skill": {"pass_rate": {"mean": 1}}}}"#, Kind::Results),
            // Data of other programs.
            ("a.json", r#"{"cases": [{"input": 1, "expected": 2}]}"#, Kind::Other),
            ("a.json", r#"[{"input": "a", "expected": "b"}]"#, Kind::Other),
            ("a.json", r#"{"skills": ["a"], "tests": [{"name": "t"}]}"#, Kind::Other),
            ("a.json", r#"{"assertions": [{"type": "x"}], "summary": "s"}"#, Kind::Other),
            ("a.json", r#"{"query": "q", "results": []}"#, Kind::Other),
            ("package.json", r#"{"name": "practicum", "scripts": {}}"#, Kind::Other),
            ("README.md", "# practicum\n\nThe prompt is expected.\n", Kind::Other),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            assert_eq!(look_at(&path, text.len() as u64), expected, "{name} {text}");
        }
    }
}
