//! Workers, coordinators and servers that end in the middle of their work.

use std::time::{Duration, Instant};

use crate::common::processes_with;
use crate::setup::{
    TestServer, case_names as names, events, finished_cases, project, resume, run, start_run, wait_for,
};

#[test]
fn the_trials_of_a_killed_worker_are_run_by_another() {
    let server = TestServer::start();
    let project = project(4, "2s");
    let mut first = server.worker("first", &["-j", "2"]);
    let mut run = start_run(&project, &server, &["--worker-lease", "2s"]);
    wait_for("a trial on the first", || !events(&project, "trial_started").is_empty());
    first.process.kill();
    let _second = server.worker("second", &["-j", "2"]);
    let ended = run.0.wait().expect("ended");
    assert!(ended.code().is_some_and(|code| code < 2), "{ended}");
    assert_eq!(finished_cases(&project), names(4));
}

#[test]
fn a_worker_that_was_silent_for_longer_than_its_lease_adds_no_second_result() {
    let server = TestServer::start();
    let project = project(1, "3s");
    let first = server.worker("first", &[]);
    let mut run = start_run(&project, &server, &["--worker-lease", "1s"]);
    wait_for("a trial on the first", || !events(&project, "trial_started").is_empty());
    first.process.signal("-STOP");
    let second = server.worker("second", &[]);
    wait_for("the result of the second", || second.log().contains("case-1"));
    first.process.signal("-CONT");
    let ended = run.0.wait().expect("ended");
    assert!(ended.success(), "{ended}");
    assert_eq!(finished_cases(&project), names(1));
}

#[test]
fn a_trial_that_kills_three_workers_is_lost_and_not_failed() {
    let server = TestServer::start();
    let project = project(1, "20s");
    let mut run = start_run(&project, &server, &["--worker-lease", "1s"]);
    for number in 1..=3 {
        let mut worker = server.worker("doomed", &[]);
        wait_for("another start", || events(&project, "trial_started").len() >= number);
        worker.process.kill();
    }
    let _last = server.worker("last", &[]);
    let ended = run.0.wait().expect("ended");
    assert_eq!(ended.code(), Some(3), "the run is incomplete, and nothing has failed");
    let finished = events(&project, "trial_finished");
    assert_eq!(finished.len(), 1);
    let record = &finished[0]["record"];
    assert_eq!(record["ended"], "lost");
    let text = record.to_string();
    assert!(text.contains("3 workers took it, and none of them finished it"), "{text}");
    assert!(text.contains("not_scored"), "{text}");
    for format in ["junit", "md", "html", "json", "text"] {
        let report = project.run(&["report", "latest", "--format", format]);
        assert!(report.stdout.contains("lost"), "{format}: {}", report.stdout);
        assert!(!report.stdout.contains("<failure"), "{format}: {}", report.stdout);
    }
    let shown = project.run(&["show", "latest", "case-1"]).exits(0).stdout;
    assert!(shown.contains("the trial was lost"), "{shown}");
}

#[test]
fn a_killed_coordinator_is_resumed_and_counts_each_trial_once() {
    let server = TestServer::start();
    let project = project(6, "1s");
    let _worker = server.worker("one", &["-j", "2"]);
    let mut begun = start_run(&project, &server, &[]);
    wait_for("a result", || !events(&project, "trial_finished").is_empty());
    begun.kill();
    let resumed = resume(&project, &server.url());
    assert!(resumed.code < 2, "{}", resumed.stderr);
    assert_eq!(finished_cases(&project), names(6));
}

#[test]
fn a_killed_server_loses_nothing() {
    let mut server = TestServer::start();
    let project = project(8, "500ms");
    let _worker = server.worker("one", &["-j", "2"]);
    let mut run = start_run(&project, &server, &["--worker-lease", "5s"]);
    for _ in 0..2 {
        let before = finished_cases(&project).len();
        wait_for("a result", || finished_cases(&project).len() > before);
        server.restart(Duration::from_secs(1));
    }
    let ended = run.0.wait().expect("ended");
    assert!(ended.code().is_some_and(|code| code < 2), "{ended}");
    assert_eq!(finished_cases(&project), names(8));
}

/// Cancels a run whose agents have started other processes, and gives the time until all of them have ended.
fn cancel() -> Duration {
    let server = TestServer::start();
    let project = project(3, "1ms");
    // The shell, a process in the background and one that does not end when it is asked to.
    let command = "sleep 300 & trap '' TERM; sleep 300; sleep 300";
    let script = format!(
        "practicum_script: 1\nscenarios:\n  - when: speak\n    steps: [{{ tools: [{{ name: Bash, input: {{ command: \"{command}\" }} }}] }}, kee-ow]\n"
    );
    project.write("gull/evals/script.yaml", &script);
    let worker = server.worker("one", &["-j", "2"]);
    let mut begun = start_run(&project, &server, &[]);
    wait_for("two trials", || events(&project, "trial_started").len() == 2);
    let processes = || processes_with(&worker.home.path().display().to_string());
    let sleeping = || processes().iter().filter(|line| line.contains("sleep")).count();
    wait_for("the processes of the agents", || sleeping() >= 4);
    let asked = Instant::now();
    begun.signal("-TERM");
    let is_agent = |line: &String| line.contains("sleep") || line.contains("builtin");
    wait_for("the end of the agents", || !processes().iter().any(is_agent));
    let took = asked.elapsed();
    let ended = begun.0.wait().expect("ended");
    assert_eq!(ended.code(), Some(130));
    assert!(worker.log().contains("ready"), "the worker goes on");
    println!("cancelled within {took:?}");
    took
}

#[test]
fn a_cancelled_run_ends_its_agents_on_all_workers() {
    cancel();
}

#[test]
#[ignore = "needs a calm machine"]
fn a_cancelled_run_ends_its_agents_within_two_seconds() {
    for _ in 0..5 {
        let took = cancel();
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
}

#[test]
fn a_cancelled_run_is_continued() {
    let server = TestServer::start();
    let project = project(5, "1s");
    let _worker = server.worker("one", &["-j", "2"]);
    let mut begun = start_run(&project, &server, &[]);
    wait_for("a result", || !events(&project, "trial_finished").is_empty());
    begun.signal("-TERM");
    assert_eq!(begun.0.wait().expect("ended").code(), Some(130));
    let is_scored = |line: &&serde_json::Value| line["record"]["ended"] == "finished";
    let kept = events(&project, "trial_finished").iter().filter(is_scored).count();
    assert!((1..5).contains(&kept), "{kept}");
    let resumed = resume(&project, &server.url());
    assert!(resumed.code < 2, "{}", resumed.stderr);
    assert_eq!(resumed.json()["totals"]["trials"], 5);
    assert_eq!(resumed.json()["totals"]["not_scored"], 0);
    let scored = events(&project, "trial_finished").iter().filter(is_scored).count();
    assert_eq!(scored, 5, "what was finished is not run again");
}

#[test]
fn all_workers_together_keep_the_budget() {
    let server = TestServer::start();
    let project = project(40, "100ms");
    let script = "practicum_script: 1\ndefault: { text: kee-ow, usage: { input: 900, output: 100 } }\n";
    project.write("gull/evals/script.yaml", script);
    let _workers = [server.worker("one", &["-j", "3"]), server.worker("two", &["-j", "3"])];
    let ran = run(&project, &server, &["--max-tokens", "10000"]).exits(4);
    let trials = finished_cases(&project).len();
    println!("{trials} trials of 1000 tokens, with a budget of 10000");
    // Six trials can be running when the budget is reached.
    assert!((10..=16).contains(&trials), "{trials}: {}", ran.stderr);
}
