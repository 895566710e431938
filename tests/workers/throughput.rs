//! Measures runs on workers. These tests take long and print numbers, so only `scripts/test --all` runs them:
//! `cargo test --release --test workers throughput -- --ignored --nocapture`.

use std::time::Instant;

use crate::setup::{TestServer, finished_cases, project, run};

/// Gives a number from the environment, for shorter and longer measurements.
fn count(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
#[ignore = "takes minutes"]
fn ten_thousand_trials_on_four_workers() {
    let trials = count("PRACTICUM_TEST_TRIALS", 10_000);
    let server = TestServer::start();
    let (here, there) = (project(trials, "1ms"), project(trials, "1ms"));
    let started = Instant::now();
    here.run(&["run", "gull", "--sandbox", "off", "--json", "--no-cache", "-j", "4"]);
    let local = started.elapsed();
    let _workers: Vec<_> = (1..=4).map(|number| server.worker(&format!("worker-{number}"), &[])).collect();
    let started = Instant::now();
    let ran = run(&there, &server, &["--no-cache"]);
    let shared = started.elapsed();
    let mut cases = finished_cases(&there);
    cases.dedup();
    assert_eq!(cases.len(), trials, "{}", ran.stderr);
    let per_trial = |time: std::time::Duration| time.as_secs_f64() * 1000.0 / trials as f64;
    println!(
        "{trials} trials: 4 workers {shared:.1?} ({:.1} ms a trial), one process with -j 4 {local:.1?} ({:.1} ms a trial)",
        per_trial(shared),
        per_trial(local)
    );
}

#[test]
#[ignore = "takes minutes"]
fn four_workers_with_an_agent_of_one_second() {
    let trials = count("PRACTICUM_TEST_SLOW_TRIALS", 120);
    let server = TestServer::start();
    let (here, there) = (project(trials, "1s"), project(trials, "1s"));
    let started = Instant::now();
    here.run(&["run", "gull", "--sandbox", "off", "--json", "--no-cache", "-j", "8"]);
    let local = started.elapsed();
    let _workers: Vec<_> =
        (1..=4).map(|number| server.worker(&format!("worker-{number}"), &["-j", "2"])).collect();
    let started = Instant::now();
    run(&there, &server, &["--no-cache"]);
    let shared = started.elapsed();
    assert_eq!(finished_cases(&there).len(), trials);
    let share = local.as_secs_f64() / shared.as_secs_f64();
    println!(
        "{trials} trials of 1 s: one process with -j 8 {local:.1?}, 4 workers with -j 2 {shared:.1?}: {share:.2}"
    );
}
