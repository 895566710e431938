//! The reports of skill-creator and agentskills.io.

use serde_json::{Value, json};

use super::common::Project;

const SKILL: &str =
    "---\nname: dock\ndescription: Use when a Dockerfile is wanted.\n---\n\nWrite FROM first.\n";

/// What a judge says of each expectation, by its place.
fn marks(verdicts: &[&str]) -> Value {
    let ids = ["has-from", "has-cmd"];
    let results: Vec<Value> = ids
        .iter()
        .zip(verdicts)
        .map(|(id, verdict)| {
            json!({"id": id, "verdict": verdict, "evidence": ["FROM alpine"], "reasoning": "r"})
        })
        .collect();
    let step = json!({"tools": [{"name": "report_marks", "input": {"results": results}}]});
    json!({"to": "judge", "when": {"regex": "."}, "steps": [step, step]})
}

fn project(eval: &Value, agent: &Value, verdicts: &[&str]) -> Project {
    let evals = json!({"skill_name": "dock", "evals": [eval]}).to_string();
    let script = json!({"practicum_script": 1, "scenarios": [agent, marks(verdicts)]}).to_string();
    Project::new(&[("dock/SKILL.md", SKILL), ("dock/evals/evals.json", &evals), ("script.yaml", &script)])
}

fn eval() -> Value {
    json!({"id": 1, "prompt": "Make it", "expected_output": "A Dockerfile", "files": [],
        "expectations": ["Has FROM", "Has CMD"]})
}

fn answers() -> Value {
    json!({"when": "Make it", "steps": ["FROM alpine"]})
}

const RUN: [&str; 6] = ["run", ".", "--agent", "builtin", "--script", "script.yaml"];

fn read(project: &Project, path: &str) -> Value {
    let text = std::fs::read_to_string(project.path().join(path));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{path}: {error}"))).expect("JSON")
}

#[test]
fn a_run_with_an_expectation_without_an_answer_is_not_all_passed() {
    let project = project(&eval(), &answers(), &["pass"]);
    let graded = [&RUN[..], &["--report", "skill-creator=sc", "--report", "agentskills=as"]].concat();
    // What an earlier run left is not this run's.
    project.write("sc/eval-1/with_skill/run-1/grading.json", "{}");
    project.run(&graded).exits(3);
    for folder in ["sc/eval-1/with_skill/run-1", "sc/eval-1/without_skill/run-1", "as/eval-1/with_skill"] {
        assert!(project.path().join(folder).join("timing.json").exists(), "{folder}");
        assert!(!project.path().join(folder).join("grading.json").exists(), "{folder}");
    }
    for benchmark in [read(&project, "sc/benchmark.json"), read(&project, "as/benchmark.json")] {
        assert_eq!(benchmark["run_summary"], json!({}), "{benchmark}");
        let note = benchmark["notes"][0].as_str().expect("a note");
        assert!(note.starts_with("eval 1 (1), with_skill, run 1 is not scored: "), "{note}");
    }
}

#[test]
fn activation_is_no_difference_between_the_arms() {
    let mut eval = eval();
    eval["should_trigger"] = json!(false);
    let agent = json!({"when": "Make it",
        "steps": [{"tools": [{"name": "Skill", "input": {"skill": "dock"}}]}, "FROM alpine"]});
    let project = project(&eval, &agent, &["pass", "pass"]);
    let ran = project.run(&[&RUN[..], &["--json", "--report", "skill-creator=sc"]].concat());
    let summary = ran.json();
    assert_eq!(summary["arms"]["difference"]["value"], 0.0, "{}", summary["arms"]);
    let benchmark = read(&project, "sc/benchmark.json");
    assert_eq!(benchmark["run_summary"]["delta"]["pass_rate"], "+0.00", "{benchmark}");
}

#[test]
fn what_the_agent_counted_and_noted_is_not_lost_or_contradicted() {
    let write = |path: &str, content: &str| json!({"name": "Write", "input": {"file_path": path, "content": content}});
    let notes = "# Uncertainty\n- which tag\n\n# Needs Human Review\n- the port\n\n# Workarounds\n- none\n";
    let agent = json!({"when": "Make it", "steps": [{"tools": [
        write("outputs/Dockerfile", "FROM alpine\n"),
        write("outputs/metrics.json", "{\"total_tool_calls\": 77}"),
        write("user_notes.md", notes),
    ]}, "FROM alpine"]});
    let project = project(&eval(), &agent, &["pass", "pass"]);
    project.run(&[&RUN[..], &["--report", "skill-creator=sc"]].concat()).exits(0);
    let run = "sc/eval-1/with_skill/run-1";
    assert!(project.path().join(run).join("outputs/Dockerfile").exists());
    assert!(!project.path().join(run).join("outputs/outputs").exists());
    let grading = read(&project, &format!("{run}/grading.json"));
    let counted = json!({"total_tool_calls": 77});
    assert_eq!(grading["execution_metrics"], counted);
    assert_eq!(read(&project, &format!("{run}/outputs/metrics.json")), counted);
    let noted = &grading["user_notes_summary"];
    assert_eq!((&noted["uncertainties"], &noted["workarounds"]), (&json!(["which tag"]), &json!(["none"])));
    assert_eq!(noted["needs_review"][0], "the port");
    let timing = &grading["timing"];
    let seconds = |key: &str| timing[key].as_f64().unwrap_or_default();
    let sum = seconds("executor_duration_seconds") + seconds("grader_duration_seconds");
    assert!((seconds("total_duration_seconds") - sum).abs() < 0.002, "{timing}");
}

/// The files below a folder that viewers read, in order.
fn found_by_viewers(project: &Project, folder: &str) -> Vec<String> {
    let root = project.path().join(folder);
    let walk = ignore::WalkBuilder::new(&root).standard_filters(false).build().flatten();
    let files = walk.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let names = files.map(|entry| entry.path().strip_prefix(&root).expect("below").display().to_string());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with(".practicum-")).collect();
    names.sort();
    names
}

#[test]
fn files_of_an_earlier_run_are_not_results_of_the_latest() {
    let leaves = |file: &str| {
        let input = json!({"file_path": format!("outputs/{file}"), "content": "FROM alpine\n"});
        json!({"when": "Make it", "steps": [{"tools": [{"name": "Write", "input": input}]}, "FROM alpine"]})
    };
    for report in ["skill-creator", "agentskills"] {
        let first = project(&eval(), &leaves("old"), &["pass", "pass"]);
        let order = format!("{report}=out");
        first.run(&[&RUN[..], &["--repeat", "3", "--report", &order]].concat()).exits(0);
        first.write("out/feedback.json", "{}");
        first.write("out/eval-1/with_skill/mine.txt", "mine");
        assert!(found_by_viewers(&first, "out").iter().any(|path| path.ends_with("run-3/outputs/old")));
        let script = json!({"practicum_script": 1, "scenarios": [leaves("new"), marks(&["pass", "pass"])]});
        first.write("script.yaml", &script.to_string());
        let told = first.run(&[&RUN[..], &["--report", &order]].concat()).exits(0).stderr;
        assert!(told.contains(" of an earlier run replaced"), "{told}");
        first.run(&["report", "latest", "--format", report, "-o", "fresh"]).exits(0);
        let mut expected = found_by_viewers(&first, "fresh");
        // What somebody else put there stays.
        expected.extend(["feedback.json".to_owned(), "eval-1/with_skill/mine.txt".to_owned()]);
        expected.sort();
        assert_eq!(found_by_viewers(&first, "out"), expected, "{report}");
    }
}

#[test]
fn the_report_of_an_older_run_does_not_replace_a_later_one() {
    let project = project(&eval(), &answers(), &["pass", "pass"]);
    let run = [&RUN[..], &["--no-cache", "--report", "skill-creator=sc"]].concat();
    project.run(&run).exits(0);
    let older = project.only_run().file_name().expect("an id").to_string_lossy().into_owned();
    project.run(&[&run[..], &["--arm", "without"]].concat());
    assert!(
        !found_by_viewers(&project, "sc")
            .iter()
            .any(|path| path.contains("with_skill/run-1/grading") && !path.contains("without_skill"))
    );
    let before = found_by_viewers(&project, "sc");
    let report = |to: &str| project.run(&["report", &older, "--format", "skill-creator", "-o", to]);
    let told = report("sc").exits(2).stderr;
    assert!(told.contains(&format!("later than those of run {older}; name another folder")), "{told}");
    assert_eq!(found_by_viewers(&project, "sc"), before);
    report("elsewhere").exits(0);
}

#[test]
fn gradings_that_nobody_knows_are_not_shown_without_a_word() {
    let project = project(&eval(), &answers(), &["pass", "pass"]);
    project.write("sc/eval-1/with_skill/run-2/grading.json", "{}");
    let told = project.run(&[&RUN[..], &["--report", "skill-creator=sc"]].concat()).exits(0).stderr;
    let expected = "1 grading in the folder, such as eval-1/with_skill/run-2/grading.json";
    assert!(told.contains(expected), "{told}");
}
