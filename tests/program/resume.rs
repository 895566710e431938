//! Runs that are killed, resumed, reused and swept up after.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Project, Ran, processes_with, wait_until};
use serde_json::Value;

const TRIALS: usize = 50;

/// Fifty cases for an agent that notes each of its starts outside its room, then takes its time.
fn project() -> Project {
    let project = Project::new(&[]);
    let log = project.path().join("starts.log");
    let cases: String = (0..TRIALS)
        .map(|n| {
            format!("  - {{id: case-{n:02}, prompt: 'number {n}', checks: [{{contains: 'done {n}.'}}]}}\n")
        })
        .collect();
    project.write(
        "evals/e.practicum.yaml",
        &format!("practicum: 1\nworkspace: empty\nrun: {{agents: [slow]}}\ncases:\n{cases}"),
    );
    let script = format!(
        "echo \"$1\" >> {}\nsleep 0.05\nsetsid sleep 0.2 &\necho \"done ${{1#number }}.\"\n",
        log.display()
    );
    project.write("slow.sh", &script);
    let path = project.path().join("slow.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.slow]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
            path.display()
        ),
    );
    project
}

fn finished(run: &Path) -> BTreeMap<String, usize> {
    let events = std::fs::read_to_string(run.join("events.jsonl")).unwrap_or_default();
    let mut counts = BTreeMap::new();
    for line in events.lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        if event["event"] == "trial_finished" {
            *counts.entry(event["record"]["case"].as_str().expect("a case").to_owned()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn killed_at_any_point_a_run_resumes_without_losing_or_repeating() {
    for point in [0, 1, 10, 25, 45] {
        let project = project();
        let mut child = project
            .practicum(&["run", "evals", "-j", "4", "--no-cache"])
            .env("TMPDIR", project.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let deadline = Instant::now() + Duration::from_secs(30);
        let runs = project.path().join(".practicum/runs");
        loop {
            let run = std::fs::read_dir(&runs)
                .ok()
                .and_then(|mut runs| runs.next())
                .map(|run| run.expect("a run").path());
            let done = run.as_deref().map_or(0, |run| finished(run).len());
            if run.is_some_and(|run| run.join("events.jsonl").exists()) && done >= point {
                break;
            }
            assert!(Instant::now() < deadline, "never reached {point}");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("gone");
        let run = project.only_run();
        let before = finished(&run);

        let mut resume = project.practicum(&["run", "--resume", "--json"]);
        let ran =
            crate::common::Ran::of(resume.env("TMPDIR", project.path()).output().expect("starts")).exits(0);
        assert_eq!(ran.json()["totals"]["passed"], TRIALS, "killed after {point}");
        let after = finished(&project.only_run());
        assert_eq!(after.len(), TRIALS);
        assert!(after.values().all(|count| *count == 1), "no trial is finished twice: {after:?}");
        assert!(before.keys().all(|case| after.contains_key(case)));

        // What was finished before is not started again; only trials in flight may be.
        let starts = std::fs::read_to_string(project.path().join("starts.log")).expect("starts");
        let mut by_case: BTreeMap<&str, usize> = BTreeMap::new();
        starts.lines().for_each(|line| *by_case.entry(line).or_default() += 1);
        for case in before.keys() {
            let number: usize = case.strip_prefix("case-").expect("a number").parse().expect("a number");
            assert_eq!(by_case[format!("number {number}").as_str()], 1, "{case} ran again after {point}");
        }
        assert_eq!(
            processes_with(&format!("@{}", run.file_name().expect("an id").to_string_lossy())),
            [""; 0]
        );
        let rooms: Vec<String> = std::fs::read_dir(project.path())
            .expect("the project")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("practicum-"))
            .collect();
        assert_eq!(rooms, [""; 0], "no workspace is left");
    }
}

#[test]
fn clean_sweeps_up_after_a_killed_run() {
    let project = project();
    project.write("slow.sh", "setsid sleep 320 &\nsleep 321\n");
    let mut child = project
        .practicum(&["run", "evals", "-j", "2"])
        .env("TMPDIR", project.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    let marker = || {
        let run = std::fs::read_dir(project.path().join(".practicum/runs")).ok()?.next()?.ok()?;
        Some(format!("@{}", run.file_name().to_string_lossy()))
    };
    while marker().is_none_or(|marker| processes_with(&marker).len() < 4) {
        assert!(Instant::now() < deadline, "the agents never started");
        std::thread::sleep(Duration::from_millis(10));
    }
    let marker = marker().expect("a run");
    let ran = project.run(&["clean"]).exits(0);
    assert!(ran.stdout.contains("1 still going on"), "{}", ran.stdout);
    child.kill().expect("SIGKILL");
    child.wait().expect("gone");
    let ran = project.run(&["clean"]).exits(0);
    assert!(ran.stdout.contains("after 1 killed run,"), "{}", ran.stdout);
    assert_eq!(processes_with(&marker), [""; 0]);
}

#[test]
fn a_trial_is_reused_only_while_nothing_that_decides_it_changes() {
    let project = project();
    let starts =
        || std::fs::read_to_string(project.path().join("starts.log")).unwrap_or_default().lines().count();
    project.run(&["run", "evals", "-j", "8"]).exits(0);
    assert_eq!(starts(), TRIALS);
    let ran = project.run(&["run", "evals", "--json"]).exits(0);
    assert!(ran.stderr.contains("50 reuse, 0 run"), "{}", ran.stderr);
    assert_eq!(
        (ran.json()["totals"]["passed"].as_u64(), starts()),
        (Some(50), TRIALS),
        "nothing ran, and all counts"
    );

    let eval = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("the evals");
    project.write("evals/e.practicum.yaml", &eval.replace("'number 7'", "'number 7 '"));
    let ran = project.run(&["run", "evals", "--dry-run"]).exits(0);
    assert!(ran.stderr.contains("49 reuse, 1 run"), "{}", ran.stderr);
    let planned = project.run(&["run", "evals", "--dry-run", "--json"]).exits(0).json();
    assert_eq!(planned["trials"], TRIALS);
    let toml = std::fs::read_to_string(project.path().join("practicum.toml")).expect("the agents");
    project.write("practicum.toml", &toml.replace("{prompt}\"", "{prompt}\", \"--more\""));
    let ran = project.run(&["run", "evals", "--dry-run"]).exits(0);
    assert!(!ran.stderr.contains("reuse"), "an agent that is called otherwise is another: {}", ran.stderr);
    project.write("practicum.toml", &toml);
    for (args, same) in [
        (&["--sandbox", "auto"][..], false),
        (&["--env", "LANG"], false),
        (&["--env", "NOT_SET"], true),
        (&[], true),
    ] {
        let mut command = project.practicum(&[&["run", "evals", "--dry-run"], args].concat());
        let ran = Ran::of(command.env("LANG", "C").output().expect("starts")).exits(0);
        assert_eq!(ran.stderr.contains("49 reuse, 1 run"), same, "{args:?}: {}", ran.stderr);
    }
    let script = std::fs::read_to_string(project.path().join("slow.sh")).expect("the agent");
    project.write("slow.sh", &format!("{script}# Another one.\n"));
    let ran = project.run(&["run", "evals", "--dry-run"]).exits(0);
    assert!(!ran.stderr.contains("reuse"), "what bash reads is the agent: {}", ran.stderr);
    project.run(&["run", "evals", "--no-cache", "-j", "8"]);
    assert_eq!(starts(), 2 * TRIALS);

    let runs = project.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs["runs"].as_array().expect("runs").len(), 3);
    let ran = project.run(&["show", "latest", "case-08"]).exits(0);
    assert!(
        ran.stdout.contains("case-08-") && ran.stdout.contains("passed") && ran.stdout.contains("done 8."),
        "{}",
        ran.stdout
    );
    let ran = project.run(&["clean", "--keep", "1"]).exits(0);
    assert!(ran.stdout.contains("removed 2 records"), "{}", ran.stdout);
    let ran = project.run(&["run", "evals", "--dry-run"]).exits(0);
    assert!(
        ran.stderr.contains("50 reuse, 0 run"),
        "what ran without looking is remembered too: {}",
        ran.stderr
    );
    project.run(&["clean", "--keep", "0"]).exits(0);
    let ran = project.run(&["run", "evals", "--dry-run"]).exits(0);
    assert!(!ran.stderr.contains("reuse"), "a record that is gone cannot be reused: {}", ran.stderr);
}

/// The agents that were started so far. What a mode adds stands before the prompt.
fn starts(project: &Project) -> usize {
    let log = std::fs::read_to_string(project.path().join("starts.log")).unwrap_or_default();
    log.lines().filter(|line| line.starts_with("number ")).count()
}

/// Starts a command, and ends it in this way once so many agents were started.
fn end_after(project: &Project, args: &[&str], agents: usize, end: impl Fn(&mut Child)) -> Ran {
    let mut child = project
        .practicum(args)
        .env("TMPDIR", project.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    wait_until(|| starts(project) >= agents);
    end(&mut child);
    Ran::of(child.wait_with_output().expect("gone"))
}

fn kill(child: &mut Child) {
    child.kill().expect("SIGKILL");
}

fn again(project: &Project, args: &[&str]) -> Ran {
    Ran::of(project.practicum(args).env("TMPDIR", project.path()).output().expect("starts"))
}

/// At most so many agents are at work, or done and not yet kept, when a command is ended.
const AT_ONCE: usize = 4 + 8;

#[test]
fn a_comparison_that_was_ended_goes_on_when_it_is_asked_again() {
    let project = project();
    let compare =
        ["compare", "evals", "--modes", "baseline", "smart", "-j", "4", "--sandbox", "off", "--json"];
    let ran = end_after(&project, &compare, 10, |child| crate::common::interrupt(child)).exits(130);
    assert_eq!(ran.stdout, "", "half a run is compared with nothing");
    assert!(
        ran.stderr.contains("interrupted; the same practicum compare again continues it"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("mode smart"), "no other run begins: {}", ran.stderr);
    let interrupted = project.only_run();
    let before = starts(&project);
    assert!(before < TRIALS, "{before}");

    // The run of the first mode is whole by then, and that of the second has begun.
    end_after(&project, &compare, TRIALS + 10, kill);
    let refused = again(&project, &["run", "--resume"]).exits(2);
    assert!(refused.stderr.contains("the same practicum compare again continues it"), "{}", refused.stderr);
    let listed = again(&project, &["runs"]).exits(0).stdout;
    assert!(listed.contains("broken off; the same practicum compare again"), "{listed}");

    let found = again(&project, &compare).exits(0).json();
    let sides = ["before", "after"].map(|side| found["comparisons"][0][side]["name"].clone());
    assert_eq!(sides, ["baseline", "smart"]);
    let most = 2 * TRIALS + AT_ONCE;
    assert!((2 * TRIALS..=most).contains(&starts(&project)), "{} agents were started", starts(&project));
    assert!(interrupted.join("summary.json").exists());
}

#[test]
fn a_measurement_of_noise_is_whole_or_goes_on() {
    let project = project();
    let noise = ["noise", "evals", "--repeat", "2", "-j", "4", "--sandbox", "off", "--json"];
    let known = project.path().join(".practicum/noise.json");
    let ran = end_after(&project, &noise, 10, |child| crate::common::interrupt(child)).exits(130);
    let id = project.only_run().file_name().expect("an id").to_string_lossy().into_owned();
    let way_on = format!("practicum noise --resume {id} continues it");
    assert!(ran.stderr.contains(&way_on), "{}", ran.stderr);
    assert!(!known.exists(), "half a measurement is none");

    end_after(&project, &["noise", "--resume"], TRIALS, kill);
    let refused = again(&project, &["run", "--resume"]).exits(2);
    assert!(refused.stderr.contains(&way_on), "{}", refused.stderr);
    let found = again(&project, &["noise", "--resume", &id, "--json"]).exits(0).json();
    let cases = found["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), TRIALS);
    assert!(cases.iter().all(|case| case["runs"] == 2), "{found}");
    assert!(known.exists());
    let most = 2 * TRIALS + AT_ONCE;
    assert!((2 * TRIALS..=most).contains(&starts(&project)), "{} agents were started", starts(&project));
    project.only_run();

    let run = again(&project, &["run", "evals", "-q", "--json"]).exits(0).json();
    let run = run["run"].as_str().expect("an id");
    let refused = again(&project, &["noise", "--resume", run]).exits(2);
    assert!(refused.stderr.contains("was not started by practicum noise"), "{}", refused.stderr);
}
