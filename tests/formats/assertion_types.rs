//! Exact assertions and lists of people's evals.json, each with the verdict that its name promises: a row that passes,
//! one that fails, and one at the edge, through the whole program with a scripted agent.

use serde_json::{Value, json};

use crate::common::Project;

const SKILL: &str = "---\nname: dock\ndescription: Use when a report is wanted.\n---\n\nWrite it.\n";

/// Runs one eval for each row in one run. The agent writes two files, the second one empty, and answers
/// "The LICENSE is MIT. Total: 42".
fn check_verdicts(rows: &[(Value, &str)]) {
    let evals: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(number, (keys, _))| {
            let mut eval = json!({"id": format!("row-{number}"), "prompt": "Do it"});
            for (key, value) in keys.as_object().expect("keys") {
                eval[key] = value.clone();
            }
            eval
        })
        .collect();
    let write = |path: &str, content: &str| json!({"name": "Write", "input": {"file_path": path, "content": content}});
    let tools = [write("out/report.md", "# Title\nTotal 42\n"), write("out/empty.txt", "")];
    let steps = json!([{"tools": tools}, "The LICENSE is MIT. Total: 42"]);
    let script = json!({"practicum_script": 1, "scenarios": [{"when": "Do it", "steps": steps}]});
    let project = Project::new(&[
        ("practicum.toml", "sandbox = \"off\"\n"),
        ("dock/SKILL.md", SKILL),
        ("dock/evals/evals.json", &json!({"skill_name": "dock", "evals": evals}).to_string()),
        ("script.yaml", &script.to_string()),
    ]);
    let run =
        ["run", ".", "--agent", "builtin", "--script", "script.yaml", "--arm", "with", "--trust", "--json"];
    let summary = project.run(&run).exits(1).json();
    let cases = summary["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), rows.len());
    for (number, (keys, expected)) in rows.iter().enumerate() {
        let id = format!("row-{number}");
        let case = cases.iter().find(|case| case["id"] == id.as_str()).expect("the case");
        let found = match (case["passed"].as_u64(), case["failed"].as_u64()) {
            (Some(1), _) => "pass",
            (_, Some(1)) => "fail",
            _ => "not scored",
        };
        assert_eq!(found, *expected, "{keys}: {case:#}");
    }
}

#[test]
fn typed_assertions() {
    let rows = [
        (json!({"type": "content_contains", "value": "LICENSE"}), "pass"),
        (json!({"type": "content_contains", "value": "APACHE"}), "fail"),
        (json!({"type": "content_contains", "value": "license"}), "fail"),
        (json!({"type": "content_contains", "value": "license", "ignore_case": true}), "pass"),
        (json!({"type": "content_includes_any", "value": ["BSD", "MIT"]}), "pass"),
        (json!({"type": "content_includes_any", "value": ["BSD", "GPL"]}), "fail"),
        (json!({"type": "content_includes_any", "value": ["4.2", "4+2"]}), "fail"),
        (json!({"type": "content_includes_all", "value": ["MIT", "42"]}), "pass"),
        (json!({"type": "content_includes_all", "value": ["MIT", "43"]}), "fail"),
        (json!({"type": "content_includes_all", "value": ["42"]}), "pass"),
        (json!({"type": "contains_phrase", "phrase": "is MIT"}), "pass"),
        (json!({"type": "contains_phrase", "phrase": "is BSD"}), "fail"),
        (json!({"type": "contains_phrase", "phrase": "IS mit"}), "fail"),
        (json!({"type": "not_contains", "phrase": "GPL"}), "pass"),
        (json!({"type": "not_contains", "phrase": "MIT"}), "fail"),
        (json!({"type": "not_contains", "value": ["GPL", "42"]}), "fail"),
        (json!({"type": "regex_includes", "value": "Total: \\d+"}), "pass"),
        (json!({"type": "regex_includes", "value": "Total: [a-z]+"}), "fail"),
        (json!({"type": "regex_includes", "value": "total", "flags": "gi"}), "pass"),
        (json!({"type": "regex_excludes", "value": "GPL|BSD"}), "pass"),
        (json!({"type": "regex_excludes", "value": "MIT|BSD"}), "fail"),
        (json!({"type": "regex_excludes", "value": "mit", "flags": "i"}), "fail"),
        (json!({"type": "content_regex", "value": "LIC.*MIT"}), "pass"),
        (json!({"type": "content_regex", "value": "^MIT"}), "fail"),
        (json!({"type": "content_regex", "value": "42$"}), "pass"),
        (json!({"type": "contains_pattern", "pattern": "\\bMIT\\b"}), "pass"),
        (json!({"type": "contains_pattern", "pattern": "\\bMI\\b"}), "fail"),
        (json!({"type": "contains_pattern", "pattern": "GPL", "negate": true}), "pass"),
        (json!({"type": "not_contains_pattern", "pattern": "\\bMI\\b"}), "pass"),
        (json!({"type": "not_contains_pattern", "pattern": "\\bMIT\\b"}), "fail"),
        (json!({"type": "not_contains_pattern", "pattern": "MIT", "negate": true}), "pass"),
        (json!({"type": "output_contains", "pattern": "Tot.l"}), "pass"),
        (json!({"type": "output_contains", "pattern": "Tot\\.l"}), "fail"),
        (json!({"type": "output_contains", "value": "Tot.l"}), "fail"),
        (json!({"type": "transcript_contains", "value": "out/report.md"}), "pass"),
        (json!({"type": "transcript_contains", "value": "out/other.md"}), "fail"),
        (json!({"type": "transcript_contains", "value": "out/other.md", "expect": "absent"}), "pass"),
        (json!({"type": "file_matches_glob", "glob": "out/*.md"}), "pass"),
        (json!({"type": "file_matches_glob", "glob": "*.md"}), "fail"),
        (json!({"type": "file_matches_glob", "glob": "**/*.txt"}), "pass"),
        (json!({"type": "file_matches_glob", "glob": "out/*", "content_pattern": "Total \\d+"}), "pass"),
        (json!({"type": "file_matches_glob", "glob": "out/*", "content_pattern": "Sum"}), "fail"),
        (json!({"type": "file_matches_glob", "glob": "gone/*", "content_pattern": "Total"}), "fail"),
        (json!({"type": "tool_use", "value": "Write"}), "pass"),
        (json!({"type": "tool_use", "value": "WebFetch"}), "fail"),
        (json!({"type": "tool_use", "value": "Write", "negate": true}), "fail"),
        (json!({"check": "tool_called", "tool": "Write"}), "pass"),
        (json!({"check": "tool_called", "tool": "WebFetch"}), "fail"),
        (json!({"check": "tool_called", "tool": "write"}), "pass"),
        (
            json!({"type": "transcript_check", "check": "tool_invocation_matches", "pattern": "report\\.md"}),
            "pass",
        ),
        (
            json!({"type": "transcript_check", "check": "tool_invocation_matches", "pattern": "rm -rf"}),
            "fail",
        ),
        (
            json!({"type": "transcript_check", "check": "assistant_message_matches", "pattern": "out/report"}),
            "fail",
        ),
        (json!({"type": "command_succeeds", "command": "test -f out/report.md"}), "pass"),
        (json!({"type": "command_succeeds", "command": "test -f gone.md"}), "fail"),
        (json!({"type": "command_check", "command": "exit 3", "expect_exit_code": 3}), "pass"),
        (json!("trajectory_contains:out/report.md"), "pass"),
        (json!("trajectory_contains:gone.md"), "fail"),
        (json!("output_contains:42"), "pass"),
        (json!("file_exists:out/report.md"), "pass"),
        (json!("file_exists:gone.md"), "fail"),
    ];
    let rows: Vec<(Value, &str)> =
        rows.into_iter().map(|(assertion, verdict)| (json!({"assertions": [assertion]}), verdict)).collect();
    check_verdicts(&rows);
}

#[test]
fn positive_and_negative_lists() {
    check_verdicts(&[
        (json!({"must_contain": ["MIT"]}), "pass"),
        (json!({"must_contain": ["MIT", "GPL"]}), "fail"),
        (json!({"must_contain": ["mit"]}), "fail"),
        (json!({"must_not_contain": ["GPL"]}), "pass"),
        (json!({"must_not_contain": ["license"]}), "fail"),
        (json!({"must_not_contain": ["Total: 4\\d\\b"]}), "fail"),
        (json!({"must_not_contain": ["Total: 5\\d\\b"]}), "pass"),
        (json!({"expected_output_contains": ["42"], "expected_output_excludes": ["43"]}), "pass"),
        (json!({"expected_output_contains": ["42"], "expected_output_excludes": ["42"]}), "fail"),
        (json!({"required_artifacts": ["out/report.md"]}), "pass"),
        (json!({"required_artifacts": ["out/report.md", "gone.md"]}), "fail"),
        (json!({"expected": {"contains": ["MIT"], "not_contains": ["GPL"]}}), "pass"),
        (json!({"expected": {"contains": ["GPL"]}}), "fail"),
        (json!({"expected_script": "build.py"}), "fail"),
        (json!({"assertions": ["output_contains:MIT"], "should_trigger": true}), "fail"),
        (json!({"assertions": ["output_contains:MIT"], "should_trigger": false}), "pass"),
        (json!({"assertions": ["output_contains:MIT"], "expected_skill": null}), "pass"),
        (json!({"assertions": ["output_contains:one two"], "files": {"in/a.txt": "one two"}}), "fail"),
    ]);
}
