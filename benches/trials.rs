//! Measures the cost of a trial without its agent.
//!
//! Run with `cargo bench --bench trials`; with `-- --write` the table goes into docs/numbers.md. The agent is
//! `/bin/echo`. The floor is a program that only starts it as often, as many at once, and writes a line for each. Both
//! are measured alternately in one run, because machines are noisy; only the ratios mean anything. Projects are placed
//! as far from each other as workspaces are, and all are deleted at the end: ext4 without a journal avoids the places of
//! recently deleted files, and examines all of them for each new file nearby.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use practicum::workspace::stage::WorkspaceRoot;

const FLOOR: &str = "PRACTICUM_BENCH_FLOOR";
const AT_ONCE: &str = "PRACTICUM_BENCH_AT_ONCE";

fn main() {
    if let Ok(count) = std::env::var(FLOOR) {
        return floor(count.parse().expect("a number"));
    }
    let place = std::env::temp_dir().join(format!("practicum-bench-{}", std::process::id()));
    let place = WorkspaceRoot::create(place).expect("a folder");
    let mut table = String::from(
        "| trials at once, trials | CPU of a trial | of the floor | ratio | before | wall, ratio | peak memory | before |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (at_once, count, rounds, before) in [
        (2, 100, 5, ["", ""]),
        (8, 100, 5, ["", ""]),
        (2, 1000, 3, ["", ""]),
        (8, 1000, 3, ["3.3", "30 MB"]),
        (8, 10_000, 1, ["3.8", "98 MB"]),
    ] {
        table.push_str(&compare(place.path(), at_once, count, rounds, before));
    }
    table.push_str(&system_calls(place.path()));
    println!("{table}");
    if std::env::args().any(|arg| arg == "--write") {
        write_table(&table);
    }
    large_outputs(place.path());
}

/// Measures stored trials against starting the agent as often. Gives a row of the table.
fn compare(place: &Path, at_once: usize, count: usize, rounds: usize, before: [&str; 2]) -> String {
    let project = project(place, count, "[\"/bin/echo\", \"done\"]");
    let (mut wall, mut cpu, mut own, mut bare, mut memory) = (vec![], vec![], vec![], vec![], 0);
    for round in 1..=rounds {
        let floor = measure(&mut floor_command(&project, at_once, count));
        let ours = measure(&mut run(&project, at_once));
        println!("{count} trials, {at_once} at once, round {round}: floor {floor}, practicum {ours}");
        wall.push(ours.wall / floor.wall);
        cpu.push(ours.cpu / floor.cpu);
        own.push(ours.cpu / count as f64 * 1000.0);
        bare.push(floor.cpu / count as f64 * 1000.0);
        memory = memory.max(ours.memory / 1024);
    }
    format!(
        "| {at_once}, {count} | {:.2} ms | {:.2} ms | {:.2} | {} | {:.2} | {memory} MB | {} |\n",
        median(&mut own),
        median(&mut bare),
        median(&mut cpu),
        before[0],
        median(&mut wall),
        before[1]
    )
}

/// Counts the system calls of a trial and of the floor. Gives a sentence.
fn system_calls(place: &Path) -> String {
    const COUNT: usize = 200;
    let project = project(place, COUNT, "[\"/bin/echo\", \"done\"]");
    let count = |command: &Command| -> Option<f64> {
        let log = project.join("calls.txt");
        let mut traced = Command::new("strace");
        traced.args(["-f", "-c", "-o"]).arg(&log).arg(command.get_program()).args(command.get_args());
        traced.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        traced.current_dir(&project).stdout(Stdio::null()).stderr(Stdio::null());
        traced.status().ok().filter(std::process::ExitStatus::success)?;
        let text = std::fs::read_to_string(log).ok()?;
        let total = text.lines().find(|line| line.ends_with(" total"))?;
        // The columns are: share, seconds, microseconds of a call, calls, and errors if there were any.
        Some(total.split_whitespace().nth(3)?.parse::<f64>().ok()? / COUNT as f64)
    };
    match (count(&run(&project, 2)), count(&floor_command(&project, 2, COUNT))) {
        (Some(ours), Some(floor)) => format!(
            "\nSystem calls of a trial, with those of the agent and of starting it: {ours:.0}; of the floor: {floor:.0}; \
             before: about 1000.\n"
        ),
        _ => "\nSystem calls were not counted: strace is not installed.\n".to_owned(),
    }
}

/// Replaces the table in the documentation.
fn write_table(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/numbers.md");
    let text = std::fs::read_to_string(&path).expect("the page");
    let (begin, end) = ("<!-- begin of the measured costs -->\n", "<!-- end of the measured costs -->\n");
    let (before, rest) = text.split_once(begin).expect("a place for the table");
    let (_, after) = rest.split_once(end).expect("an end of the table");
    std::fs::write(path, format!("{before}{begin}\n{table}\n{end}{after}")).expect("written");
}

fn floor_command(project: &Path, at_once: usize, count: usize) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(FLOOR, count.to_string()).env(AT_ONCE, at_once.to_string()).current_dir(project);
    command
}

/// Measures the memory while agents write much output.
fn large_outputs(place: &Path) {
    let small = measure(&mut run(&project(place, 1, "[\"/bin/echo\", \"done\"]"), 8));
    let agent = "[\"/bin/sh\", \"-c\", \"head -c 5000000 /dev/zero | tr '\\\\0' x; echo; echo done\"]";
    let large = measure(&mut run(&project(place, 200, agent), 8));
    println!(
        "200 trials with 5 MB of output: peak memory {} MB above idle",
        (large.memory.saturating_sub(small.memory)) / 1024
    );
}

fn floor(count: usize) {
    let at_once: usize = std::env::var(AT_ONCE).expect("a number").parse().expect("a number");
    let next = AtomicUsize::new(0);
    let log = Mutex::new(std::fs::File::create("floor.log").expect("a log"));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
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

fn run(project: &Path, at_once: usize) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
    let jobs = at_once.to_string();
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
