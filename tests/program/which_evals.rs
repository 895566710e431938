//! Which files are evals, of which skill, and which suites they make: seen from outside.

use crate::common::Project;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: s\ndescription: Does s.\n---\nDo it.\n";
const TRIGGERS: &str = r#"[{"query": "q", "should_trigger": true}]"#;
const EVALS: &str = r#"{"evals": [{"id": "A", "prompt": "p", "expectations": ["e"], "files": ["files"]}]}"#;

fn suites(project: &Project, args: &[&str]) -> Vec<(String, Value)> {
    let listed = project.run(&[&["list", "--json"], args].concat()).exits(0).json();
    let suites = listed["suites"].as_array().expect("suites").iter();
    suites
        .map(|suite| (suite["name"].as_str().unwrap_or_default().to_owned(), suite["skills"].clone()))
        .collect()
}

#[test]
fn evals_elsewhere_are_about_the_skill_that_is_named_with_them() {
    let project = Project::new(&[
        ("skills/s/SKILL.md", SKILL),
        ("skills/s/evals/evals.json", EVALS),
        ("other/triggers.json", TRIGGERS),
        ("other/set.json", TRIGGERS),
    ]);
    for args in [["skills/s", "--evals", "other"], ["other", "--skill", "skills/s"]] {
        let expected = ["s-set", "s-triggers"].map(|name| (name.to_owned(), json!(["s"])));
        assert_eq!(suites(&project, &args), expected, "{args:?}");
        let checked = project.run(&[&["check", "--json"], &args[..]].concat()).exits(0).json();
        let problems = checked["files"].as_array().expect("files").iter();
        let codes: Vec<&Value> = problems
            .flat_map(|file| file["problems"].as_array().expect("problems"))
            .map(|p| &p["code"])
            .collect();
        assert!(!codes.contains(&&json!("skill-not-found")), "{args:?}: {codes:?}");
    }
}

#[test]
fn what_evals_hand_out_is_no_exam() {
    let project = Project::new(&[
        ("skills/s/SKILL.md", SKILL),
        ("evals/s/evals.json", EVALS),
        ("evals/s/files/like-an-eval.yaml", "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\n"),
        ("evals/s/setup/.claude/skills/other/evals/evals.json", EVALS),
    ]);
    let expected = [("s".to_owned(), json!(["s"]))];
    assert_eq!(suites(&project, &["skills/s"]), expected);
    assert_eq!(suites(&project, &["."]), expected);
    // Whoever names one means it.
    assert_eq!(suites(&project, &["evals/s/files/like-an-eval.yaml"]).len(), 1);
}

#[test]
fn suites_of_one_name_do_not_mix() {
    let suite = |word: &str| {
        format!(
            "practicum: 1\nworkspace: empty\ncases:\n- {{id: x, prompt: p, checks: [{{contains: {word}}}]}}\n"
        )
    };
    let project = Project::new(&[
        ("practicum.toml", "[agents.own]\ncommand = [\"/bin/echo\", \"good\"]\n"),
        ("a/e.practicum.yaml", &suite("good")),
        ("b/e.practicum.yaml", &suite("bad")),
    ]);
    let twice = ["--agent", "own", "--agent", "own", "--arm", "with", "--arm", "with"];
    let summary = project.run(&[&["run", ".", "--json"], &twice[..]].concat()).exits(1).json();
    let message = |summary: &Value| -> Vec<Value> {
        let cases = summary["cases"].as_array().expect("cases").iter();
        cases.map(|case| json!([case["suite"], case["passed"], case["failed"]])).collect()
    };
    let expected = [json!(["a/e", 1, 0]), json!(["b/e", 0, 1])];
    assert_eq!(message(&summary), expected);
    let again = project.run(&["grade", "latest", "--json"]).exits(1);
    assert_eq!(message(&again.json()["summary"]), expected);
    assert!(!again.stderr.contains("no longer"), "{}", again.stderr);
}
