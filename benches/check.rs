//! Measures `practicum check` over ten thousand files, against only reading and parsing them.
//!
//! Run with `cargo bench --bench check`. Both are measured alternately in one run, because machines are noisy;
//! only the ratio means anything. Also measures the cost of each case of a large file against that of a small one,
//! and how long the program takes to print its version.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = generate(folder.path());
    let program = env!("CARGO_BIN_EXE_practicum");
    let mut ratios = Vec::new();
    for round in 1..=ROUNDS {
        let floor = time(|| files.iter().for_each(|file| plain(file)));
        let ours = time(|| {
            let status = Command::new(program)
                .args(["check", "--json"])
                .arg(folder.path())
                .stdout(Stdio::null())
                .status();
            assert!(status.expect("starts").success());
        });
        let ratio = ours.as_secs_f64() / floor.as_secs_f64();
        println!("round {round}: read and parse {floor:?}, practicum check {ours:?}, ratio {ratio:.2}");
        ratios.push(ratio);
    }
    println!("check of {FILES} files: median {:.2} times reading and parsing them", median(&mut ratios));

    for (name, cases) in [("vague.practicum.yaml", vague as fn(usize) -> String), ("evals.json", leaking)] {
        let per_case = |count: usize| {
            let folder = tempfile::tempdir().expect("a folder");
            std::fs::write(folder.path().join(name), cases(count)).expect("write");
            let check = || {
                let mut command = Command::new(program);
                command.args(["check", "--json"]).arg(folder.path()).stdout(Stdio::null());
                assert!(command.status().expect("starts").success());
            };
            let mut times: Vec<f64> =
                (0..ROUNDS).map(|_| time(check).as_secs_f64() / count as f64 * 1e6).collect();
            median(&mut times)
        };
        let (few, many) = (per_case(1000), per_case(20_000));
        let ratio = many / few;
        println!("a case of {name}: {few:.1} µs of 1,000, {many:.1} µs of 20,000, {ratio:.2} times");
    }

    let mut starts: Vec<f64> = (0..50)
        .map(|_| {
            let took = time(|| {
                let status = Command::new(program).arg("--version").stdout(Stdio::null()).status();
                assert!(status.expect("starts").success());
            });
            took.as_secs_f64() * 1000.0
        })
        .collect();
    println!("--version: median {:.2} ms", median(&mut starts));
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Does what any reader has to do: open, read, parse.
fn plain(file: &Path) {
    let text = std::fs::read_to_string(file).expect("readable");
    if file.extension().is_some_and(|ending| ending == "json") {
        black_box(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"));
    } else {
        black_box(granit_parser::Parser::new_from_str(&text).filter(Result::is_ok).count());
    }
}

/// Writes realistic files of four formats, each in a folder as users have it.
fn generate(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for number in 0..FILES {
        let (name, text) = match number % 4 {
            0 => ("evals/evals.json", writing_skills(number)),
            1 => ("skill.eval.json", clauditor(number)),
            2 => ("eval.yaml", skillet(number)),
            _ => ("suite.practicum.yaml", native(number)),
        };
        let path = folder.join(format!("group-{:02}/skill-{number:05}", number % 50)).join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
        std::fs::write(&path, text).expect("write");
        files.push(path);
        let skill = folder.join(format!("group-{:02}/skill-{number:05}/SKILL.md", number % 50));
        std::fs::write(skill, skill_text(number)).expect("write");
    }
    files
}

/// The skill that the evals are about. It is read, too, and not part of the floor.
fn skill_text(number: usize) -> String {
    let steps = "Name a rollback step for each change, and the person who decides.\n".repeat(30);
    format!(
        "---\nname: skill-{number:05}\ndescription: Plans the migration of service {number}. Use when asked for a plan.\n\
         ---\n\n# Plan\n\n{steps}"
    )
}

fn writing_skills(number: usize) -> String {
    let cases: Vec<serde_json::Value> = (0..4)
        .map(|case| {
            serde_json::json!({
                "id": format!("case-{case:02}"),
                "prompt": format!("Plan the migration of service {number} to the new queue, step {case}."),
                "files": [],
                "expectations": [
                    {"criterion": "rollback", "description": "Names a rollback step for every change it proposes", "required": true},
                    {"criterion": "length", "description": "The plan has at most ten numbered steps", "required": false},
                ],
            })
        })
        .collect();
    serde_json::to_string_pretty(&serde_json::json!({"version": "1.0", "skill": "..", "cases": cases}))
        .expect("JSON")
}

fn clauditor(number: usize) -> String {
    let spec = serde_json::json!({
        "skill_name": format!("finder-{number}"),
        "test_args": "\"Leipzig\" --count 5",
        "assertions": [
            {"id": "title", "type": "contains", "needle": "Results"},
            {"id": "entries", "type": "has_entries", "count": 3},
            {"id": "numbered", "type": "regex", "pattern": "\\*\\*\\d+\\."},
            {"id": "bullets", "type": "min_count", "pattern": "^- ", "count": 3},
        ],
        "grading_criteria": [{"id": "near", "criterion": "Is every place within the city?"}],
        "trigger_tests": {"should_trigger": ["Find a place"], "should_not_trigger": ["What is 2 + 2?"]},
    });
    serde_json::to_string_pretty(&spec).expect("JSON")
}

fn skillet(number: usize) -> String {
    format!(
        "timestamp: 2025-01-15T10:30:00Z\nname: comments\nprompt: \"Write a review comment for change {number}\"\n\
         expected: |\n  Uses the conventional comments format:\n  **issue** (blocking): what is wrong and why\n  Not only a description.\n"
    )
}

/// Makes cases that each have a problem whose position in the file must be found.
fn vague(count: usize) -> String {
    let case = |n: usize| {
        format!("  - {{id: case-{n}, prompt: Do {n}., checks: [{{judge: Does number {n} properly}}]}}\n")
    };
    format!("practicum: 1\ncases:\n{}", (0..count).map(case).collect::<String>())
}

fn leaking(count: usize) -> String {
    let case = |n: usize| {
        let expected = format!("It says the number {n} aloud");
        serde_json::json!({"id": n, "prompt": format!("Work. {expected}."), "expectations": [expected]})
    };
    let evals: Vec<serde_json::Value> = (0..count).map(case).collect();
    serde_json::json!({"skill_name": "counter", "evals": evals}).to_string()
}

fn native(number: usize) -> String {
    let mut text = format!(
        "practicum: 1\nname: suite-{number}\nworkspace: empty\nrun: {{ repeat: 3, timeout: 5m }}\ncases:\n"
    );
    for case in 0..4 {
        text.push_str(&format!(
            "  - id: case-{case}\n    prompt: Summarise report {number} in {case} sentences.\n    checks:\n      - contains: Summary\n      \
             - regex: '(?m)^# '\n      - file: {{ path: out.md, matches: '\\d+' }}\n      - judge: The summary names the cause of the outage.\n"
        ));
    }
    text
}
