//! Versions of skills: what `improve` accepts, and what the histories say.

use std::process::Command;

use serde_json::{Value, json};

use super::common::{Project, Ran};

const EVALS: &str = r#"{"version": "1.0", "skill": "s", "cases": [
  {"id": "a", "prompt": "Make one", "expectations": [{"criterion": "x", "description": "Says done", "required": true}]},
  {"id": "b", "prompt": "Make two", "expectations": [{"criterion": "x", "description": "Says done", "required": true}]},
  {"id": "c", "prompt": "Make three", "expectations": [{"criterion": "x", "description": "Says done", "required": true}]}
]}"#;

const SKILL: &str = "---\nname: s\ndescription: Use when a thing is to be made.\n---\n\nMake it.\n";

/// What a judge says where the regular expression fits; no score is no answer.
fn judge(when: &str, score: Option<u8>) -> Value {
    let judge_verdict =
        |score: u8| json!({"id": "x", "score": score, "evidence": ["Make it"], "reasoning": "r"});
    let results: Vec<Value> = score.map(judge_verdict).into_iter().collect();
    let step = json!({"tools": [{"name": "report_marks", "input": {"results": results}}]});
    json!({"to": "judge", "when": {"regex": when}, "steps": [step, step]})
}

fn project(judges: &[Value]) -> Project {
    let edit = json!({"file": "SKILL.md", "area": "body", "before": "Make it.", "after": "Make it done.",
        "reasoning": "r", "checks": ["a/x", "b/x", "c/x"]});
    let mut scenarios = vec![
        json!({"when": "Make", "steps": [
            {"tools": [{"name": "Bash", "input": {"command": "tail -1 .claude/skills/s/SKILL.md"}}]}, "ready"]}),
        json!({"to": "judge", "when": "Propose edits",
            "steps": [{"tools": [{"name": "propose_edits", "input": {"edits": [edit]}}]}]}),
        json!({"to": "judge", "when": "Output A:", "steps": ["no"]}),
    ];
    scenarios.extend(judges.iter().cloned());
    let script = json!({"practicum_script": 1, "scenarios": scenarios}).to_string();
    Project::new(&[("s/SKILL.md", SKILL), ("s/evals/evals.json", EVALS), ("script.yaml", &script)])
}

fn improve(project: &Project) -> Ran {
    project.run(&["improve", "s", "--agent", "builtin", "--script", "script.yaml", "--rounds", "1"])
}

fn read(project: &Project, path: &str) -> Value {
    let text = std::fs::read_to_string(project.path().join(path));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{path}: {error}"))).expect("JSON")
}

fn skill(project: &Project) -> String {
    std::fs::read_to_string(project.path().join("s/SKILL.md")).expect("a skill")
}

#[test]
fn a_version_that_most_cases_never_measured_is_not_better() {
    let project = project(&[
        judge("(?s)Make (one|three).*Make it done", None),
        judge("(?s)Make two.*Make it done", Some(5)),
        judge("Make", Some(1)),
    ]);
    let ran = improve(&project).exits(3);
    assert!(
        ran.stdout.contains("v1 3 of 9 passed, 6 not scored")
            && ran.stdout.contains("not accepted: 2 cases of the new version have no answer"),
        "{}",
        ran.stdout
    );
    assert_eq!(skill(&project), SKILL);
    let listed = project.run(&["versions", "s"]).exits(0).stdout;
    assert!(listed.contains("3 of 9 passed, 6 not scored  mean score   –"), "{listed}");
    assert_eq!(read(&project, "s-workspace/history.json")["versions"][1]["average_score"], Value::Null);
}

#[test]
fn a_baseline_that_most_cases_never_measured_is_nothing_to_be_better_than() {
    let project = project(&[
        judge("Make (one|three)", None),
        judge("(?s)Make two.*Make it done", Some(5)),
        judge("Make two", Some(1)),
    ]);
    let ran = improve(&project).exits(3);
    assert!(ran.stdout.contains("2 cases of v0 have no answer (a, c)"), "{}", ran.stdout);
    assert_eq!(skill(&project), SKILL);
}

#[test]
fn an_accepted_version_says_how_much_was_measured() {
    let project = project(&[judge("(?s)Make.*Make it done", Some(5)), judge("Make", Some(1))]);
    let ran = improve(&project).exits(0);
    let words = "accepted: better in fresh runs, not worse on the 1 held-out case (9 of 9 runs scored)";
    assert!(ran.stdout.contains(words), "{}", ran.stdout);
    assert!(skill(&project).contains("Make it done."));
}

const RUN: [&str; 6] = ["run", ".", "--agent", "builtin", "--script", "script.yaml"];

#[test]
fn the_mean_of_a_version_is_not_that_of_its_last_report() {
    let project = project(&[judge("Make one", Some(3)), judge("Make", Some(5))]);
    let graded = [&RUN[..], &["--report", "writing-skills=out"]].concat();
    project.run(&graded).exits(0);
    let average = || read(&project, "out/history.json")["versions"][0]["average_score"].clone();
    assert_eq!(average(), 4.33);
    project.run(&[&graded[..], &["--case", "b"]].concat()).exits(0);
    assert_eq!(average(), 4.33);
    let alone = [&RUN[..], &["--case", "b", "--report", "writing-skills=alone"]].concat();
    let ran = project.run(&alone).exits(0);
    assert_eq!(read(&project, "alone/history.json")["versions"][0]["average_score"], Value::Null);
    let message = format!("{}{}", ran.stdout, ran.stderr);
    assert!(message.contains("v0 has no average_score") && message.contains("a, c"), "{message}");
}

#[test]
fn the_current_version_is_one_of_those_listed() {
    let project = project(&[judge("Make", Some(5))]);
    project.run(&["snapshot", "s"]).exits(0);
    project.write("s/SKILL.md", &SKILL.replace("Make it.", "Make it well."));
    project.run(&[&RUN[..], &["--report", "writing-skills=out"]].concat()).exits(0);
    let history = read(&project, "out/history.json");
    let current = history["current_version"].as_u64().expect("a number") as usize;
    assert_eq!(history["versions"][current]["version"], current, "{history}");
    assert_eq!(history["versions"][current]["average_score"], 5.0, "{history}");
}

#[test]
fn the_current_version_is_the_one_on_the_disk() {
    let project = project(&[]);
    project.run(&["snapshot", "s"]).exits(0);
    project.write("s/SKILL.md", &SKILL.replace("Make it.", "Make it well."));
    project.run(&["snapshot", "s", "-m", "well"]).exits(0);
    project.write("s/SKILL.md", SKILL);
    let listed = project.run(&["versions", "s", "--json"]).exits(0).json();
    assert_eq!((&listed["current_version"], &listed["changed"]), (&json!(0), &json!(false)), "{listed}");
    assert!(project.run(&["versions", "s"]).exits(0).stdout.starts_with("* v0"));
}

#[test]
fn a_key_of_others_does_not_lock_a_history() {
    let project = project(&[]);
    project.run(&["snapshot", "s"]).exits(0);
    let mut history = read(&project, "s-workspace/history.json");
    history["team"] = json!("docs");
    history["versions"][0]["author"] = json!("Ada");
    project.write("s-workspace/history.json", &history.to_string());
    let ran = project.run(&["versions", "s"]).exits(0);
    assert!(ran.stderr.contains("unknown here and kept: `author`, `team`"), "{}", ran.stderr);
    project.write("s/SKILL.md", &SKILL.replace("Make it.", "Make it well."));
    project.run(&["snapshot", "s", "-m", "well"]).exits(0);
    let history = read(&project, "s-workspace/history.json");
    assert_eq!((&history["team"], &history["versions"][0]["author"]), (&json!("docs"), &json!("Ada")));
    project.write("s-workspace/history.json", "[]");
    let ran = project.run(&["versions", "s"]).exits(2);
    let words = "must be an object with `versions` and `current_version`; it is a list";
    assert!(ran.stderr.contains(words), "{}", ran.stderr);
}

#[test]
fn a_project_that_was_copied_is_not_resumed_with_the_files_of_the_original() {
    let original = project(&[judge("Make one", None), judge("Make", Some(5))]);
    original.run(&RUN).exits(3);
    let copy = Project::new(&[]);
    let copied = Command::new("cp").arg("-r").arg(original.path().join(".")).arg(copy.path()).status();
    assert!(copied.expect("cp").success());
    let script = std::fs::read_to_string(original.path().join("script.yaml")).expect("a script");
    let mut script: Value = serde_json::from_str(&script).expect("JSON");
    script["scenarios"].as_array_mut().expect("scenarios").insert(0, judge("Make one", Some(5)));
    copy.write("script.yaml", &script.to_string());
    std::fs::remove_dir_all(original.path()).expect("removed");
    let ran = copy.run(&["run", "--resume", "latest"]).exits(0);
    assert!(ran.stdout.contains("PASS"), "{}", ran.stdout);
}

/// A project with one case of one required and one optional criterion, of which the judge answers only the first.
fn with_an_optional_criterion(id: &str) -> Project {
    let evals = json!({"version": "1.0", "skill": "s", "cases": [{"id": id, "prompt": "Make one", "expectations": [
        {"criterion": "x", "description": "Says done", "required": true},
        {"criterion": "y", "description": "Says more", "required": false},
    ]}]});
    let project = project(&[judge("Make", Some(4))]);
    project.write("s/evals/evals.json", &evals.to_string());
    project
}

#[test]
fn a_mean_of_some_criteria_is_not_the_mean_of_all() {
    let project = with_an_optional_criterion("a");
    project.run(&[&RUN[..], &["--report", "writing-skills=out"]].concat()).exits(0);
    let grading = read(&project, "out/grading/a_v0_run1.json");
    assert_eq!((&grading["overall_score"], &grading["required_score"]), (&Value::Null, &json!(4.0)));
    let noted = grading["user_notes_summary"].as_str().expect("a text");
    assert!(noted.contains("the criterion \"y\" has no score, so there is no overall score"), "{noted}");
    assert!(noted.contains("no verdict for the statement \"y\""), "{noted}");
    assert_eq!(read(&project, "out/history.json")["versions"][0]["average_score"], Value::Null);
}

#[test]
fn an_id_that_writing_skills_does_not_want_is_told() {
    for (id, notices) in [("case-01", 0), ("1", 0), ("caseOne", 1), ("case_one", 1)] {
        let project = with_an_optional_criterion(id);
        let checked = project.run(&["check", "s", "--json"]).exits(0).json();
        let problems = checked["files"][0]["problems"].as_array().expect("problems");
        let message = problems.iter().filter(|problem| problem.to_string().contains("kebab-case")).count();
        assert_eq!(message, notices, "{id}: {checked}");
    }
}

#[test]
fn a_run_that_failed_by_its_activation_does_not_leave_that_out() {
    let project = project(&[judge("Make", Some(5))]);
    let evals =
        EVALS.replace("\"prompt\": \"Make one\"", "\"prompt\": \"Make one\", \"should_trigger\": true");
    project.write("s/evals/evals.json", &evals);
    let script = std::fs::read_to_string(project.path().join("script.yaml")).expect("a script");
    let mut script: Value = serde_json::from_str(&script).expect("JSON");
    script["scenarios"][0]["steps"] = json!(["Make it: ready"]);
    project.write("script.yaml", &script.to_string());
    project.run(&[&RUN[..], &["--report", "writing-skills=out"]].concat()).exits(1);
    let grading = read(&project, "out/grading/a_v0_run1.json");
    assert_eq!((&grading["overall"], &grading["overall_score"]), (&json!("fail"), &json!(5.0)), "{grading}");
    let noted = grading["user_notes_summary"].as_str().expect("a text");
    assert!(noted.contains("was not activated"), "{noted}");
}

#[test]
fn a_project_that_was_moved_is_not_run_again() {
    let original = project(&[judge("Make", Some(5))]);
    original.write("s/evals/fixtures/plan.txt", "one\n");
    let evals = EVALS
        .replace("\"prompt\": \"Make one\"", "\"prompt\": \"Make one\", \"files\": [\"fixtures/plan.txt\"]");
    original.write("s/evals/evals.json", &evals);
    original.run(&RUN).exits(0);
    let moved = Project::new(&[]);
    let copied = Command::new("cp").arg("-a").arg(original.path().join(".")).arg(moved.path()).status();
    assert!(copied.expect("cp").success());
    let ran = moved.run(&RUN).exits(0);
    let message = format!("{}{}", ran.stdout, ran.stderr);
    assert!(message.contains("3 reuse, 0 run"), "{message}");
}
