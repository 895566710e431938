//! The whole pipeline with the real Codex, its model played by the script gateway.

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Project, Ran, codex, path_with, processes_with};
use serde_json::Value;

const SKILL: &str = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [codex], timeout: 60s }
cases:
  - id: ID
    prompt: Greet Alice.
    checks:
      - contains: Ahoy
";

fn project(eval: &str, steps: &str) -> Project {
    let script = format!("practicum_script: 1\nscenarios:\n  - when: Greet Alice\n    steps:\n{steps}");
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", eval), ("script.yaml", &script)])
}

fn examine(project: &Project, more: &[&str]) -> Ran {
    let args = ["run", "evals", "--script", "script.yaml", "--json"];
    let mut command = project.practicum(&[&args, more].concat());
    command.env("PATH", path_with(&codex()));
    Ran::of(command.output().expect("practicum starts"))
}

/// The folder of the only trial.
fn trial(project: &Project) -> PathBuf {
    let mut trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    trials.next().expect("a trial").path()
}

#[test]
fn a_plain_answer() {
    let project = project(&EVAL.replace("ID", "plain"), "      - text: Ahoy, Alice!\n");
    let summary = examine(&project, &[]).exits(0).json();
    let case = &summary["cases"][0];
    assert_eq!(case["agent"], "codex");
    assert_eq!((&case["passed"], &case["endings"]["finished"]), (&1.into(), &1.into()));
    assert_eq!((&case["fired"]["no"], &case["fired"]["yes"]), (&1.into(), &0.into()));
}
