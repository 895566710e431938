//! What a person at a terminal sees while trials run.

use std::process::Command;

use crate::common::{Project, Ran};

const EVAL: &str = "\
practicum: 1
workspace: empty
run: { agents: [slow] }
cases:
  - { id: good, prompt: p, checks: [{ contains: done }] }
  - { id: bad, prompt: p, checks: [{ contains: never said }] }
";

fn project() -> Project {
    let project = Project::new(&[("evals/e.practicum.yaml", EVAL)]);
    let agent =
        "[agents.slow]\ncommand = [\"/bin/bash\", \"-c\", \"sleep 0.6; printf 'done bad\\\\033[31m'\"]\n";
    project.write("practicum.toml", &format!("sandbox = \"off\"\n{agent}"));
    project
}

/// Runs practicum with a terminal of its own, by Python's standard library.
fn at_a_terminal(project: &Project, args: &str, env: &[(&str, &str)]) -> String {
    let python = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let mut command = Command::new("python3");
    command.args(["-c", python, env!("CARGO_BIN_EXE_practicum")]).args(args.split(' '));
    command.current_dir(project.path()).env_remove("CI").env("TERM", "xterm").env("HOME", project.path());
    command.env("PRACTICUM_TRUST", "settings");
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
    assert!(!shown.contains("bad\x1b[31m"), "no agent can control the terminal");
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

/// Of twenty cases the first fails and ends the run: the others did not pass, they were not run.
#[test]
fn what_was_not_run_is_not_said_to_have_passed() {
    let cases: String = (0..20)
        .map(|n| format!("  - {{ id: c{n}, prompt: p, checks: [{{ contains: never }}] }}\n"))
        .collect();
    let project = project();
    project.write(
        "evals/e.practicum.yaml",
        &format!("practicum: 1\nworkspace: empty\nrun: {{ agents: [slow] }}\ncases:\n{cases}"),
    );
    let shown = project.run(&["run", "evals", "--fail-fast", "-j", "1", "-q"]).exits(1).stdout;
    assert!(shown.contains("? 19 cases not run") && !shown.contains("cases passed"), "{shown}");
}

/// The command below a failed case is copied and run as it is, where the run was begun.
#[test]
fn the_command_below_a_failed_case_shows_its_trial_from_anywhere() {
    let project = project();
    for (folder, path) in [(".", "evals"), ("evals", ".")] {
        let run = |args: &[&str]| {
            let mut command = project.practicum(args);
            Ran::of(command.current_dir(project.path().join(folder)).output().expect("runs"))
        };
        let shown = run(&["run", path, "-q"]).exits(1).stdout;
        let line =
            shown.lines().find_map(|line| line.trim().strip_prefix("practicum show ")).expect("a command");
        let arguments: Vec<&str> = std::iter::once("show").chain(line.split(' ')).collect();
        let message = run(&arguments).exits(0).stdout;
        assert!(message.contains("never said"), "{folder}: {line}: {message}");
    }
}
