//! What a person at a terminal sees while trials run.

mod common;

use std::process::Command;

use common::{Project, Ran};

const EVAL: &str = "\
practicum: 1
workspace: empty
run: { agents: [slow] }
cases:
  - { id: good, prompt: p, checks: [{ contains: done }] }
  - { id: \"bad\\e[31m\", prompt: p, checks: [{ contains: never said }] }
";

fn project() -> Project {
    let project = Project::new(&[("evals/e.practicum.yaml", EVAL)]);
    let agent = "[agents.slow]\ncommand = [\"/bin/bash\", \"-c\", \"sleep 0.6; echo done\"]\n";
    project.write("practicum.toml", &format!("sandbox = \"off\"\n{agent}"));
    project
}

/// Runs practicum with a terminal of its own, by Python's standard library.
fn at_a_terminal(project: &Project, args: &str, env: &[(&str, &str)]) -> String {
    let python = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let mut command = Command::new("python3");
    command.args(["-c", python, env!("CARGO_BIN_EXE_practicum")]).args(args.split(' '));
    command.current_dir(project.path()).env_remove("CI").env("TERM", "xterm").env("HOME", project.path());
    command.envs(env.iter().copied());
    let ran = Ran::of(command.output().expect("python3 starts")).exits(1);
    ran.stdout
}

#[test]
fn a_terminal_shows_what_runs_and_is_left_tidy() {
    let shown = at_a_terminal(&project(), "run evals", &[]);
    assert!(shown.contains("good #1 (slow)\x1b[K"), "who runs: {shown:?}");
    assert!(shown.contains("0/2") && shown.contains("░"), "how far: {shown:?}");
    let (view, closing) = shown.rsplit_once("\x1b[J\x1b[?2026l").expect("it was drawn");
    assert!(!closing.contains("\x1b[K") && closing.contains("FAIL"), "then only the results: {closing:?}");
    assert!(view.contains("failed     bad"), "what failed stays: {view:?}");
    assert!(!shown.contains("bad\x1b[31m"), "no case can steer the terminal");
}

#[test]
fn where_nobody_looks_there_are_lines() {
    for env in [("CI", "true"), ("TERM", "dumb")] {
        let shown = at_a_terminal(&project(), "run evals", &[env]);
        assert!(!shown.contains("\x1b[?2026h") && shown.contains("[2/2]"), "{env:?}: {shown:?}");
    }
    let ran = project().run(&["run", "evals"]).exits(1);
    assert!(!ran.stderr.contains('\x1b') && ran.stderr.contains("[2/2]"), "{}", ran.stderr);
}

#[test]
fn quiet_says_only_what_is_wrong_and_the_results() {
    let ran = project().run(&["run", "evals", "--quiet"]).exits(1);
    assert!(!ran.stderr.contains("plan:") && !ran.stderr.contains("[2/2]"), "{}", ran.stderr);
    assert!(ran.stdout.contains("FAIL"), "{}", ran.stdout);
}
