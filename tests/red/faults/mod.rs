//! The matrix of faults: what a bad day does to a run and its records. Each test prints how many faults it made.
//!
//! `cargo test --test red faults -- --nocapture` shows the counts. Random choices have a fixed seed.

mod clocks;
mod damage;
mod disks;
mod floods;
mod judges;
mod kills;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::common::{Project, Ran};

/// Cases of which all but the last pass.
const CASES: usize = 6;

/// Makes a project with six quick cases, whose agent writes each of its starts to `starts.log`.
fn project() -> Project {
    let log = "starts.log";
    let project = Project::new(&[]);
    let cases: String = (0..CASES)
        .map(|n| {
            format!("  - {{ id: case-{n}, prompt: '{n}', checks: [{{ contains: 'done {}.' }}] }}\n", n % 5)
        })
        .collect();
    project.write(
        "evals/e.practicum.yaml",
        &format!("practicum: 1\nworkspace: empty\nrun: {{ agents: [own] }}\ncases:\n{cases}"),
    );
    let log = project.path().join(log);
    set_agent(&project, &format!("echo $1 >> {}\nsleep 0.05\necho \"done $1.\"\n", log.display()));
    project
}

/// Sets the script that is the agent of a project.
fn set_agent(project: &Project, script: &str) {
    project.write("agent.sh", script);
    let path = project.path().join("agent.sh");
    let command = format!("command = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n", path.display());
    project.write("practicum.toml", &format!("sandbox = \"off\"\n[agents.own]\n{command}"));
}

/// Gives the results of a summary without times, ids and places.
fn results(summary: &Value) -> Vec<(String, [u64; 3])> {
    let cases = summary["cases"].as_array().expect("cases").iter();
    let count = |case: &Value, key: &str| case[key].as_u64().unwrap_or_else(|| panic!("no {key}: {case}"));
    cases
        .map(|case| {
            let id = case["id"].as_str().expect("an id").to_owned();
            (id, ["passed", "failed", "not_scored"].map(|key| count(case, key)))
        })
        .collect()
}

/// Fails if a command ended otherwise than by itself with a code that it documents.
#[track_caller]
fn ended_well(ran: &Ran, about: &str) {
    let said = format!("{about}: exit {}\n{}\n{}", ran.code, ran.stdout, ran.stderr);
    assert!((0..=3).contains(&ran.code) && !ran.stderr.contains("panicked"), "{said}");
}

/// Calls a function for each of the numbers below `count`, two at a time.
fn two_at_a_time(count: usize, one: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        break;
                    }
                    one(n);
                }
            });
        }
    });
}

/// Gives a number that looks random and is the same in every run (the generator splitmix64).
fn random(seed: u64) -> u64 {
    let mixed = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
