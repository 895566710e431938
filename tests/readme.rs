//! Every command of the README, run as a reader would run it.

mod common;

use std::process::Command;

use common::{Ran, claude, path_with};

/// The lines of the README's shell blocks.
fn commands() -> Vec<String> {
    let text = include_str!("../README.md");
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

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
fn the_commands_are_the_ones_tested_here() {
    let expected = [
        "cargo run --release -- run examples/release-notes",
        "cargo run --release -- run examples/release-notes --agent claude",
        "scripts/test",
    ];
    assert_eq!(commands(), expected);
}

#[test]
fn the_first_command_does_the_whole_job_offline_and_says_it_is_scripted() {
    let ran = run(&commands()[0], &[]).exits(0);
    assert!(ran.stdout.contains("PASS  3 of 3 trials passed"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the model's answers came from a script"), "{}", ran.stdout);
}

/// There is no model here, so the script answers for it; the rest is as in the README.
#[test]
fn the_second_command_examines_the_real_claude_code() {
    let ran = run(&commands()[1], &["--script", "examples/release-notes/evals/script.yaml"]).exits(0);
    assert!(ran.stdout.contains("PASS  3 of 3 trials passed"), "{}", ran.stdout);
}

#[test]
fn naming_another_agent_asks_a_real_model() {
    let ran = run(&format!("{} --agent claude --dry-run", commands()[0]), &["--no-judge"]).exits(0);
    assert!(!ran.stderr.contains("scripted"), "{}", ran.stderr);
}
