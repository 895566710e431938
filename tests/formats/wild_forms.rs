//! The forms in which people write evals.json and trigger sets: each loads with all its cases, prompts, polarities and
//! checks, and what cannot be honoured is told.

use serde_json::{Value, json};

use crate::common::Project;

const SKILL: &str = "---\nname: dock\ndescription: Use when a report is wanted.\n---\n\nWrite it.\n";

/// A case after reading: its prompts, whether it says something of activation, and its number of other checks.
#[derive(Debug, PartialEq)]
struct ReadCase(Vec<String>, Option<String>, usize);

fn case(prompt: &str, polarity: Option<&str>, checks: usize) -> ReadCase {
    ReadCase(vec![prompt.to_owned()], polarity.map(str::to_owned), checks)
}

fn project(name: &str, text: &str) -> (Project, String) {
    let path = format!("dock/evals/{name}");
    (Project::new(&[("dock/SKILL.md", SKILL), (&path, text)]), path)
}

/// Reads a file through `convert --to native`.
fn read(name: &str, text: &str) -> (Vec<ReadCase>, String) {
    let (project, path) = project(name, text);
    let ran = project.run(&["convert", &path, "--to", "native", "--json"]).exits(0);
    let document = ran.json()["files"][0]["document"].clone();
    let label = |activation: &Value| {
        activation.as_str().or(activation["expect"].as_str()).unwrap_or_default().to_owned()
    };
    let read = |case: &Value| {
        let texts = |node: &Value| node.as_str().unwrap_or_default().to_owned();
        let prompts = match case["prompt"].as_array() {
            Some(turns) => turns.iter().map(texts).collect(),
            None => vec![texts(&case["prompt"])],
        };
        let checks = case["checks"].as_array().cloned().unwrap_or_default();
        let (activation, others): (Vec<Value>, Vec<Value>) =
            checks.into_iter().partition(|check| check.get("activation").is_some());
        let own = case.get("activation").map(label);
        let polarity = own.or_else(|| activation.first().map(|check| label(&check["activation"])));
        ReadCase(prompts, polarity, others.len())
    };
    let cases = document["cases"].as_array().expect("cases").iter().map(read).collect();
    let checked = project.run(&["check", &path, "--json"]).stdout;
    (cases, checked)
}

#[test]
fn every_container_is_read() {
    let item = r#"{"id": 1, "prompt": "p", "assertions": ["a", "b"]}"#;
    for (name, text) in [
        ("evals.json", format!(r#"{{"skill_name": "dock", "evals": [{item}]}}"#)),
        ("evals.json", format!("[{item}]")),
        ("evals.json", format!(r#"{{"skill": "dock", "version": 2, "cases": [{item}]}}"#)),
        ("evals.json", format!(r#"{{"test_cases": [{item}]}}"#)),
        ("more.json", format!(r#"{{"output_cases": [{item}]}}"#)),
        ("evals.jsonl", format!("{item}\n")),
        ("evals.json", item.to_owned()),
        ("evals.yaml", "evals:\n  - { id: 1, prompt: p, assertions: [a, b] }\n".to_owned()),
        (
            "evals.json",
            r#"{"expects": [{"query": "p", "checks": ["a", "b"]}], "skills": ["dock"]}"#.to_owned(),
        ),
    ] {
        assert_eq!(read(name, &text).0, [case("p", None, 2)], "{name} {text}");
    }
    let several = r#"{"skill": "dock", "trigger_cases": [{"id": "a", "expect": "use", "prompt": "p"}],
        "boundary_cases": [{"id": "a", "expect": "no-use", "prompt": "q"}]}"#;
    assert_eq!(read("evals.json", several).0, [case("p", Some("must"), 0), case("q", Some("must_not"), 0)]);
    // A second list beside the evals, with the same ids.
    let beside = r#"{"evals": [{"id": 1, "prompt": "p", "assertions": ["a"]}],
        "pressure_tests": [{"id": 1, "prompt": "q", "assertions": ["a"], "expected_behavior": "b"}]}"#;
    assert_eq!(read("evals.json", beside).0, [case("p", None, 1), case("q", None, 2)]);
}

#[test]
fn every_prompt_key_is_read_and_ids_are_made() {
    for key in ["prompt", "query", "question", "input", "user_request", "user_input", "user_prompt", "task"] {
        let text = json!([{key: "p", "name": "n", "expected_output": "o"}]).to_string();
        assert_eq!(read("evals.json", &text).0, [case("p", None, 1)], "{key}");
    }
    let text = json!({"evals": [{"input": {"query": "p", "locale": "en"}, "expected_output": "o"},
        {"input": {"ticket": "T-1", "size": 3}, "expected_output": "o"}]});
    let (cases, told) = read("evals.json", &text.to_string());
    assert_eq!(cases, [case("p", None, 1), case("ticket: T-1\nsize: 3", None, 1)]);
    assert!(told.contains("prompt-from-mapping") && told.contains("not locale"), "{told}");
}

#[test]
fn statements_under_every_key_become_checks() {
    for (keys, checks) in [
        (json!({"expected_behavior": "b"}), 1),
        (json!({"expected_behavior": ["b", "c"], "ground_truth": "t"}), 2),
        (json!({"ground_truth": "t"}), 1),
        (json!({"description": "It does so."}), 1),
        (json!({"must_include": ["a"], "must_not_include": ["b", "c"]}), 3),
        (json!({"anti_expectations": ["Does not guess"], "expectations": ["e"]}), 2),
        (json!({"quality_criteria": {"short": "It is short", "clear": "It is clear"}}), 2),
        (json!({"expected": {"verdict": "SAFE", "must_include": ["a", "b"], "mode": null}}), 3),
        (json!({"expected_calls": [{"command": "x list", "forbidden_flags": ["-f"]}]}), 1),
        (
            json!({"anti_patterns": [{"pattern": "rm", "reason": "r"}], "assertions": [{"uses_tags": true}]}),
            2,
        ),
        (json!({"failure_conditions": ["invents facts"], "expected_output_characteristics": ["short"]}), 2),
    ] {
        let mut eval = json!({"id": "a", "prompt": "p"});
        for (key, value) in keys.as_object().expect("keys") {
            eval[key] = value.clone();
        }
        let text = json!({"evals": [eval]}).to_string();
        assert_eq!(read("evals.json", &text).0, [case("p", None, checks)], "{text}");
    }
}

/// A prohibition that is judged as if it were wanted would be green where it must be red.
#[test]
fn negatives_and_operands_are_not_lost_in_words() {
    let text = json!({"evals": [{"id": 1, "prompt": "p", "must_not": ["invent numbers", "Does not guess"],
        "assertions": [{"type": "diff_scope", "max_files_touched": 3},
            {"check": "tool_called", "tool": "Bash", "signal": "git fetch is called first"}]}]});
    let (project, path) = project("evals.json", &text.to_string());
    let native = project.run(&["convert", &path, "--to", "native"]).exits(0).stdout;
    for part in [
        "This is not so, and does not happen: invent numbers",
        "judge: Does not guess",
        "max_files_touched 3",
        "git fetch is called first (tool_called",
        "Bash",
    ] {
        assert!(native.contains(part), "{part}: {native}");
    }
}

#[test]
fn negative_controls_are_negative() {
    for (keys, polarity) in [
        (json!({"should_trigger": false}), "must_not"),
        (json!({"expected_skill": null}), "must_not"),
        (json!({"expected_skill": "dock"}), "must"),
        (json!({"expected_activation": "none"}), "must_not"),
        (json!({"expected_activation": false}), "must_not"),
        (json!({"skill_should_trigger": false}), "must_not"),
        (json!({"expected_skill": "dock", "acceptable_skills": ["ship"]}), "must"),
    ] {
        let mut item =
            json!({"id": "a", "question": "p", "expected_behavior": ["b"], "expected_script": null});
        for (key, value) in keys.as_object().expect("keys") {
            item[key] = value.clone();
        }
        let text = json!([item]).to_string();
        assert_eq!(read("evals.json", &text).0, [case("p", Some(polarity), 1)], "{text}");
    }
}

#[test]
fn trigger_sets_in_every_container() {
    let (yes, no) = (case("p", Some("must"), 0), case("q", Some("must_not"), 0));
    let items = json!([{"query": "p", "should_trigger": true}, {"query": "q", "should_trigger": false}]);
    let expected = [yes, no];
    for (name, text) in [
        ("trigger-eval.json", items.clone()),
        ("trigger-eval.json", json!({"cases": items})),
        ("eval_set.json", json!({"queries": items, "skill_name": "dock"})),
        ("triggers.json", json!({"should_trigger": ["p"], "should_not_trigger": [{"prompt": "q"}]})),
        (
            "trigger-cases.json",
            json!({"cases": [{"prompt": "p", "expected_trigger": true},
            {"prompt": "q", "expected_trigger": false}]}),
        ),
        ("set.json", json!([{"input": "p", "expect": "trigger"}, {"input": "q", "expect": "no-trigger"}])),
    ] {
        assert_eq!(read(name, &text.to_string()).0, expected, "{name} {text}");
    }
}

#[test]
fn a_router_set_says_which_of_many_skills_answers() {
    let text = json!({"version": 1, "cases": [
        {"id": "a", "skill": "dock", "prompt": "p", "accept": ["dock"]},
        {"id": "b", "skill": "ship", "prompt": "q", "accept": ["ship", "NONE"]},
        {"id": "c", "skill": null, "prompt": "r", "accept": []}]});
    let (project, path) = project("routing.json", &text.to_string());
    project.write("ship/SKILL.md", &SKILL.replace("dock", "ship"));
    let native = project.run(&["convert", &path, "--to", "native", "--json"]).exits(0).json();
    let cases = native["files"][0]["document"]["cases"].as_array().expect("cases").clone();
    let routed = |case: &Value| case["checks"][0]["activation"].clone();
    assert_eq!(routed(&cases[0])["expect"], "must", "{native:#}");
    assert_eq!(routed(&cases[0])["skills"], json!(["dock"]), "{native:#}");
    // The named skill or none may answer, but no other.
    assert_eq!(routed(&cases[1])["expect"], "must_not", "{native:#}");
    assert_eq!(routed(&cases[1])["skills"], json!(["dock"]), "{native:#}");
    assert_eq!(cases[2]["activation"], "must_not", "{native:#}");
}

#[test]
fn a_case_that_this_version_cannot_run_loads_and_is_not_scored() {
    let assertion = json!([{"type": "contains", "value": "done"}]);
    for (keys, why) in [
        (json!({"prompt": "Do it", "responder": {"type": "human"}}), "the responder \"human\""),
        (json!({"prompt": "Do it", "turns": ["yes"], "responder": {"type": "llm"}}), "both answer the agent"),
        (json!({"prompt": "Do it", "turns": [{"prompt": "yes", "deliver_when": "later"}]}), "deliver_when"),
        (json!({"prompt": " "}), "its prompt is blank"),
    ] {
        let mut eval = json!({"id": "a", "assertions": assertion});
        for (key, value) in keys.as_object().expect("keys") {
            eval[key] = value.clone();
        }
        let (project, path) = project("evals.json", &json!({"evals": [eval]}).to_string());
        project.write(
            "practicum.toml",
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"-c\", \"touch started; echo done\"]\n",
        );
        let checked = project.run(&["check", &path]).exits(0).stdout;
        assert!(checked.contains("this case is not run"), "{checked}");
        let ran = project.run(&["run", &path, "--agent", "own", "--arm", "with"]).exits(3);
        assert!(ran.stdout.contains(why) || ran.stderr.contains(why), "{why}: {}{}", ran.stdout, ran.stderr);
    }
    let turns =
        json!({"evals": [{"id": "a", "prompt": "p", "turns": ["q", {"prompt": "r"}], "assertions": ["a"]}]});
    let expected = ReadCase(vec!["p".to_owned(), "q".to_owned(), "r".to_owned()], None, 1);
    assert_eq!(read("evals.json", &turns.to_string()).0, [expected]);
}

#[test]
fn files_with_their_content_lie_in_the_workspace() {
    for files in [
        json!({"in/a.txt": "one two"}),
        json!([{"path": "in/a.txt", "content": "one two"}]),
        json!([{"dest": "in/a.txt", "src": "files/a.txt"}]),
    ] {
        let assertion = json!([{"type": "contains", "value": "one two"}]);
        let text = json!({"evals": [{"id": "a", "prompt": "p", "files": files, "assertions": assertion}]});
        let (project, path) = project("evals.json", &text.to_string());
        project.write("dock/evals/files/a.txt", "one two");
        project.write(
            "practicum.toml",
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"-c\", \"cat in/a.txt\"]\n",
        );
        project.run(&["run", &path, "--agent", "own", "--arm", "with"]).exits(0);
    }
    let text = json!({"evals": [{"id": "a", "prompt": "p", "files": {"../a": "x"}, "assertions": ["a"]}]});
    let (project, path) = project("evals.json", &text.to_string());
    let checked = project.run(&["check", &path]).exits(2).stdout;
    assert!(checked.contains("escaping-path"), "{checked}");
}

#[test]
fn setup_that_is_not_done_is_a_warning() {
    for key in ["fixture", "preconditions", "scaffold", "human_script", "setup", "codebase"] {
        let text = json!({"evals": [{"id": "a", "prompt": "p", "assertions": ["a"], key: "x"}]}).to_string();
        let (project, path) = project("evals.json", &text);
        let checked = project.run(&["check", &path]).exits(0).stdout;
        assert!(checked.contains("warning") && checked.contains(&format!("\"{key}\"")), "{key}: {checked}");
    }
}

#[test]
fn an_eval_that_expects_nothing_is_not_green() {
    let text = json!({"evals": [{"id": "a", "prompt": "p", "assertions": [{"type": "contains", "value": "done"}]},
        {"id": "b", "prompt": "q"}]});
    let (project, path) = project("evals.json", &text.to_string());
    project.write("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n");
    let checked = project.run(&["check", &path]).exits(0).stdout;
    assert!(checked.contains("this eval expects nothing"), "{checked}");
    project.run(&["run", &path, "--agent", "own", "--arm", "with"]).exits(3);
}

#[test]
fn the_reasons_for_a_format_are_told() {
    let evals = r#"{"skill_name": "dock", "evals": [{"id": "a", "prompt": "p", "expectations": ["e"]}]}"#;
    let (project, path) = project("evals.json", evals);
    let told = project.run(&["check", &path, "--explain-format"]).exits(0).stdout;
    for part in
        ["read as skill-creator", "it lies in the evals folder of a skill", "their ids are texts", "bmad"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("ambiguous-format"), "{told}");
    project.write("checks/evals.json", evals);
    let told = project.run(&["check", "checks/evals.json", "--skill", "dock"]).exits(0).stdout;
    assert!(told.contains("warning[ambiguous-format]") && told.contains("it could also be bmad"), "{told}");
    let json = project.run(&["check", &path, "--explain-format", "--json"]).exits(0).json();
    assert_eq!(json["files"][0]["formats"][0]["name"], "skill-creator", "{json}");
}

#[test]
fn the_eval_formats_are_listed_with_their_rules() {
    let (project, _) = project("evals.json", "[]");
    let listed = project.run(&["formats"]).exits(0).stdout;
    for name in practicum::dialects::dialect_names() {
        assert!(
            listed.lines().any(|line| line.starts_with(name) && line.len() > name.len() + 10),
            "{listed}"
        );
    }
    let text = project.run(&["formats", "--text"]).exits(0).stdout;
    assert!(text.contains("date_iso") && !listed.contains("date_iso"), "{text}");
}

#[test]
fn a_list_of_negative_controls_is_about_the_skill_that_the_user_names() {
    let list =
        r#"[{"input": "How late is it?", "expected_skill": null}, {"input": "Hi", "expected_skill": null}]"#;
    let project = Project::new(&[("dock/SKILL.md", SKILL), ("suites/none.json", list)]);
    let refused = project.run(&["check", "suites/none.json"]).exits(2);
    assert!(refused.stderr.contains("--skill") || refused.stdout.contains("--skill"), "{}", refused.stderr);
    project.run(&["check", "suites/none.json", "--skill", "dock"]).exits(0);
    let planned = project.run(&[
        "run",
        "suites/none.json",
        "--skill",
        "dock",
        "--dry-run",
        "--json",
        "--agent",
        "builtin",
    ]);
    let planned = planned.exits(0).stdout;
    assert!(planned.contains("must_not") || planned.contains("how-late"), "{planned}");
}

#[test]
fn files_with_a_case_in_each_line_are_found_whatever_their_ending() {
    let line = r#"{"prompt": "Write the report.", "assertions": ["It is short."]}"#;
    let project = Project::new(&[
        ("dock/SKILL.md", SKILL),
        ("dock/evals/one.jsonl", line),
        ("dock/evals/two.ndjson", line),
        ("dock/evals/data.ndjson", r#"{"row": 1}"#),
    ]);
    let found = project.run(&["check", "."]).exits(0);
    let told = format!("{}{}", found.stdout, found.stderr);
    assert!(told.contains("one.jsonl") && told.contains("two.ndjson"), "{told}");
}
