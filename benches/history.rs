//! Measures a store of a hundred thousand trials: building its index, and queries.
//!
//! Run with `cargo bench --bench history`. The store is written as files, as runs leave them. Every time is that
//! of a whole command, with the start of the program.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 500;
const TRIALS: usize = 200;
const CASES: usize = 25;
const ROUNDS: usize = 15;

fn main() {
    let store = tempfile::tempdir().expect("a folder");
    std::fs::write(store.path().join("practicum.toml"), "").expect("written");
    let took = time(|| generate(store.path()));
    println!("a store of {} trials in {RUNS} runs, written in {took:.1?}", RUNS * TRIALS);

    let (took, memory) = measured(store.path(), &["reindex"]);
    let size = std::fs::metadata(store.path().join(".practicum/index.db")).map_or(0, |file| file.len());
    println!("reindex: {took:.1?}, {memory} MB at most; the index has {} MB", size / 1_000_000);

    for args in [
        &["runs"] as &[&str],
        &["runs", "--json"],
        &["trend"],
        &["trend", "f1", "--json"],
        &["trend", "mean_score", "--suite", "suite-3"],
        &["audit"],
    ] {
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| measured(store.path(), args).0).collect();
        let (median, slowest) = middle_and_last(&mut times);
        println!(
            "{}: median {median:.1?}, slowest {slowest:.1?}, {} MB",
            args.join(" "),
            measured(store.path(), args).1
        );
    }
    viewer(store.path());
}

/// Requests the first pages of the viewer over one connection, as a browser does.
fn viewer(project: &Path) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_practicum"))
        .arg("view")
        .current_dir(project)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("output")).read_line(&mut url).expect("a line");
    let (host, path) =
        url.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
    let newest = run_id(RUNS - 1);
    for page in [
        "api/runs".to_owned(),
        "api/trials".to_owned(),
        "api/trials?verdict=fail&limit=100".to_owned(),
        "api/trials?q=lantern".to_owned(),
        "api/trials?q=answer".to_owned(),
        format!("api/run/{newest}"),
        format!("api/run/{newest}/cases"),
        "api/trend?metric=pass_rate".to_owned(),
    ] {
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|_| {
                // This is the time between two pages of a fast reader; the viewer updates the index meanwhile.
                std::thread::sleep(Duration::from_millis(60));
                time(|| assert!(get(host, &format!("/{path}{page}")).starts_with("HTTP/1.1 200"), "{page}"))
            })
            .collect();
        let (median, slowest) = middle_and_last(&mut times);
        println!("view {page}: median {median:.1?}, slowest {slowest:.1?}");
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
    println!("view: {peak} at most");
    child.kill().expect("ends");
    child.wait().expect("ended");
}

fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).expect("connects");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Measures the wall time of a command and its peak memory in MB.
fn measured(project: &Path, args: &[&str]) -> (Duration, u64) {
    let log = project.join("time.txt");
    let took = time(|| {
        let status = Command::new("/usr/bin/time")
            .args(["-f", "%M", "-o"])
            .arg(&log)
            .arg(env!("CARGO_BIN_EXE_practicum"))
            .args(args)
            .current_dir(project)
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("starts").success(), "{args:?}");
    });
    let text = std::fs::read_to_string(&log).expect("a number");
    (took, text.trim().parse::<u64>().expect("a number") / 1024)
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn middle_and_last(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}

fn run_id(number: usize) -> String {
    format!("20260101-{number:09}-abcdef")
}

/// Writes runs as the program leaves them: a log, the run's record, and a folder with results for each trial.
fn generate(project: &Path) {
    for number in 0..RUNS {
        let id = run_id(number);
        let run = project.join(".practicum/runs").join(&id);
        let trials = run.join("trials");
        std::fs::create_dir_all(&trials).expect("created");
        let info = r#"{"schema_version":1,"started":"2026-01-01T00:00:00Z","scripted":false}"#;
        std::fs::write(run.join("run.json"), info).expect("written");
        let mut log = String::new();
        let _ = writeln!(
            log,
            r#"{{"event":"run_started","schema_version":1,"run":"{id}","at":"2026-01-01T00:00:00Z","trials":{TRIALS}}}"#
        );
        let mut passed = 0;
        for trial in 0..TRIALS {
            let verdict = if (trial * 7 + number * 3).is_multiple_of(5) { "fail" } else { "pass" };
            passed += usize::from(verdict == "pass");
            let name = format!("case-{:03}-{trial:010}", trial % CASES);
            let folder = trials.join(&name);
            std::fs::create_dir(&folder).expect("created");
            let rare = if (number * TRIALS + trial).is_multiple_of(997) { "lantern" } else { "window" };
            let words = "The answer is a table of tides with the hours of high and low water. ".repeat(12);
            std::fs::write(folder.join("output.txt"), format!("{words}{rare}")).expect("written");
            let _ = writeln!(log, "{}", record(&name, number, trial, verdict));
        }
        let failed = TRIALS - passed;
        let _ = writeln!(
            log,
            r#"{{"event":"run_finished","summary":{{"schema_version":1,"run":"{id}","ok":false,"exit":1,"totals":{{"trials":{TRIALS},"passed":{passed},"failed":{failed},"not_scored":0}},"cost_usd":1.5,"tokens":{{"input":1,"output":1,"cache_read":0,"cache_write":0}},"seconds":60.0,"gates":[],"cases":[]}}}}"#
        );
        std::fs::write(run.join("events.jsonl"), log).expect("written");
    }
}

fn record(name: &str, run: usize, trial: usize, verdict: &str) -> serde_json::Value {
    let arm = if trial.is_multiple_of(2) { "with" } else { "without" };
    let check = |id: &str, scale: Option<&str>| {
        let mut check = serde_json::json!({
            "check": id, "required": true, "verdict": verdict, "score": scale.map(|_| 0.75),
            "rationale": "The answer names the hours and the place, and warns of the sandbank.",
            "evidence": ["high and low water"],
        });
        if let Some(scale) = scale {
            check["scale"] = scale.into();
        }
        check
    };
    serde_json::json!({"event": "trial_finished", "record": {
        "trial": name, "suite": format!("suite-{}", run % 10), "case": format!("case-{:03}", trial % CASES),
        "condition": {"agent": "claude", "model": null, "arm": arm, "mode": "baseline"},
        "attempt": trial / CASES + 1, "ended": "finished", "ended_because": null, "verdict": verdict,
        "checks": [check("hours", None), check("place", None), check("length", None), check("warns", Some("0-1"))],
        "expect": "must", "fired": verdict == "pass",
        "usage": {"input": 1200, "output": 300, "cache_read": 0, "cache_write": 0},
        "cost_usd": 0.0125, "model": "m", "seconds": 12.5,
    }})
}
