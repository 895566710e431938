//! What a clauditor spec says about running a skill, held against runs of it.

use std::path::PathBuf;

use crate::common::Project;
use serde_json::{Value, json};

const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: /clean append
    steps:
      - tools: [{ name: Bash, input: { command: "wc -l < sales.csv; echo c,d >> sales.csv" } }]
      - Done.
  - when: /clean write
    steps:
      - tools: [{ name: Bash, input: { command: "echo fresh > out.md" } }]
      - Done.
  - when: /clean ask
    steps: [Which column do you mean?]
  - when: weather
    steps: [Which city are you in?]
default: Done.
"#;

/// A project with a skill, this spec beside it, and an output of an earlier day.
fn project(spec: &Value) -> Project {
    Project::new(&[
        ("script.yaml", SCRIPT),
        ("out.md", "stale\n"),
        (".claude/skills/clean/SKILL.md", "---\nname: clean\ndescription: Cleans.\n---\nClean it.\n"),
        (".claude/skills/clean/fixtures/sales.csv", "a,b\n"),
        (".claude/skills/clean/SKILL.eval.json", &spec.to_string()),
    ])
}

fn run(project: &Project, code: i32) -> Value {
    project.run(&["run", "--agent", "builtin", "--script", "script.yaml", "--json"]).exits(code).json()
}

fn trials(project: &Project) -> Vec<PathBuf> {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    trials.flatten().map(|trial| trial.path()).collect()
}

#[test]
fn each_attempt_has_an_input_of_its_own_which_is_kept_as_it_was_left() {
    for (args, left) in [("append", "a,b\nc,d\n"), ("nothing", "a,b\n")] {
        let project = project(&json!({
            "test_args": args,
            "input_files": ["fixtures/sales.csv"],
            "assertions": [{"id": "done", "type": "contains", "needle": "Done"}],
            "variance": {"n_runs": 3},
        }));
        run(&project, 0);
        let trials = trials(&project);
        assert_eq!(trials.len(), 3);
        for trial in trials {
            let kept = std::fs::read_to_string(trial.join("inputs/sales.csv")).expect("the input");
            assert_eq!(kept, left, "{args}");
        }
    }
}

#[test]
fn an_output_file_that_was_there_before_is_not_the_agents_work() {
    for (args, needle, code, why) in [
        ("write", "fresh", 0, ""),
        ("nothing", "stale", 1, "out.md was there before, and the agent did not write it"),
    ] {
        let project = project(&json!({
            "test_args": args,
            "output_file": "out.md",
            "assertions": [{"id": "a", "type": "contains", "needle": needle}],
        }));
        run(&project, code);
        let [trial] = trials(&project).try_into().expect("one trial");
        let checks = std::fs::read_to_string(trial.join("checks.json")).expect("a record");
        assert!(checks.contains(why), "{checks}");
    }
}

#[test]
fn a_run_that_only_asks_back_is_told_apart_unless_the_spec_does_not_want_that() {
    for (allowed, ending) in
        [(Value::Null, "asked_user"), (json!(true), "asked_user"), (json!(false), "finished")]
    {
        let mut spec = json!({
            "test_args": "ask",
            "assertions": [{"id": "a", "type": "contains", "needle": "column"}],
        });
        if !allowed.is_null() {
            spec["allow_hang_heuristic"] = allowed;
        }
        let project = project(&spec);
        let summary = project.run(&["run", "--agent", "builtin", "--script", "script.yaml", "--json"]).json();
        assert_eq!(summary["cases"][0]["endings"], json!({ending: 1}), "{spec}");
    }
}

#[test]
fn a_model_of_nobodys_is_found_out_before_an_agent_is_paid() {
    let criteria = json!([{"id": "near", "criterion": "Is it near?"}]);
    let project = project(&json!({"grading_model": "llama-3", "grading_criteria": criteria}));
    let args = ["run", "--agent", "builtin", "--script", "script.yaml"];
    let ran = project.run(&args).exits(2);
    assert!(ran.stderr.contains("unknown provider for model \"llama-3\""), "{}", ran.stderr);
    assert!(!project.path().join(".practicum/runs").exists());
    project.run(&[&args[..], &["--no-judge"]].concat()).exits(3);
    project.run(&[&args[..], &["--grading-provider", "openai"]].concat()).exits(3);
    // clauditor loads such a spec, because the command line may name another model.
    let found = project.run(&["check", "."]).exits(0).stdout;
    assert!(found.contains("unknown-provider"), "{found}");
}

#[test]
fn whether_the_skill_fires_is_known_also_of_an_agent_that_asks_back() {
    let queries =
        json!({"should_trigger": ["clean the weather table"], "should_not_trigger": ["How is the weather?"]});
    let project = project(&json!({"trigger_tests": queries}));
    let args = ["run", "--agent", "builtin", "--script", "script.yaml", "--no-probe", "--json"];
    let summary = project.run(&args).exits(1).json();
    let counted = ["fn", "tn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [1, 1, 0], "{summary}");
}
