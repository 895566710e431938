//! The whole pipeline with the real Claude Code, its model played by the script gateway.

mod common;

use std::time::{Duration, Instant};

use common::{Project, Ran, claude, path_with};
use serde_json::Value;

const SKILL: &str = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [claude], timeout: 60s }
cases:
  - id: greets
    prompt: Greet Alice and write it to hello.txt.
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - id: friendly
        judge: The greeting is friendly.
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - text: I will use the skill.
        tools: [{ name: Skill, input: { skill: greeter } }]
      - tools: [{ name: Write, input: { file_path: '{{workspace}}/hello.txt', content: 'Ahoy, Alice!' } }]
      - text: Ahoy, Alice!
  - to: judge
    steps:
      - tools:
          - name: report_marks
            input:
              results: [{ id: friendly, verdict: pass, evidence: ['Ahoy, Alice!'], reasoning: It says ahoy. }]
";

fn project(script: &str) -> Project {
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", EVAL), ("script.yaml", script)])
}

fn examine(project: &Project, more: &[&str]) -> Ran {
    let args = ["run", "evals", "--script", "script.yaml", "--json"];
    let mut command = project.practicum(&[&args, more].concat());
    command.env("PATH", path_with(&claude()));
    Ran::of(command.output().expect("practicum starts"))
}

#[test]
fn a_real_agent_is_examined_from_file_to_verdict() {
    let project = project(SCRIPT);
    let summary = examine(&project, &[]).exits(0).json();
    let case = &summary["cases"][0];
    assert_eq!(case["agent"], "claude");
    assert_eq!(case["passed"], 1);
    assert_eq!(case["endings"]["finished"], 1);
    assert_eq!(case["fired"]["yes"], 1);
    let passed: Vec<&Value> =
        case["checks"].as_array().expect("checks").iter().map(|check| &check["passed"]).collect();
    assert_eq!(passed, [1, 1, 1, 1]);

    let run = project.only_run();
    let stored: Value =
        serde_json::from_slice(&std::fs::read(run.join("summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(stored, summary, "the stored summary is the printed one");
    let events = std::fs::read_to_string(run.join("events.jsonl")).expect("events");
    assert!(events.contains("\"trial_finished\"") && events.contains("\"verdict\":\"pass\""), "{events}");
    let trial =
        std::fs::read_dir(run.join("trials")).expect("trials").flatten().next().expect("a trial").path();
    let written =
        std::fs::read_to_string(trial.join("files/hello.txt")).expect("what the agent wrote is kept");
    assert_eq!(written, "Ahoy, Alice!");
    let transcript = std::fs::read_to_string(trial.join("transcript.jsonl")).expect("a transcript");
    assert!(transcript.contains("Launching skill: greeter"));
}

#[test]
fn a_hung_run_is_unknown_and_leaves_no_process_behind() {
    let hang = "practicum_script: 1\nscenarios:\n  - when: Greet\n    steps:\n      - hang: 10m\n";
    let project = project(hang);
    project.write("evals/g.practicum.yaml", &EVAL.replace("id: greets", "id: hangs"));
    let started = Instant::now();
    let summary = examine(&project, &["--timeout", "3s"]).exits(3).json();
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
    assert_eq!(summary["ok"], false);
    let case = &summary["cases"][0];
    assert_eq!((&case["passed"], &case["failed"], &case["not_scored"]), (&0.into(), &0.into(), &1.into()));
    assert_eq!(case["endings"]["timed_out"], 1);
    assert_eq!(case["fired"]["unknown"], 1, "a time-out is never \"did not fire\"");
    let home = project.path().display().to_string();
    assert_eq!(project.processes(), [""; 0], "below {home}");
}

#[test]
fn a_failed_login_is_not_a_failed_eval() {
    let refused = "practicum_script: 1\nscenarios:\n  - when: Greet\n    steps:\n      - error: 401\n";
    let project = project(refused);
    let summary = examine(&project, &[]).exits(3).json();
    assert_eq!(summary["cases"][0]["endings"]["auth_failed"], 1);
    assert_eq!(summary["totals"]["failed"], 0);
}
