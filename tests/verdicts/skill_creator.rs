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
