//! Every process of a trial, wherever it fled to.
//!
//! A process group is not enough: a child may leave it. So each trial's processes carry a marker
//! in their environment, we adopt orphans, and a sweep through /proc finds what is left.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_child_subreaper};

/// The environment variable that marks a trial's processes.
pub const MARKER: &str = "PRACTICUM_TRIAL";

/// Orphans of the trials become our children, so that none is out of reach.
pub fn adopt_orphans() {
    // Not fatal where the kernel lacks it: the sweep by marker still finds most.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
}

/// How long a sweep may go on before what is left is given up on.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Kills the process group of `root`, every descendant of it, and every process that carries the
/// marker, until none is left. Returns how many could not be killed.
pub fn sweep(root: Option<u32>, marker: &str) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut known: HashSet<i32> = HashSet::new();
    if let Some(root) = root {
        known.insert(root as i32);
    }
    loop {
        let processes = list();
        add_family(&mut known, &processes, marker);
        let alive: Vec<i32> =
            known.iter().copied().filter(|pid| processes.get(pid).is_some_and(Process::lives)).collect();
        if alive.is_empty() {
            return 0;
        }
        if let Some(group) = root.and_then(|root| Pid::from_raw(root as i32)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        for pid in alive.iter().copied().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if Instant::now() > deadline {
            return alive.len();
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Kills everything that a run's trials left behind, wherever it is. For runs that were killed.
pub fn sweep_run(run: &str) -> usize {
    let ending = format!("@{run}");
    let markers: HashSet<String> = list()
        .into_values()
        .filter_map(|process| process.marker)
        .filter(|marker| marker.ends_with(&ending))
        .collect();
    markers.iter().map(|marker| sweep(None, marker)).sum()
}

struct Process {
    parent: i32,
    state: u8,
    marker: Option<String>,
}

impl Process {
    /// A zombie is dead; it only waits to be asked about.
    fn lives(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

fn add_family(known: &mut HashSet<i32>, processes: &HashMap<i32, Process>, marker: &str) {
    let marked = processes.iter().filter(|(_, process)| process.marker.as_deref() == Some(marker));
    known.extend(marked.map(|(pid, _)| *pid));
    loop {
        let more: Vec<i32> = processes
            .iter()
            .filter(|(pid, process)| !known.contains(pid) && known.contains(&process.parent))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return;
        }
        known.extend(more);
    }
}

fn list() -> HashMap<i32, Process> {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    let pids =
        std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
            entry.file_name().to_str()?.parse::<i32>().ok().filter(|pid| *pid != ourselves)
        });
    pids.filter_map(|pid| read(pid).map(|process| (pid, process))).collect()
}

fn read(pid: i32) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in parentheses and may hold anything, so read from the last one.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let marker = environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))
        .map(|value| String::from_utf8_lossy(value).into_owned());
    Some(Process { parent, state, marker })
}

/// Whether anything is left that a finished process started: looked for only cheaply, because
/// almost always there is nothing.
pub fn group_lives(root: u32) -> bool {
    Pid::from_raw(root as i32).is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
}
