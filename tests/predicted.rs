//! Activation that a model predicts, and nobody sees.

mod common;

use common::Project;
use serde_json::{Value, json};

const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - to: judge
    when: Tidy up my spreadsheet
    steps: [{ tools: [{ name: report_choice, input: { skills: [clean], reasoning: It is about tables. } }] }]
  - to: judge
    when: What is the weather
    steps: [{ tools: [{ name: report_choice, input: { skills: [], reasoning: Nothing fits. } }] }]
  - to: judge
    when: Wash the dishes
    steps:
      - { tools: [{ name: report_choice, input: { skills: [dishes], reasoning: Why not. } }] }
      - { tools: [{ name: report_choice, input: { skills: [clean], reasoning: Cleaning. } }] }
"#;

fn project(should_not: &[&str]) -> Project {
    let spec = json!({
        "assertions": [{"id": "done", "type": "contains", "needle": "Done"}],
        "trigger_tests": {"should_trigger": ["Tidy up my spreadsheet"], "should_not_trigger": should_not},
    });
    Project::new(&[
        ("script.yaml", SCRIPT),
        (".claude/skills/clean/SKILL.md", "---\nname: clean\ndescription: Cleans tables.\n---\nClean it.\n"),
        (".claude/skills/clean/SKILL.eval.json", &spec.to_string()),
    ])
}

const RUN: [&str; 8] =
    ["run", "--predicted", "--only", "activation", "--agent", "builtin", "--script", "script.yaml"];

fn run(project: &Project, more: &[&str], code: i32) -> Value {
    project.run(&[&RUN, more, &["--json"]].concat()).exits(code).json()
}

#[test]
fn a_model_is_asked_in_place_of_an_agent_and_its_guess_is_in_no_rate() {
    let project = project(&["What is the weather?"]);
    let summary = run(&project, &[], 0);
    assert_eq!(summary["totals"], json!({"trials": 2, "passed": 2, "failed": 0, "not_scored": 0}));
    assert_eq!(summary["activation"], Value::Null, "what is guessed is never added to what was seen");
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    for trial in trials.flatten().map(|trial| trial.path()) {
        assert!(!trial.join("transcript.jsonl").exists(), "no agent ran");
        let record = std::fs::read_to_string(trial.join("checks.json")).expect("a record");
        assert!(record.contains("\"fired\": null"), "{record}");
    }

    let again = project.run(&["grade", "latest", "--script", "script.yaml", "--json"]).exits(0).json();
    assert_eq!(again["changes"], json!([]), "a prediction stays one");
}

#[test]
fn a_wrong_guess_fails_and_one_that_cannot_be_had_is_neither() {
    // The first answer names a skill that is not there, and is asked for again.
    let dishes = project(&["Wash the dishes"]);
    let summary = run(&dishes, &[], 1);
    assert_eq!(summary["totals"]["failed"], 1);
    let text = dishes.run(&[&RUN[..], &["-q"]].concat()).exits(1).stdout;
    assert!(text.contains("a model expects clean to be activated"), "{text}");
    let summary = run(&project(&["What is the weather?"]), &["--no-judge"], 3);
    assert_eq!(summary["totals"]["not_scored"], 2);
}

#[test]
fn a_native_case_may_say_so_itself() {
    let suite = "practicum: 1\nskill: {name: clean, path: .claude/skills/clean}\nrun: {repeat: 1}\ncases:\n\
        - {id: a, prompt: Tidy up my spreadsheet, activation: {expect: must, by: predicted}}\n";
    let project = project(&[]);
    project.write("evals.practicum.yaml", suite);
    let args = ["run", "evals.practicum.yaml", "--agent", "builtin", "--script", "script.yaml", "--json"];
    assert_eq!(project.run(&args).exits(0).json()["totals"]["passed"], 1);
}
