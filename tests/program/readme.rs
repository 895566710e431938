//! The first commands that a reader of the README tries, and what they say.

use std::process::Command;

use crate::common::{Ran, claude, path_with};

const OFFLINE: &str = "cargo run --release -- run examples/release-notes";
const WITH_CLAUDE: &str = "cargo run --release -- run examples/release-notes --agent claude";

/// In this checkout, but with records and home elsewhere.
fn run(command: &str, more: &[&str]) -> Ran {
    let args = command.strip_prefix("cargo run --release -- ").expect("a command of ours");
    let root = env!("CARGO_MANIFEST_DIR");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let status = Command::new("cp").arg("-r").arg(format!("{root}/examples")).arg(elsewhere.path()).status();
    assert!(status.expect("cp").success());
    let output = Command::new(env!("CARGO_BIN_EXE_practicum"))
        .args(args.split(' '))
        .args(more)
        .current_dir(elsewhere.path())
        .env_clear()
        .env("HOME", elsewhere.path())
        .env("PATH", if more.is_empty() { "/usr/bin:/bin".to_owned() } else { path_with(&claude()) })
        .output();
    Ran::of(output.expect("practicum starts"))
}

#[test]
fn the_commands_tested_here_are_those_of_the_readme() {
    let lines: Vec<&str> = include_str!("../../README.md").lines().collect();
    for command in [OFFLINE, WITH_CLAUDE] {
        assert!(lines.contains(&command), "{command}");
    }
}

#[test]
fn the_first_command_does_the_whole_job_offline_and_says_it_is_scripted() {
    let ran = run(OFFLINE, &[]).exits(0);
    assert!(ran.stdout.contains("PASS  3 of 3 trials passed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the model's answers came from a script"), "{}", ran.stdout);
}

/// There is no model here, so the script answers for it; the rest is as in the README.
#[test]
fn the_second_command_examines_the_real_claude_code() {
    let ran = run(WITH_CLAUDE, &["--script", "examples/release-notes/evals/script.yaml"]).exits(0);
    assert!(ran.stdout.contains("PASS  3 of 3 trials passed"), "{}", ran.stdout);
}

#[test]
fn naming_another_agent_asks_a_real_model() {
    let ran = run(&format!("{OFFLINE} --agent claude --dry-run"), &["--no-judge"]).exits(0);
    assert!(!ran.stderr.contains("scripted"), "{}", ran.stderr);
}
