//! Tests of reading clauditor specs.

use std::path::Path;

use serde_json::{Value, json};

use super::*;
use crate::dialects::{testing, to_native};
use practicum_core::model::Severity;

fn check(text: &str, expected: &[&str]) -> Suite {
    testing::check_diagnostics(&Clauditor, "s.eval.json", text, expected)
        .unwrap_or_else(|| panic!("{text}: no suite"))
}

/// Gives the only case as its native document.
fn case(text: &str, expected: &[&str]) -> Value {
    to_native(&check(text, expected), Path::new("/nowhere/evals"))["cases"][0].clone()
}

/// Tests each rule of a spec's top level as a row: the content, and the diagnostics about it.
#[test]
fn top_level() {
    for (text, expected) in [
        ("{}", &[] as &[&str]),
        (r#"{"skill_name": null, "description": null, "test_args": null, "output_file": null}"#, &[]),
        (r#"{"user_prompt": null, "system_prompt": null, "grading_model": null, "timeout": null}"#, &[]),
        (
            r#"{"grading_provider": null, "grade_thresholds": null, "variance": null, "trigger_tests": null}"#,
            &[],
        ),
        (
            r#"{"description": "", "test_args": "", "assertions": [], "sections": [], "grading_criteria": []}"#,
            &[],
        ),
        (r#"{"input_files": [], "output_files": []}"#, &[]),
        (r#"{"skill_name": ""}"#, &["error empty-text 1:16"]),
        (
            r#"{"skill_name": 3, "description": 3, "test_args": 3}"#,
            &["error wrong-type 1:16", "error wrong-type 1:34", "error wrong-type 1:50"],
        ),
        (r#"{"assertions": null}"#, &["error wrong-type 1:16"]),
        (r#"{"assertions": ""}"#, &["error wrong-type 1:16"]),
        (r#"{"sections": null}"#, &["error wrong-type 1:14"]),
        (r#"{"grading_criteria": null}"#, &["error wrong-type 1:22"]),
        (r#"{"grading_criteria": {}}"#, &["error wrong-type 1:22"]),
        (r#"{"input_files": null}"#, &["error wrong-type 1:17"]),
        (r#"{"input_files": "a.csv"}"#, &["error wrong-type 1:17"]),
        (r#"{"output_files": null}"#, &["error wrong-type 1:18"]),
        (r#"{"output_files": "a"}"#, &["error wrong-type 1:18"]),
        (
            r#"{"output_files": ["", "/a", "a/../b", 3]}"#,
            &[
                "error escaping-path 1:19",
                "error escaping-path 1:23",
                "error escaping-path 1:29",
                "error wrong-type 1:39",
            ],
        ),
        (r#"{"output_file": "../a"}"#, &["error escaping-path 1:17"]),
        (r#"{"output_file": ""}"#, &["error empty-text 1:17"]),
        (r#"{"output_file": ["a"]}"#, &["error wrong-type 1:17"]),
        (
            r#"{"user_prompt": " ", "system_prompt": "\n", "grading_model": ""}"#,
            &["error empty-text 1:39", "error empty-text 1:62", "error empty-text 1:17"],
        ),
        (r#"{"user_prompt": " p ", "system_prompt": "p", "grading_model": "m"}"#, &[]),
        (r#"{"user_prompt": 1}"#, &["error wrong-type 1:17"]),
        (r#"{"timeout": 1}"#, &[]),
        (r#"{"timeout": 0}"#, &["error out-of-range 1:13"]),
        (r#"{"timeout": -5}"#, &["error out-of-range 1:13"]),
        (r#"{"timeout": 700000}"#, &["warning cut-timeout 1:13"]),
        (r#"{"timeout": 99999999999999999999}"#, &["warning cut-timeout 1:13"]),
        (r#"{"timeout": -99999999999999999999}"#, &["error out-of-range 1:13"]),
        (r#"{"timeout": true}"#, &["error wrong-type 1:13"]),
        (r#"{"timeout": 1.5}"#, &["error wrong-type 1:13"]),
        (r#"{"timeout": "300"}"#, &["error wrong-type 1:13"]),
        (r#"{"transport": "cli", "harness": "codex", "grading_provider": "openai"}"#, &[]),
        (r#"{"transport": "auto", "harness": "auto", "grading_provider": "auto"}"#, &[]),
        (r#"{"transport": null}"#, &["error wrong-type 1:15"]),
        (r#"{"transport": "sdk"}"#, &["error unknown-value 1:15"]),
        (r#"{"harness": null}"#, &["error wrong-type 1:13"]),
        (r#"{"harness": "claude"}"#, &["error unknown-value 1:13"]),
        (r#"{"harness": "Codex"}"#, &["error unknown-value 1:13"]),
        (r#"{"grading_provider": ""}"#, &["error unknown-value 1:22"]),
        (r#"{"sync_tasks": true, "allow_hang_heuristic": false}"#, &[]),
        (r#"{"sync_tasks": null}"#, &["error wrong-type 1:16"]),
        (r#"{"sync_tasks": 1}"#, &["error wrong-type 1:16"]),
        (r#"{"allow_hang_heuristic": null}"#, &["error wrong-type 1:26"]),
        (r#"{"allow_hang_heuristic": "no"}"#, &["error wrong-type 1:26"]),
        (r#"{"asserts": [], "asserts ": 1}"#, &["warning unknown-key 1:2", "warning unknown-key 1:17"]),
        (
            r#"{"output_file": "a.md", "output_files": ["*.md"], "assertions": [{"id": "a", "type": "has_urls"}]}"#,
            &["notice unused-key 1:41"],
        ),
        (r#"{"output_file": "a.md"}"#, &["notice unused-key 1:17"]),
        ("[]", &["error wrong-type 1:1"]),
        ("null", &["error wrong-type 1:1"]),
    ] {
        testing::check_diagnostics(&Clauditor, "s.eval.json", text, expected);
    }
}

#[test]
fn assertions() {
    let all = [
        (r#""type": "contains", "needle": """#, json!({"contains": ""})),
        (r#""type": "not_contains", "needle": "500""#, json!({"not_contains": "500"})),
        (r#""type": "regex", "pattern": "(?i)a+""#, json!({"regex": "(?i)a+"})),
        (
            r#""type": "min_count", "pattern": "^- ", "count": 3"#,
            json!({"min_count": {"pattern": "^- ", "count": 3}}),
        ),
        (r#""type": "min_length", "length": 500"#, json!({"min_length": 500})),
        (r#""type": "max_length", "length": 0"#, json!({"max_length": 0})),
        (r#""type": "max_length", "length": -0"#, json!({"max_length": 0})),
        (r#""type": "max_length", "length": 100000000000000000000"#, json!({"max_length": i64::MAX})),
        (r#""type": "has_urls""#, json!({"has_urls": 1})),
        (r#""type": "has_entries", "count": 3"#, json!({"has_entries": 3})),
        (r#""type": "urls_reachable""#, json!({"urls_reachable": 1})),
        (
            r#""type": "has_format", "format": "email""#,
            json!({"has_format": {"format": "email", "count": 1}}),
        ),
        (
            r#""type": "has_format", "format": "uuid", "count": 2"#,
            json!({"has_format": {"format": "uuid", "count": 2}}),
        ),
    ];
    for (keys, native) in all {
        let mut found =
            case(&format!(r#"{{"assertions": [{{"id": " ", "name": "n", {keys}}}]}}"#), &[])["checks"][0]
                .clone();
        let map = found.as_object_mut().expect("a check");
        assert_eq!((map.remove("id"), map.remove("name")), (Some(json!(" ")), Some(json!("n"))), "{keys}");
        assert_eq!(found, native);
    }
    for (entry, expected) in [
        ("1", &["error wrong-type 1:17"] as &[&str]),
        (r#"{"type": "has_urls"}"#, &["error missing-key 1:17"]),
        (r#"{"id": null, "type": "has_urls"}"#, &["error wrong-type 1:24"]),
        (r#"{"id": "", "type": "has_urls"}"#, &["error wrong-type 1:24"]),
        (r#"{"id": 5, "type": "has_urls"}"#, &["error wrong-type 1:24"]),
        (r#"{"id": "a"}"#, &["error missing-key 1:17"]),
        (r#"{"id": "a", "type": "has_url"}"#, &["error unknown-type 1:37"]),
        (r#"{"id": "a", "type": null}"#, &["error unknown-type 1:37"]),
        (r#"{"id": "a", "type": "has_urls", "name": null}"#, &["error wrong-type 1:57"]),
        (r#"{"id": "a", "type": "contains"}"#, &["error missing-key 1:17"]),
        (r#"{"id": "a", "type": "contains", "needle": null}"#, &["error missing-key 1:17"]),
        (r#"{"id": "a", "type": "contains", "needle": 5}"#, &["error wrong-type 1:59"]),
        (
            r#"{"id": "a", "type": "contains", "value": "x"}"#,
            &["error unknown-key 1:49", "error missing-key 1:17"],
        ),
        (r#"{"id": "a", "type": "contains", "needle": "x", "flags": "i"}"#, &["error unknown-key 1:64"]),
        (r#"{"id": "a", "type": "regex", "pattern": "("}"#, &["error invalid-pattern 1:57"]),
        (r#"{"id": "a", "type": "min_count", "pattern": "[", "count": 1}"#, &["error invalid-pattern 1:61"]),
        (r#"{"id": "a", "type": "min_count", "pattern": "a"}"#, &["error missing-key 1:17"]),
        (r#"{"id": "a", "type": "min_length", "length": "500"}"#, &["error wrong-type 1:61"]),
        (r#"{"id": "a", "type": "min_length", "length": 5.0}"#, &["error wrong-type 1:61"]),
        (r#"{"id": "a", "type": "has_urls", "count": true}"#, &["error wrong-type 1:58"]),
        (r#"{"id": "a", "type": "has_urls", "count": null}"#, &["error wrong-type 1:58"]),
        (r#"{"id": "a", "type": "has_urls", "count": 0}"#, &["warning cannot-fail 1:17"]),
        (r#"{"id": "a", "type": "has_format", "format": "EMAIL"}"#, &["error unknown-format 1:61"]),
        (r#"{"id": "a", "type": "has_format", "format": "^\\d{5}$"}"#, &["error unknown-format 1:61"]),
        (r#"{"id": "a", "type": "has_format", "count": 1}"#, &["error missing-key 1:17"]),
    ] {
        check(&format!(r#"{{"assertions": [{entry}]}}"#), expected);
    }
}

#[test]
fn an_unknown_key_of_an_assertion_names_the_one_that_was_meant() {
    for (kind, key, meant) in [
        ("contains", "value", "needle"),
        ("regex", "value", "pattern"),
        ("has_urls", "value", "count"),
        ("has_entries", "minimum", "count"),
        ("max_length", "max", "length"),
        ("not_contains", "pattern", "needle"),
        ("min_count", "patern", "pattern"),
    ] {
        let text = format!(r#"{{"assertions": [{{"id": "a", "type": "{kind}", "{key}": 1}}]}}"#);
        let source = testing::parse_source("/nowhere/s.eval.json".into(), &text);
        let (_, diagnostics) =
            testing::lower_source(&Clauditor, &source, &testing::location_in(Path::new("/nowhere")));
        let help =
            diagnostics.iter().find(|said| said.code == "unknown-key").and_then(|said| said.help.clone());
        assert_eq!(help, Some(format!("did you mean \"{meant}\"?")), "{text}");
    }
}

#[test]
fn sections() {
    let tier =
        |inside: &str| format!(r#"{{"sections": [{{"name": "S", "tiers": [{{"label": "d", {inside}}}]}}]}}"#);
    let field = |inside: &str| tier(&format!(r#""fields": [{{"id": "f", "name": "n", {inside}}}]"#));
    for (text, expected) in [
        (r#"{"sections": [{"name": "S", "tiers": []}]}"#.to_owned(), &["warning no-checks 1:15"] as &[&str]),
        (tier(r#""description": "x", "min_entries": 0, "max_entries": 0, "fields": []"#), &[]),
        (tier(r#""description": null, "max_entries": null"#), &[]),
        (field(r#""required": null, "format": null"#), &[]),
        (field(r#""required": false, "format": "phone_us""#), &[]),
        (field(r#""format": "^\\d{5}$""#), &[]),
        (field(r#""format": "phone_uss""#), &["notice unregistered-format 1:100"]),
        (field(r#""note": 1"#), &["notice unknown-key 1:90"]),
        (r#"{"sections": ["x"]}"#.to_owned(), &["error wrong-type 1:15"]),
        (
            r#"{"sections": [{"tiers": []}]}"#.to_owned(),
            &["error missing-key 1:15", "warning no-checks 1:15"],
        ),
        (r#"{"sections": [{"name": "S"}]}"#.to_owned(), &["error missing-key 1:15"]),
        (r#"{"sections": [{"name": "S", "tiers": null}]}"#.to_owned(), &["error wrong-type 1:38"]),
        (r#"{"sections": [{"name": "S", "fields": []}]}"#.to_owned(), &["error missing-key 1:39"]),
        (r#"{"sections": [{"name": "S", "tiers": [{}]}]}"#.to_owned(), &["error missing-key 1:39"]),
        (tier(r#""min_entries": -1"#), &["error out-of-range 1:69"]),
        (tier(r#""min_entries": null"#), &["error wrong-type 1:69"]),
        (tier(r#""min_entries": true"#), &["error wrong-type 1:69"]),
        (tier(r#""max_entries": -1"#), &["error out-of-range 1:69"]),
        (tier(r#""max_entries": 1.5"#), &["error wrong-type 1:69"]),
        (tier(r#""fields": null"#), &["error wrong-type 1:64"]),
        (tier(r#""fields": ["x"]"#), &["error wrong-type 1:65"]),
        (tier(r#""fields": [{"name": "n"}]"#), &["error missing-key 1:65"]),
        (tier(r#""fields": [{"id": "f"}]"#), &["error missing-key 1:65"]),
        (field(r#""required": "yes""#), &["error wrong-type 1:102"]),
        (field(r#""format": """#), &["error empty-text 1:100"]),
        (field(r#""format": "(""#), &["error invalid-pattern 1:100"]),
        (field(r#""format": 5"#), &["error wrong-type 1:100"]),
        (field(r#""pattern": "x""#), &["error unknown-key 1:101"]),
    ] {
        testing::check_diagnostics(&Clauditor, "s.eval.json", &text, expected);
    }
}

#[test]
fn grading() {
    for (text, expected) in [
        (r#"{"grading_criteria": [{"id": "c", "criterion": "Is it so?"}]}"#, &[] as &[&str]),
        (
            r#"{"grading_criteria": [{"id": "c", "criterion": "x", "weight": 2}]}"#,
            &["warning unknown-key 1:53"],
        ),
        (r#"{"grading_criteria": ["x", null]}"#, &["error wrong-type 1:23", "error wrong-type 1:28"]),
        (r#"{"grading_criteria": [{"criterion": "x"}]}"#, &["error missing-key 1:23"]),
        (r#"{"grading_criteria": [{"id": 5, "criterion": "x"}]}"#, &["error wrong-type 1:30"]),
        (r#"{"grading_criteria": [{"id": "c"}]}"#, &["error missing-key 1:23"]),
        (r#"{"grading_criteria": [{"id": "c", "criterion": ""}]}"#, &["error empty-text 1:48"]),
        (r#"{"grading_criteria": [{"id": "c", "criterion": 5}]}"#, &["error wrong-type 1:48"]),
        (r#"{"grade_thresholds": {}}"#, &[]),
        (
            r#"{"grade_thresholds": {"min_pass_rate": null, "min_mean_score": 1}}"#,
            &["notice unused-key 1:22"],
        ),
        (r#"{"grade_thresholds": {"typo": 1}}"#, &["notice unknown-key 1:23", "notice unused-key 1:22"]),
        (r#"{"grade_thresholds": {"min_pass_rate": 1.1}}"#, &["error out-of-range 1:40"]),
        (r#"{"grade_thresholds": {"min_mean_score": -0.1}}"#, &["error out-of-range 1:41"]),
        (r#"{"grade_thresholds": {"min_pass_rate": true}}"#, &["error wrong-type 1:40"]),
        (r#"{"grade_thresholds": 0.7}"#, &["error wrong-type 1:22"]),
        (r#"{"variance": {}}"#, &[]),
        (r#"{"variance": {"n_runs": 0}}"#, &["error out-of-range 1:25"]),
        (r#"{"variance": {"n_runs": 1001}}"#, &["error out-of-range 1:25"]),
        (r#"{"variance": {"n_runs": 3.0}}"#, &["error wrong-type 1:25"]),
        (r#"{"variance": {"n_runs": null}}"#, &["error wrong-type 1:25"]),
        (r#"{"variance": {"min_stability": 1.5}}"#, &["error out-of-range 1:32"]),
        (r#"{"variance": {"min_stability": null}}"#, &["error wrong-type 1:32"]),
        (r#"{"variance": 5}"#, &["error wrong-type 1:14"]),
        (r#"{"trigger_tests": {}}"#, &[]),
        (r#"{"trigger_tests": {"should_trigger": null, "should_not_trigger": ["q"]}}"#, &[]),
        (
            r#"{"trigger_tests": {"should_trigger": ["q"], "why": 1}, "test_args": "a"}"#,
            &["notice unknown-key 1:45", "notice unused-key 1:69"],
        ),
        (r#"{"trigger_tests": {"should_trigger": "q"}}"#, &["error wrong-type 1:38"]),
        (
            r#"{"trigger_tests": {"should_trigger": [3, " "]}}"#,
            &["error wrong-type 1:39", "error empty-text 1:42"],
        ),
        (r#"{"trigger_tests": ["q"]}"#, &["error wrong-type 1:19"]),
    ] {
        testing::check_diagnostics(&Clauditor, "s.eval.json", text, expected);
    }
}

#[test]
fn ids_are_one_set_across_assertions_fields_and_criteria() {
    let spec = |assertion: &str, field: &str, criterion: &str| {
        format!(
            r#"{{"assertions": [{{"id": "{assertion}", "type": "has_urls"}}],
"sections": [{{"name": "S", "tiers": [{{"label": "d", "fields": [{{"id": "{field}", "name": "n"}}]}}]}}],
"grading_criteria": [{{"id": "{criterion}", "criterion": "x"}}]}}"#
        )
    };
    check(&spec("x", "y", "z"), &[]);
    check(&spec("x", "x", "z"), &["error duplicate-id 2:71"]);
    check(&spec("x", "y", "x"), &["error duplicate-id 3:29"]);
    check(&spec("x", "y", "y"), &["error duplicate-id 3:29"]);
    // The check for the sections has an id too. Authors of entries need not know it.
    let suite = check(&spec("sections", "sections-2", "z"), &[]);
    let ids: Vec<&str> = suite.cases[0].checks.iter().map(|check| check.id.as_str()).collect();
    assert_eq!(ids, ["sections", "sections-3", "z"]);
}

/// Tests a spec in a folder with `a.csv`, `b/a.csv`, `in.csv` → `a.csv`, `out.csv` → `../o.csv`, and a folder.
#[test]
fn inputs() {
    let above = tempfile::tempdir().expect("a folder");
    let folder = above.path().join("spec");
    std::fs::create_dir_all(folder.join("b")).expect("create");
    for path in ["a.csv", "A.csv", "b/a.csv", "../o.csv"] {
        std::fs::write(folder.join(path), "1").expect("write");
    }
    for (link, to) in [("in.csv", "a.csv"), ("out.csv", "../o.csv"), ("broken.csv", "nowhere")] {
        std::os::unix::fs::symlink(to, folder.join(link)).expect("link");
    }
    for (inputs, outputs, expected) in [
        (r#""a.csv", "A.csv""#, "", &[] as &[&str]),
        (r#""b/a.csv""#, "", &[]),
        (r#""./b/../a.csv""#, "", &[]),
        (r#""in.csv""#, r#""in.csv""#, &[]),
        (r#""a.csv""#, r#""*.csv""#, &[]),
        (r#""a.csv", "b/a.csv""#, "", &["duplicate-input"]),
        (r#""in.csv", "a.csv""#, "", &["duplicate-input"]),
        (r#""a.csv""#, r#""a.csv""#, &["output-is-input"]),
        (r#""a.csv""#, r#""out/a.csv""#, &["output-is-input"]),
        (r#""in.csv""#, r#""a.csv""#, &["output-is-input"]),
        // A missing file is no error of the spec: only the case that needs it cannot run.
        (r#""*.csv""#, "", &[]),
        (r#""nowhere/../a.csv""#, "", &[]),
        (r#""broken.csv""#, "", &[]),
        (r#""../nowhere.csv""#, "", &["invalid-input-file"]),
        (r#""/etc/hostname""#, "", &["invalid-input-file"]),
        (r#""../o.csv""#, "", &["invalid-input-file"]),
        (r#""out.csv""#, "", &["invalid-input-file"]),
        (r#""b""#, "", &["invalid-input-file"]),
        (r#"".""#, "", &["invalid-input-file"]),
        (r#""", 5, null"#, "", &["invalid-input-file"; 3]),
    ] {
        let text = format!(r#"{{"input_files": [{inputs}], "output_files": [{outputs}]}}"#);
        let source = testing::parse_source(folder.join("s.eval.json"), &text);
        let (_, diagnostics) = testing::lower_source(&Clauditor, &source, &testing::location_in(&folder));
        let errors = diagnostics.iter().filter(|said| said.severity == Severity::Error);
        assert_eq!(errors.map(|said| said.code).collect::<Vec<_>>(), expected, "{text}");
    }
}

#[test]
fn a_spec_is_named_after_its_file_or_its_folder() {
    for (file, name) in [
        ("s.eval.json", "s"),
        ("a.b.eval.json", "a.b"),
        ("SKILL.eval.json", "evals"),
        ("eval.json", "evals"),
        (".eval.json", ".eval"),
        ("plain.json", "plain"),
    ] {
        let suite = testing::check_diagnostics(&Clauditor, file, "{}", &[]).expect("a suite");
        assert_eq!((suite.name.as_str(), suite.cases[0].id.as_str()), (name, name), "{file}");
        let suite =
            testing::check_diagnostics(&Clauditor, file, r#"{"skill_name": "x"}"#, &[]).expect("a suite");
        assert_eq!(suite.skills[0].name, "x", "{file}");
    }
}

#[test]
fn the_skill_is_found_from_its_spec() {
    for (files, spec, expected) in [
        (&["c/s.md"] as &[&str], "c/s.eval.json", Some("c/s.md")),
        (&["s/SKILL.md", "s/s.md"], "s/SKILL.eval.json", Some("s/SKILL.md")),
        (&["s/SKILL.md"], "s/assets/s.eval.json", Some("s/SKILL.md")),
        (&["k/s/SKILL.md"], "k/s.eval.json", Some("k/s/SKILL.md")),
        (&[".claude/skills/s/SKILL.md"], "evals/s.eval.json", Some(".claude/skills/s/SKILL.md")),
        (&[".claude/commands/s.md"], "evals/s.eval.json", Some(".claude/commands/s.md")),
        (&["skills/s/SKILL.md"], "evals/deep/s.eval.json", Some("skills/s/SKILL.md")),
        (&["c/other.md"], "c/s.eval.json", None),
    ] {
        let project = tempfile::tempdir().expect("a folder");
        for file in files.iter().chain([&spec]) {
            let path = project.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
            std::fs::write(path, "").expect("write");
        }
        let source = testing::parse_source(project.path().join(spec), "{}");
        let (suite, _) = testing::lower_source(&Clauditor, &source, &testing::location_in(project.path()));
        let found = suite.expect("a suite").skills[0].path.clone();
        assert_eq!(found, expected.map(|path| project.path().join(path)), "{spec}");
    }
}

/// Tests what a spec means beyond its entries.
#[test]
fn defaults_gates_and_queries() {
    let judged = r#""grading_criteria": [{"id": "c", "criterion": "x"}]"#;
    let gates = |text: &str| {
        let gates = check(text, &[]).gates;
        gates.iter().map(|gate| format!("{} {}", gate.name.name(), gate.threshold.get())).collect::<Vec<_>>()
    };
    assert_eq!(gates("{}"), ["all_cases_pass 1"]);
    assert_eq!(
        gates(&format!("{{{judged}}}")),
        ["all_cases_pass 1", "criteria_pass_rate 0.7", "mean_score 0.5"]
    );
    assert_eq!(
        gates(&format!(r#"{{{judged}, "grade_thresholds": {{"min_mean_score": 0.9}}, "variance": {{}}}}"#)),
        ["stability 0.8", "criteria_pass_rate 0.7", "mean_score 0.9"]
    );
    assert_eq!(check(r#"{"variance": {"min_stability": 1}}"#, &[]).run_policy.repeat, Some(5));
    let suite = check("{}", &[]);
    assert_eq!(
        (suite.run_policy.repeat, suite.run_policy.timeout, suite.format_defaults.timeout),
        (None, None, Some(DEFAULT_TIMEOUT))
    );
    let asked = r#"{"skill_name": "trigger-go", "trigger_tests": {"should_trigger": ["Go!"], "should_not_trigger": ["Go"]}}"#;
    let ids = |text: &str| check(text, &[]).cases.into_iter().map(|case| case.id).collect::<Vec<_>>();
    assert_eq!(ids(asked), ["trigger-go", "trigger-go-2"]);
    let both = asked.replacen('{', r#"{"assertions": [{"id": "a", "type": "has_urls"}], "#, 1);
    assert_eq!(ids(&both), ["trigger-go", "trigger-go-2", "trigger-go-3"]);
    let auto = check(r#"{"harness": "auto", "transport": "auto", "grading_provider": "auto"}"#, &[]);
    assert_eq!((auto.run_policy, auto.judge_policy), (suite.run_policy, suite.judge_policy));
}
