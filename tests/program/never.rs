//! What must never happen when trials are graded. Each was found in a tool that people use.
//!
//! Others of the kind stand beside the code that they are about: time-outs and failed logins in
//! `score/activation.rs`, ids in `model/trial.rs`, secrets in `tests/supervision.rs`, surviving
//! processes in `tests/real_claude.rs`.

use crate::common::{Project, Ran};
use serde_json::{Value, json};

/// One case of every kind of check, each of which work alone can pass.
const EVALS: &str = "\
practicum: 1
workspace: empty
run: { agents: [idle] }
cases:
  - { id: text, prompt: p, checks: [{ contains: Ahoy }] }
  - { id: file, prompt: p, checks: [{ file: hello.txt }] }
  - { id: tool, prompt: p, checks: [{ tool_used: Write }] }
  - { id: mixed, prompt: p, checks: [{ not_contains: sorry }, { min_length: 100 }] }
  - { id: nothing, prompt: p, checks: [] }
  - { id: optional, prompt: p, checks: [{ not_contains: sorry, required: false }] }
  - { id: judged, prompt: p, checks: [{ judge: It greets Alice. }] }
";

fn idle(said: &str) -> Project {
    let toml = format!("[agents.idle]\ncommand = [\"/bin/echo\", \"-n\", \"{said}\"]\n");
    let project = Project::new(&[("evals/e.practicum.yaml", EVALS)]);
    project.write("practicum.toml", &toml);
    project
}

#[test]
fn a_do_nothing_agent_never_passes() {
    for said in ["", "I'm done."] {
        let project = idle(said);
        let summary = project.run(&["run", "evals", "--no-judge", "--json"]).exits(1).json();
        for case in summary["cases"].as_array().expect("cases") {
            assert_eq!(case["passed"], 0, "{said:?}: {case}");
        }
        let again = project.run(&["grade", "latest", "--no-judge", "--json"]).exits(1).json();
        assert_eq!(again["summary"]["totals"]["passed"], 0, "nor when it is graded again");
        project.write("said.txt", said);
        let args = ["grade", "--output", "said.txt", "--spec", "evals/e.practicum.yaml", "--json"];
        assert_eq!(project.run(&args).exits(1).json()["ok"], false, "nor what it said");
    }
    let project = idle("");
    project.write(
        "evals/lax.practicum.yaml",
        "practicum: 1\ncases:\n  - { id: lax, prompt: p, checks: [{ not_contains: sorry }] }\n",
    );
    let checked =
        project.run(&["check", "evals/lax.practicum.yaml", "--self-test", "--json"]).exits(0).json();
    let problem = &checked["files"][0]["problems"][0];
    assert_eq!(
        (&problem["code"], &problem["line"], &problem["column"]),
        (&json!("passes-idle"), &json!(3), &json!(11))
    );
    assert_eq!(problem["severity"], "warning");
}

/// What a setup script makes, or makes of a file that is to be left alone, is not the agent's doing.
#[test]
fn the_work_of_a_setup_script_is_never_the_agents() {
    let project = idle("ok");
    project.write("evals/table.csv", "a,b\n");
    project.write(
        "evals/e.practicum.yaml",
        "practicum: 1
workspace: empty
run: { agents: [idle] }
cases:
  - id: made
    prompt: p
    setup: echo old > report.md; echo c,d > table.csv
    files: [table.csv]
    checks: [{ contains: old, on: { files: ['*.md'] } }]
",
    );
    let summary = project.run(&["run", "evals", "--trust", "--json"]).exits(1).json();
    assert_eq!(summary["totals"]["failed"], 1, "{summary}");
    let trial = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten().next();
    let trial = trial.expect("one").path();
    let facts: Value =
        serde_json::from_slice(&std::fs::read(trial.join("facts.json")).expect("facts")).expect("JSON");
    assert_eq!(facts["files"], json!([]), "{facts}");
    assert_eq!(facts["given"], json!([{"path": "table.csv", "fate": "unchanged"}]), "{facts}");
}

/// An agent whose stream begins and ends well, with this between.
fn streaming(between: &str) -> Project {
    let script = format!(
        "#!/bin/bash
echo '{{\"type\":\"start\",\"schema_version\":1,\"agent\":\"a\",\"version\":\"1\",\"model\":\"m\",\"skills\":[]}}'
{between}
echo '{{\"type\":\"text\",\"text\":\"Hey\"}}'
echo '{{\"type\":\"end\",\"ending\":\"finished\"}}'
"
    );
    let evals = "practicum: 1
workspace: empty
run: { agents: [streams] }
cases:
  - { id: tool, prompt: p, checks: [{ tool_not_used: x }] }
  - { id: calls, prompt: p, checks: [{ limit: { tool_calls: 0 } }] }
  - { id: text, prompt: p, checks: [{ not_contains: RESULT, on: run }] }
  - { id: file, prompt: p, checks: [{ file: { path: x.md, exists: false } }] }
";
    let project = Project::new(&[("agent.sh", &script), ("evals/e.practicum.yaml", evals)]);
    let agent = project.path().join("agent.sh").display().to_string();
    project.write(
        "practicum.toml",
        &format!("[agents.streams]\ncommand = [\"/bin/bash\", \"{agent}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n"),
    );
    project
}

/// What is not understood may have been just what is forbidden.
#[test]
fn a_line_that_cannot_be_read_never_lets_a_check_pass() {
    let call = |input: &str| {
        format!(r#"echo '{{"type":"tool","id":"1","name":"x","input":{input},"output":"RESULT"}}'"#)
    };
    let deep = format!("{}{}", "[".repeat(130), "]".repeat(130));
    for (between, verdicts) in [
        (String::new(), ["passed"; 4]),
        // It is not what it should be, and still understood.
        (call(r#"{"c":"\ud83d RESULT"}"#), ["failed", "failed", "failed", "passed"]),
        (call(r#"{"n":1e999}"#), ["not_scored", "not_scored", "not_scored", "passed"]),
        (call(&deep), ["not_scored", "not_scored", "not_scored", "passed"]),
    ] {
        let project = streaming(&between);
        let found = |summary: &Value| -> Vec<&'static str> {
            let cases = summary["cases"].as_array().expect("cases");
            let verdict = |case: &Value| {
                let all = ["passed", "failed", "not_scored"];
                all.into_iter().find(|verdict| case[verdict] == 1).expect("one")
            };
            cases.iter().map(verdict).collect()
        };
        assert_eq!(found(&project.run(&["run", "evals", "--json"]).json()), verdicts, "{between}");
        let again = project.run(&["grade", "latest", "--json"]).json();
        assert_eq!(found(&again["summary"]), verdicts, "graded again, {between}");
    }
}

/// A spec with one criterion, a text, and a judge that answers so.
fn judged(steps: &str) -> Ran {
    let spec = r#"{"assertions": [{"id": "text", "type": "contains", "needle": "a"}], "grading_criteria": [{"id": "near", "criterion": "Is it near?"}]}"#;
    let script = format!("practicum_script: 1\nscenarios:\n  - to: judge\n    steps: [{steps}]\n");
    let project = Project::new(&[("s.eval.json", spec), ("out.txt", "a"), ("judge.yaml", &script)]);
    project.run(&[
        "grade",
        "--output",
        "out.txt",
        "--spec",
        "s.eval.json",
        "--judge",
        "--script",
        "judge.yaml",
        "--json",
    ])
}

fn unscored(ran: Ran) -> Value {
    let document = ran.exits(3).json();
    let result = document["results"][1].clone();
    assert_eq!((&result["verdict"], &result["score"]), (&json!("not_scored"), &Value::Null), "{result}");
    for gate in document["gates"].as_array().expect("gates").iter() {
        assert!(gate["value"] != 0.0, "no answer is no 0: {gate}");
    }
    result
}

#[test]
fn an_unparsable_judge_is_never_a_score() {
    for steps in [
        "I would say that it is near.",
        "'{\"results\": [{\"id\": \"near\", \"score\": '",
        "'{\"results\": [{\"id\": \"other\", \"score\": 1, \"evidence\": [], \"reasoning\": \"r\"}]}'",
        "'{\"results\": [{\"id\": \"near\", \"score\": \"high\", \"evidence\": [], \"reasoning\": \"r\"}]}'",
        "'{\"results\": [{\"id\": \"near\", \"score\": 7, \"evidence\": [], \"reasoning\": \"r\"}]}'",
    ] {
        let result = unscored(judged(&format!("{steps}, {steps}")));
        assert!(result["why"].as_str().is_some_and(|why| why.contains("no usable answer")), "{result}");
    }
}

#[test]
fn a_broken_judge_is_never_a_score() {
    unscored(judged("{ error: 401 }"));
}

/// Standard output is one document or nothing, whatever else there is to say.
#[test]
fn json_on_stdout_is_never_mixed_with_chatter() {
    let project = idle("hello");
    project.write("out.txt", "hello");
    project.write("script.yaml", "practicum_script: 1\ndefault: hello\n");
    project.write("s/SKILL.md", "---\nname: s\ndescription: d\n---\n");
    let spec =
        r#"{"input_files": ["in.csv"], "assertions": [{"id": "a", "type": "contains", "needle": "x"}]}"#;
    project.write("x.eval.json", spec);
    project.write("in.csv", "");
    for args in [
        &["run", "evals", "--no-judge"] as &[&str],
        &["run", "evals", "--no-judge", "--gate", "pass_rate=0", "--keep-workspaces", "--no-cache"],
        &["try", "hi", "--skill", "s", "--agent", "builtin", "--script", "script.yaml"],
        &["grade", "latest", "--no-judge"],
        &["grade", "--output", "out.txt", "--spec", "x.eval.json"],
        &["check", ".", "--self-test"],
        &["list", "evals"],
        &["runs"],
        &["lint", "s"],
    ] {
        let ran = project.run(&[args, &["--json"]].concat());
        assert_eq!(ran.json()["schema_version"], 1, "{args:?}");
        assert!(ran.stdout.starts_with('{') && ran.stdout.ends_with("}\n"), "{args:?}");
    }
    for args in [
        &["run", "nowhere"] as &[&str],
        &["grade", "nowhere"],
        &["grade", "--output", "no", "--spec", "x.eval.json"],
    ] {
        let ran = project.run(&[args, &["--json"]].concat()).exits(2);
        assert_eq!(ran.stdout, "", "{args:?}");
        assert!(ran.stderr.contains("error"), "{args:?}");
    }
}

#[test]
fn an_empty_suite_never_exits_0() {
    for (name, text) in [
        ("e.practicum.yaml", "practicum: 1\ncases: []\n"),
        ("evals.json", r#"{"evals": []}"#),
        ("triggers.json", "[]"),
        ("x.eval.json", "{}"),
        ("s.json", r#"{"name": "s", "skills": [], "negative_cases": []}"#),
        ("w.json", r#"{"version": "1", "skill": "s", "cases": []}"#),
        ("empty.yaml", ""),
    ] {
        let project = Project::new(&[
            (name, text),
            ("out.txt", "text"),
            ("s/SKILL.md", "---\nname: s\ndescription: d\n---\n"),
        ]);
        let script = ["--agent", "builtin", "--script", "script.yaml", "--skill", "s"];
        project.write("script.yaml", "practicum_script: 1\ndefault: hello\n");
        let ran = project.run(&[&["run", name], &script[..]].concat());
        assert_ne!(ran.code, 0, "run {name}\n{}{}", ran.stdout, ran.stderr);
        let ran = project.run(&["grade", "--output", "out.txt", "--spec", name]);
        assert_ne!(ran.code, 0, "grade {name}\n{}{}", ran.stdout, ran.stderr);
    }
    let project = idle("");
    project.run(&["run", "evals", "--case", "no-such-case"]).exits(2);
}

/// What a gate is given for a missing answer decides nothing: neither best nor worst is assumed.
#[test]
fn an_unmeasured_gate_never_holds() {
    let project = idle("hello");
    for gate in ["f1=0", "precision=0", "mean_score=0", "criteria_pass_rate=0"] {
        let args = ["run", "evals", "--no-judge", "--gate", "all_cases_pass=0", "--gate", gate, "--json"];
        let summary = project.run(&args).exits(3).json();
        let found = summary["gates"].as_array().expect("gates").last().expect("a gate").clone();
        assert_eq!((&found["value"], &found["ok"]), (&Value::Null, &json!(false)), "{found}");
    }
}
