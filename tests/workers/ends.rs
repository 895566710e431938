//! Workers, coordinators and servers that end in the middle of their work.

use std::time::{Duration, Instant};

use crate::setup::{TestServer, events, finished_cases, project, run, start_run, wait_for};

fn names(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (1..=count).map(|number| format!("case-{number}")).collect();
    names.sort();
    names
}

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
fn a_trial_that_kills_three_workers_is_not_scored() {
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
    let text = finished[0]["record"].to_string();
    assert!(text.contains("3 workers took the trial") && text.contains("not_scored"), "{text}");
}

#[test]
fn a_killed_coordinator_is_resumed_and_counts_each_trial_once() {
    let server = TestServer::start();
    let project = project(6, "1s");
    let _worker = server.worker("one", &["-j", "2"]);
    let mut begun = start_run(&project, &server, &[]);
    wait_for("a result", || !events(&project, "trial_finished").is_empty());
    begun.kill();
    let url = server.url();
    let resumed = project
        .practicum(&["run", "--resume", "--json", "--workers", &url])
        .env("PRACTICUM_RECORD_KEY", crate::setup::KEY)
        .output()
        .expect("practicum starts");
    assert!(
        resumed.status.code().is_some_and(|code| code < 2),
        "{}",
        String::from_utf8_lossy(&resumed.stderr)
    );
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

#[test]
fn a_cancelled_run_ends_its_agents_on_all_workers() {
    let server = TestServer::start();
    let project = project(3, "60s");
    let worker = server.worker("one", &["-j", "2"]);
    let mut begun = start_run(&project, &server, &[]);
    wait_for("two trials", || events(&project, "trial_started").len() == 2);
    let agents = || crate::common::processes_with(&worker.home.path().display().to_string());
    wait_for("the agents", || agents().len() >= 2);
    let asked = Instant::now();
    begun.signal("-TERM");
    let ended = begun.0.wait().expect("ended");
    assert_eq!(ended.code(), Some(130));
    wait_for("the end of the agents", || !agents().iter().any(|line| line.contains("builtin")));
    println!("cancelled within {:?}", asked.elapsed());
    assert!(worker.log().contains("ready"), "the worker goes on");
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
