//! Runs that are killed at random moments and resumed.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Project, wait_until};

const KILLS: usize = 30;

/// The number of starts of the agent for each case.
fn starts(project: &Project) -> [usize; super::CASES] {
    let log = std::fs::read_to_string(project.path().join("starts.log")).unwrap_or_default();
    std::array::from_fn(|n| log.lines().filter(|line| *line == n.to_string()).count())
}

/// The cases whose end was announced on standard error.
fn announced(stderr: &str) -> Vec<usize> {
    let ended = stderr.lines().filter(|line| line.contains("passed") || line.contains("failed"));
    let ids = ended.filter_map(|line| line.split("case-").nth(1)?.split(' ').next()?.parse().ok());
    ids.collect()
}

/// The newest run that can be resumed. A run that was killed before it was marked has no results yet.
fn newest_run(project: &Path) -> Option<PathBuf> {
    let runs = std::fs::read_dir(project.join(".practicum/runs")).into_iter().flatten().flatten();
    runs.map(|run| run.path()).filter(|run| run.join("run.json.mark").exists()).max()
}

#[test]
fn a_killed_run_loses_or_repeats_a_result() {
    let args = ["run", "evals", "-j", "2", "--no-cache", "--json"];
    let whole = super::project();
    let started = Instant::now();
    let expected = super::results(&whole.run(&args).exits(1).json());
    let full_time = started.elapsed();
    let (kept, unborn) = (AtomicUsize::new(0), AtomicUsize::new(0));
    super::two_at_a_time(KILLS, |n| {
        let project = super::project();
        let mut command = project.practicum(&args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
        // Every sixth is killed at any moment since its start, and the others when so many agents have started.
        let thousandths = super::random(n as u64) % 1000;
        if n % super::CASES == 0 {
            std::thread::sleep(full_time.mul_f64(thousandths as f64 / 1000.0));
        } else {
            wait_until(|| starts(&project).iter().sum::<usize>() >= n % super::CASES);
            std::thread::sleep(Duration::from_millis(thousandths / 5));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        // What the agent inherited is closed when it ends, so this also waits for agents.
        let mut stderr = Vec::new();
        child.stderr.take().expect("piped").read_to_end(&mut stderr).expect("read");
        let told = announced(&String::from_utf8_lossy(&stderr));
        let before = starts(&project);
        let about = format!("kill {n} ({thousandths}): told {told:?}, starts {before:?}");
        let resumed = match newest_run(project.path()) {
            Some(_) => project.run(&["run", "--resume", "latest", "--json"]),
            None => {
                assert!(told.is_empty(), "{about}");
                unborn.fetch_add(1, Ordering::Relaxed);
                project.run(&args)
            }
        };
        assert_eq!(resumed.code, 1, "{about}: {}\n{}", resumed.stdout, resumed.stderr);
        assert_eq!(super::results(&resumed.json()), expected, "{about}");
        let after = starts(&project);
        assert!(told.iter().all(|case| after[*case] == before[*case]), "{about}: {after:?} repeats a result");
        let run = newest_run(project.path()).expect("a run");
        let folders = std::fs::read_dir(run.join("trials")).expect("trials").count();
        assert_eq!(folders, super::CASES, "{about}");
        assert!(!run.join("live.json").exists(), "{about}");
        assert_eq!(project.processes(), [""; 0], "{about}");
        kept.fetch_add(told.len(), Ordering::Relaxed);
    });
    println!(
        "{KILLS} kills: {} before the run began, {} announced results kept, none lost or repeated",
        unborn.into_inner(),
        kept.into_inner()
    );
}
