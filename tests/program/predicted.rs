//! Activation that a model predicts, and nobody sees.

use crate::common::Project;
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

/// The four counts and what follows from them, of what was guessed and nothing else.
#[test]
fn guesses_have_rates_of_their_own() {
    let project = project(&["What is the weather?", "Wash the dishes"]);
    let summary = run(&project, &[], 1);
    let found = &summary["predicted_activation"];
    let counts = ["tp", "fp", "tn", "fn", "acceptable", "error"].map(|name| found[name].as_u64());
    assert_eq!(counts, [1, 1, 1, 0, 0, 0].map(Some), "{found}");
    for (rate, value, n) in [("precision", 0.5, 2), ("recall", 1.0, 1), ("accuracy", 2.0 / 3.0, 3)] {
        let found = &found[rate];
        assert_eq!((found["value"].as_f64(), found["n"].as_u64()), (Some(value), Some(n)), "{rate}: {found}");
        assert!(
            found["low"].as_f64() < Some(value) && found["high"].as_f64() >= Some(value),
            "{rate}: {found}"
        );
    }
    assert_eq!(found["f1"]["value"], 2.0 / 3.0);
    assert_eq!((&found["skills"][0]["name"], &found["skills"][0]["fp"]), (&json!("clean"), &json!(1)));
    assert_eq!(summary["activation"], Value::Null, "nothing was seen");
    for case in summary["cases"].as_array().expect("cases") {
        assert_eq!(case["fired"], json!({"yes": 0, "no": 0, "unknown": 1}), "{case}");
    }
    for (format, words) in [
        ("text", "predicted activation, by a model and not seen: precision 0.50"),
        ("md", "## Predicted Confusion Matrix"),
        ("html", "<h2>Predicted activation, not seen</h2>"),
    ] {
        let report = project.run(&["report", "latest", "--format", format]).exits(0).stdout;
        assert!(report.contains(words), "{format}: {report}");
        for heading in ["  activation: ", "## Confusion Matrix", "<h2>Activation</h2>"] {
            assert!(!report.contains(heading), "{format} takes a guess for what was seen");
        }
    }
    let again = project.run(&["grade", "latest", "--script", "script.yaml", "--json"]).exits(1).json();
    assert_eq!(again["summary"]["predicted_activation"], *found, "graded again");

    let summary = run(&project, &["--no-judge", "--no-cache"], 3);
    let found = &summary["predicted_activation"];
    assert_eq!((&found["error"], &found["tp"]), (&json!(3), &json!(0)), "no answer is no guess: {found}");
    assert_eq!(found["precision"]["value"], Value::Null, "{found}");
}

/// One suite with both: each has its own counts.
#[test]
fn what_was_guessed_and_what_was_seen_are_not_added_up() {
    let suite = "practicum: 1\nskill: {name: clean, path: .claude/skills/clean}\nrun: {repeat: 1}\ncases:\n\
        - {id: guessed, prompt: Tidy up my spreadsheet, activation: {expect: must, by: predicted}}\n\
        - {id: seen, prompt: Tidy up my table, activation: must}\n";
    let project = project(&[]);
    project.write("evals.practicum.yaml", suite);
    project
        .write("script.yaml", &format!("{SCRIPT}  - when: Tidy up my table\n    steps: [I do nothing.]\n"));
    let args = ["run", "evals.practicum.yaml", "--agent", "builtin", "--script", "script.yaml", "--json"];
    let summary = project.run(&args).exits(1).json();
    let counts = |of: &Value| ["tp", "fp", "tn", "fn"].map(|name| of[name].as_u64());
    assert_eq!(counts(&summary["predicted_activation"]), [1, 0, 0, 0].map(Some), "{summary}");
    assert_eq!(counts(&summary["activation"]), [0, 0, 0, 1].map(Some), "{summary}");
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
