//! Behaviours of a model and its API towards a real agent, and the expected result of each run.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::{Project, Ran, path_with};

pub const SKILL: &str = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";

/// The number of runs at once. Runs wait for CLIs and time limits more than they compute.
const AT_ONCE: usize = 4;

/// One behaviour of the model, and the expected result of the run.
pub struct Move {
    pub name: &'static str,
    pub turns: &'static [&'static str],
    /// The script's scenarios; `USAGE` stands for an answer's hundred input and ten output tokens. Without
    /// scenarios, the agent has neither a gateway nor a key.
    pub scenarios: Option<&'static str>,
    pub flags: &'static [&'static str],
    /// Checks in addition to the one that the answer says "Ahoy".
    pub checks: &'static str,
    pub code: i32,
    pub ended: &'static str,
    pub fired: &'static str,
    /// Input and output tokens, as the agent counts them.
    pub tokens: [u64; 2],
}

impl Move {
    /// A run with a correct answer.
    pub const FINE: Move = Move {
        name: "",
        turns: &["Greet Alice."],
        scenarios: None,
        flags: &[],
        checks: "",
        code: 0,
        ended: "finished",
        fired: "no",
        tokens: [100, 10],
    };

    /// A run without an answer. Nothing is known about it, not even that no skill was activated.
    pub const FAILED: Move = Move { code: 3, fired: "unknown", tokens: [0, 0], ..Move::FINE };
}

/// Runs each behaviour with the agent in a separate run, several at a time.
pub fn play(agent: &str, program: &Path, moves: &[Move]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = moves.get(next.fetch_add(1, Ordering::Relaxed)) {
                    check(agent, program, one);
                }
            });
        }
    });
}

fn check(agent: &str, program: &Path, one: &Move) {
    let project = project(agent, one);
    let mut args = vec!["run", "evals", "--json"];
    if one.scenarios.is_some() {
        args.extend(["--script", "script.yaml"]);
    }
    args.extend(one.flags);
    let mut command = project.practicum(&args);
    // The test is about the agent's own reaction, so retries by this program are off.
    command.env("PATH", path_with(program)).env("PRACTICUM_RETRIES", "0");
    let ran = Ran::of(command.output().expect("practicum starts"));
    let about = format!("{agent}, {}:\n{}\n{}", one.name, ran.stderr, ran.stdout);
    assert_eq!(ran.code, one.code, "{about}");

    let summary = ran.json();
    let case = &summary["cases"][0];
    assert_eq!(ones(&case["endings"]), [one.ended], "{about}");
    assert_eq!(ones(&case["fired"]), [one.fired], "{about}");
    let scored = if one.ended == "finished" { "passed" } else { "not_scored" };
    assert_eq!(case[scored], 1, "{about}");
    let tokens = &summary["tokens"];
    let [input, output] = one.tokens;
    assert_eq!((&tokens["input"], &tokens["output"]), (&input.into(), &output.into()), "{about}");
    assert_eq!(project.processes(), [""; 0], "{about}");
}

fn project(agent: &str, one: &Move) -> Project {
    let prompt = serde_json::to_string(one.turns).expect("JSON");
    let eval = format!(
        "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: {{ agents: [{agent}], timeout: 60s }}\n\
         cases:\n  - id: one\n    prompt: {prompt}\n    checks:\n      - contains: Ahoy\n{}",
        one.checks
    );
    let scenarios = one.scenarios.unwrap_or_default().replace("USAGE", "usage: { input: 100, output: 10 }");
    let script = format!("practicum_script: 1\nscenarios:\n{scenarios}");
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/e.practicum.yaml", &eval), ("script.yaml", &script)])
}

/// Gives the names whose count is one.
fn ones(counts: &Value) -> Vec<&str> {
    let counts = counts.as_object().expect("counts");
    counts.iter().filter(|(_, count)| **count == 1).map(|(name, _)| name.as_str()).collect()
}
