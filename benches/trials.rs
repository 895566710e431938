//! Measures the cost of a trial without its agent.
//!
//! Run with `cargo bench --bench trials`. The agent is `/bin/echo`. The floor is a program that only starts it as
//! often, as many at once, and writes a line for each. Both are measured alternately in one run, because machines
//! are noisy; only the ratios mean anything. Projects are placed as far from each other as workspaces are, and all
//! are deleted at the end: ext4 without a journal avoids the places of recently deleted files, and examines all of
//! them for each new file nearby.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use practicum::workspace::stage::WorkspaceRoot;

const AT_ONCE: usize = 8;
const FLOOR: &str = "PRACTICUM_BENCH_FLOOR";

fn main() {
    if let Ok(count) = std::env::var(FLOOR) {
        return floor(count.parse().expect("a number"));
    }
    let place = std::env::temp_dir().join(format!("practicum-bench-{}", std::process::id()));
    let place = WorkspaceRoot::create(place).expect("a folder");
    many(place.path(), 1000);
    per_trial(place.path());
    large_outputs(place.path());
}

/// Measures a thousand stored trials against starting the agent a thousand times.
fn many(place: &Path, count: usize) {
    let project = project(place, count, "[\"/bin/echo\", \"done\"]");
    let (mut wall, mut cpu) = (Vec::new(), Vec::new());
    for round in 1..=5 {
        let ourselves = std::env::current_exe().expect("this program");
        let floor = measure(Command::new(ourselves).env(FLOOR, count.to_string()).current_dir(&project));
        let ours = measure(&mut run(&project));
        println!("round {round}: floor {floor}, practicum {ours}");
        wall.push(ours.wall / floor.wall);
        cpu.push(ours.cpu / floor.cpu);
    }
    println!(
        "{count} trials at -j {AT_ONCE}: {:.2}x the floor's wall, {:.2}x its CPU",
        median(&mut wall),
        median(&mut cpu)
    );
}

/// Measures the cost of a trial in a run of ten thousand against that in a run of a hundred.
fn per_trial(place: &Path) {
    let cost = |count: usize| {
        let spent = measure(&mut run(&project(place, count, "[\"/bin/echo\", \"done\"]")));
        (spent.cpu / count as f64 * 1000.0, spent.memory)
    };
    // The first run on a machine is the slowest, so the small one is measured three times.
    let mut few: Vec<f64> = (0..3).map(|_| cost(100).0).collect();
    let (many, memory) = cost(10_000);
    let few = median(&mut few);
    println!(
        "CPU of a trial: {few:.2} ms of 100, {many:.2} ms of 10,000: {:.2}x; peak memory {} MB",
        many / few,
        memory / 1024
    );
}

/// Measures the memory while agents write much output.
fn large_outputs(place: &Path) {
    let small = measure(&mut run(&project(place, 1, "[\"/bin/echo\", \"done\"]")));
    let agent = "[\"/bin/sh\", \"-c\", \"head -c 5000000 /dev/zero | tr '\\\\0' x; echo; echo done\"]";
    let large = measure(&mut run(&project(place, 200, agent)));
    println!(
        "200 trials with 5 MB of output: peak memory {} MB above idle",
        (large.memory.saturating_sub(small.memory)) / 1024
    );
}

fn floor(count: usize) {
    let next = AtomicUsize::new(0);
    let log = Mutex::new(std::fs::File::create("floor.log").expect("a log"));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    let output = Command::new("/bin/echo").arg("done").output().expect("starts");
                    let mut log = log.lock().expect("unpoisoned");
                    writeln!(log, "{}", output.stdout.len()).expect("written");
                }
            });
        }
    });
}

fn project(place: &Path, count: usize, command: &str) -> PathBuf {
    let folder = tempfile::tempdir_in(place).expect("a folder").keep();
    let cases: String = (0..count)
        .map(|n| {
            format!(
                "  - {{id: case-{n}, prompt: p, checks: [{{contains: done}}, {{max_length: 100000000}}]}}\n"
            )
        })
        .collect();
    let suite = format!("practicum: 1\nworkspace: empty\nrun: {{agents: [echo]}}\ncases:\n{cases}");
    std::fs::write(folder.join("e.practicum.yaml"), suite).expect("written");
    std::fs::write(folder.join("practicum.toml"), format!("[agents.echo]\ncommand = {command}\n"))
        .expect("written");
    folder
}

fn run(project: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
    let jobs = AT_ONCE.to_string();
    command.args(["run", ".", "-j", &jobs, "--sandbox", "off", "--no-cache", "--json"]).current_dir(project);
    command
}

struct Spent {
    wall: f64,
    cpu: f64,
    /// Peak memory in kilobytes.
    memory: u64,
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} s wall, {:.2} s CPU, {} MB", self.wall, self.cpu, self.memory / 1024)
    }
}

/// Measures the time of the program and all processes that it waited for, and the peak memory, with
/// `/usr/bin/time`.
fn measure(command: &mut Command) -> Spent {
    let started = Instant::now();
    let program = command.get_program().to_owned();
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-f", "%U %S %M", "-o", "time.txt"]).arg(program).args(command.get_args());
    timed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        timed.current_dir(folder);
    }
    let status = timed.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("starts");
    let wall = started.elapsed().as_secs_f64();
    assert!(status.success(), "{timed:?}");
    let folder = command.get_current_dir().expect("a folder");
    let text = std::fs::read_to_string(folder.join("time.txt")).expect("times");
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    Spent { wall, cpu: numbers[0] + numbers[1], memory: numbers[2] as u64 }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
