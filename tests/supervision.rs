//! Agents that misbehave: what they may leave behind is nothing.

mod common;

use std::time::{Duration, Instant};

use common::{Project, Ran};
use serde_json::Value;

const EVAL: &str = "\
practicum: 1
workspace: empty
run: { agents: [rogue], timeout: 30s }
cases:
  - { id: CASE, prompt: p, checks: [{ contains: done }] }
";

/// A project whose agent is a shell script. Without a sandbox, which would do half of the work:
/// tests/sandbox.rs has the same agents behind walls.
fn rogue(case: &str, script: &str) -> Project {
    let project =
        Project::new(&[("rogue.sh", script), ("evals/e.practicum.yaml", &EVAL.replace("CASE", case))]);
    let path = project.path().join("rogue.sh");
    project.write(
        "practicum.toml",
        &format!("sandbox = \"off\"\n[agents.rogue]\ncommand = [\"/bin/bash\", \"{}\"]\n", path.display()),
    );
    project
}

fn case(summary: &Value) -> &Value {
    &summary["cases"][0]
}

#[test]
fn no_child_survives_the_time_limit() {
    // A child of its own session, a double-forked one without our marker, one that ignores SIGTERM.
    let script = "\
setsid sleep 300 &
(trap '' TERM; sleep 301) &
( ( env -i /bin/sleep 302 & ) & )
(setsid bash -c 'trap \"\" TERM HUP; sleep 303' &)
sleep 300
";
    let project = rogue("limit", script);
    let started = Instant::now();
    let summary = project.run(&["run", "evals", "--timeout", "1s", "--json"]).exits(3).json();
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert_eq!(case(&summary)["endings"]["timed_out"], 1);
    assert_eq!(project.processes(), [""; 0]);
    let left = std::process::Command::new("pgrep").args(["-f", "sleep 30[0-3]"]).output().expect("pgrep");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "also those that shed their environment");
}

#[test]
fn what_an_agent_leaves_running_is_ended_and_told() {
    let project = rogue("leftover", "sleep 310 &\necho done\n");
    let summary = project.run(&["run", "evals", "--json"]).exits(0).json();
    assert_eq!(case(&summary)["passed"], 1);
    assert_eq!(project.processes(), [""; 0]);
    let events = std::fs::read_to_string(project.only_run().join("events.jsonl")).expect("events");
    assert!(events.contains("left processes running"), "{events}");
}

#[test]
fn also_what_left_the_group_or_shed_its_environment() {
    for (script, message) in [
        ("(setsid sleep 311 >/dev/null 2>&1 &)\necho done\n", true),
        ("(env -i setsid sleep 312 >/dev/null 2>&1 &)\necho done\n", true),
        // Nothing says whose it was, but with the run it ends.
        ("(cd / && env -i setsid sleep 313 >/dev/null 2>&1 &)\necho done\n", false),
    ] {
        let project = rogue("fled", script);
        project.run(&["run", "evals", "--json"]).exits(0);
        let left = std::process::Command::new("pgrep").args(["-f", "sleep 31[1-3]"]).output().expect("pgrep");
        assert_eq!(String::from_utf8_lossy(&left.stdout), "", "{script}");
        let events = std::fs::read_to_string(project.only_run().join("events.jsonl")).expect("events");
        assert!(!message || events.contains("left processes running"), "{script}");
    }
}

#[test]
fn a_crash_is_not_a_failed_eval() {
    for script in ["echo done; exit 3", "kill -9 $$"] {
        let project = rogue("crash", script);
        let summary = project.run(&["run", "evals", "--json"]).exits(3).json();
        assert_eq!(case(&summary)["endings"]["crashed"], 1, "{script}");
        assert_eq!(case(&summary)["failed"], 0, "{script}");
    }
}

#[test]
fn the_environment_is_empty_but_for_what_is_allowed() {
    let project =
        rogue("env", "env | cut -d= -f1 | sort | tr '\\n' ' '; echo; echo \"$HOME\"; pwd; echo done");
    let mut command = project.practicum(&["run", "evals"]);
    command.env("AWS_SECRET_ACCESS_KEY", "hidden-value").env("RANDOM_THING", "x");
    Ran::of(command.output().expect("starts")).exits(0);
    let trial = std::fs::read_dir(project.only_run().join("trials"))
        .expect("trials")
        .flatten()
        .next()
        .expect("one")
        .path();
    let output = std::fs::read_to_string(trial.join("output.txt")).expect("output");
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(
        lines[0].trim(),
        "HOME LANG OLDPWD PATH PRACTICUM_TRIAL PWD SHLVL TMPDIR _".replace("OLDPWD ", ""),
        "{output}"
    );
    assert!(
        !lines[1].starts_with(&project.path().display().to_string()),
        "not the user's home: {}",
        lines[1]
    );
    assert!(!lines[2].contains("env-"), "the room's name does not tell the case: {}", lines[2]);
}

#[test]
fn a_secret_is_not_stored() {
    let project = rogue(
        "secret",
        "echo \"done $MY_API_KEY\"; echo \"$MY_API_KEY\" > leak.txt; echo \"$MY_API_KEY\" >&2",
    );
    let toml = std::fs::read_to_string(project.path().join("practicum.toml")).expect("toml");
    project.write("practicum.toml", &format!("{toml}pass_env = [\"MY_API_KEY\"]\n"));
    let mut command = project.practicum(&["run", "evals"]);
    let ran = Ran::of(command.env("MY_API_KEY", "sk-very-secret-123").output().expect("starts")).exits(0);
    assert!(!ran.stdout.contains("sk-very-secret-123") && !ran.stderr.contains("sk-very-secret-123"));
    let found = std::process::Command::new("grep")
        .args(["-r", "sk-very-secret-123", ".practicum"])
        .current_dir(project.path())
        .output()
        .expect("grep");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[test]
fn a_do_nothing_agent_does_not_pass() {
    let project = rogue("nothing", "exit 0");
    let summary = project.run(&["run", "evals", "--json"]).exits(1).json();
    assert_eq!(case(&summary)["failed"], 1);
}

#[test]
fn json_on_stdout_is_not_mixed_with_chatter() {
    let project = rogue("chatter", "echo done; echo noise >&2");
    let ran = project.run(&["run", "evals", "--json"]).exits(0);
    assert_eq!(ran.json()["totals"]["passed"], 1);
    assert!(
        ran.stderr.contains("plan: 1 trial of 1 case in 1 suite"),
        "progress is shown on standard error: {}",
        ran.stderr
    );
}

#[test]
fn a_flood_of_output_is_bounded() {
    let project = rogue("flood", "head -c 300000000 /dev/zero | tr '\\0' 'x'; echo; echo done");
    let summary = project.run(&["run", "evals", "--json"]).exits(3).json();
    assert_eq!(case(&summary)["endings"]["finished"], 1);
    assert_eq!(case(&summary)["not_scored"], 1, "what was not kept may have decided: {summary}");
    let again = project.run(&["grade", "latest", "--json"]).exits(3).json();
    assert_eq!(again["summary"]["totals"]["not_scored"], 1, "nor when it is graded again");
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let trials = runs.flat_map(|run| std::fs::read_dir(run.path().join("trials")).expect("trials")).flatten();
    let trial = trials.map(|trial| trial.path()).next().expect("one");
    let kept = std::fs::metadata(trial.join("transcript.jsonl")).expect("a transcript").len();
    assert!(kept < 270_000_000, "{kept}");
}

#[test]
fn setup_runs_only_with_trust_and_a_failed_one_skips_the_case() {
    let project = rogue("setup", "cat ready.txt; echo done");
    let eval = EVAL
        .replace("CASE", "setup")
        .replace("prompt: p,", "prompt: p, setup: 'echo set > ready.txt', teardown: 'exit 1',");
    project.write("evals/e.practicum.yaml", &eval);
    let ran = project.run(&["run", "evals"]).exits(2);
    assert!(ran.stderr.contains("--trust"), "{}", ran.stderr);
    let summary = project.run(&["run", "evals", "--trust", "--json"]).exits(0).json();
    assert_eq!(case(&summary)["passed"], 1, "a failed teardown changes nothing");

    project.write("evals/e.practicum.yaml", &eval.replace("echo set > ready.txt", "exit 7"));
    let summary = project.run(&["run", "evals", "--trust", "--json"]).exits(3).json();
    assert_eq!(case(&summary)["endings"]["setup_failed"], 1, "skipped, and nothing else was measured");
    assert_eq!(summary["totals"]["failed"], 0);
    let message = project.run(&["run", "evals", "--trust"]).exits(3).stdout;
    assert!(message.contains("the setup script failed"), "{message}");
}

#[test]
fn what_an_agent_links_to_its_own_work_is_its_work() {
    let project = rogue("linked", "echo done > real.md; ln -s real.md link.md; ln -s /etc/passwd out.md");
    let on = |name: &str, text: &str| {
        EVAL.replace("CASE", "linked")
            .replace("contains: done", &format!("contains: {text}, on: {{file: {name}}}"))
    };
    for (name, text, code) in [("link.md", "done", 0), ("real.md", "done", 0), ("out.md", "root", 1)] {
        project.write("evals/e.practicum.yaml", &on(name, text));
        project.run(&["run", "evals"]).exits(code);
    }
}

#[test]
fn a_teardown_takes_nothing_from_what_is_marked_and_kept() {
    let project = rogue("torn", "echo done | tee out.txt");
    let eval = EVAL
        .replace("CASE", "torn")
        .replace(
            "prompt: p,",
            "prompt: p, teardown: 'test -f out.txt && rm out.txt && echo gone > gone.txt',",
        )
        .replace("checks: [", "checks: [{file: {path: out.txt, contains: done}}, ");
    project.write("evals/e.practicum.yaml", &eval);
    let summary = project.run(&["run", "evals", "--trust", "--json"]).exits(0).json();
    assert_eq!(case(&summary)["passed"], 1, "{summary}");
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    let trial = trials.flatten().next().expect("one").path();
    assert_eq!(std::fs::read_to_string(trial.join("files/out.txt")).expect("kept"), "done\n");
    let facts = std::fs::read_to_string(trial.join("facts.json")).expect("facts");
    assert!(!facts.contains("gone.txt"), "{facts}");
    let record = std::fs::read_to_string(trial.join("checks.json")).expect("a record");
    assert!(!record.contains("teardown failed"), "{record}");
}

#[test]
fn a_reader_who_goes_away_does_not_end_a_run() {
    for args in [&["run", "evals", "--no-cache"][..], &["run", "evals", "--explain"]] {
        let project = rogue("unread", "echo done\n");
        let mut command = project.practicum(args);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("starts");
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().expect("ends").code(), Some(0), "{args:?}");
    }
}

#[test]
fn a_record_that_cannot_be_kept_stops_the_run_and_it_can_be_resumed() {
    let project = rogue("full", "echo done\n");
    // A file that may not grow stands in for a disk that is full.
    let script = "trap '' XFSZ; ulimit -f 24; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_practicum");
    let args = ["run", "evals", "--repeat", "60", "-j", "1"];
    let mut command = std::process::Command::new("/bin/bash");
    command.args(["-c", script, program]).args(args).current_dir(project.path()).env("HOME", project.path());
    command.env("PRACTICUM_TRUST", "settings");
    let ran = Ran::of(command.output().expect("starts")).exits(3);
    assert!(ran.stderr.contains("practicum run --resume continues"), "{}", ran.stderr);
    let begun = ran.stderr.lines().filter(|line| line.starts_with('[')).count();
    assert!((1..60).contains(&begun), "{begun} trials were paid for\n{}", ran.stderr);
    let summary = project.run(&["run", "--resume", "--json"]).exits(0).json();
    assert_eq!(summary["totals"]["passed"], 60);
}

#[test]
fn who_is_told_to_end_leaves_nothing_running_and_a_whole_record() {
    for signal in ["-TERM", "-HUP"] {
        let project = rogue("ended", "sleep 320\n");
        let mut command = project.practicum(&["run", "evals", "-q", "--timeout", "300s"]);
        command.stdout(std::process::Stdio::piped());
        let child = command.spawn().expect("starts");
        common::wait_until(|| !project.processes().is_empty());
        let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
        let ran = Ran::of(child.wait_with_output().expect("ends")).exits(130);
        assert!(ran.stdout.contains("INTERRUPTED"), "{}", ran.stdout);
        assert_eq!(project.processes(), [""; 0]);
        assert!(project.only_run().join("summary.json").is_file());
    }
}
