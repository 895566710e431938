//! Every process of a trial, wherever it fled to.
//!
//! A process group is not enough: a child may leave it. So each trial's processes carry a marker
//! in their environment, we adopt orphans, and a sweep through /proc finds what is left.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, set_child_subreaper, waitpid,
};

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
    fn lives(&self) -> bool {
        lives(self.state)
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
    pids().filter_map(|pid| read(pid).map(|process| (pid, process))).collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        entry.file_name().to_str()?.parse::<i32>().ok().filter(|pid| *pid != ourselves)
    })
}

fn read(pid: i32) -> Option<Process> {
    let Stat { state, parent, .. } = stat(pid)?;
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    Some(Process { parent, state, marker: marker_in(&environment) })
}

fn marker_in(environment: &[u8]) -> Option<String> {
    environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

struct Stat {
    state: u8,
    parent: i32,
    session: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name stands in parentheses and may hold anything, so read from the last one.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // The group stands between.
    let session = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, parent, session })
}

/// The first process of a sandbox outlives bubblewrap by a moment and then is ours. Waits until it
/// is gone, and with it everything in its namespace, so that nothing still writes when the room is
/// looked at; and forgets it, since a zombie a trial would use up the machine's process numbers.
pub async fn bury(marker: &str) {
    let marker = marker.to_owned();
    // If it cannot be done, what is left is a zombie, and no harm to this trial.
    let _ = tokio::task::spawn_blocking(move || bury_now(&marker)).await;
}

fn bury_now(marker: &str) {
    let deadline = Instant::now() + PATIENCE;
    while bury_some(marker) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Forgets the dead among those we adopted. Whether some of this trial are still dying.
fn bury_some(marker: &str) -> bool {
    let ourselves = rustix::process::getpid().as_raw_nonzero().get();
    // Not asked with getsid: in a container whose session began outside of it the answer is 0,
    // which is no process number there and a good answer here.
    let Some(Stat { session, .. }) = stat(ourselves) else { return false };
    let mut dying = false;
    for pid in pids() {
        let Some(stat) = stat(pid) else { continue };
        // What we started ourselves leads a group of our session, and so cannot leave it.
        if stat.parent != ourselves || stat.session == session {
            continue;
        }
        if !lives(stat.state) {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
            continue;
        }
        // Whoever waits for the last of a namespace has already lost its own environment.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        dying |= environment.is_empty() || marker_in(&environment).as_deref() == Some(marker);
    }
    dying
}

/// A zombie is dead; it only waits to be asked about.
fn lives(state: u8) -> bool {
    !matches!(state, b'Z' | b'X')
}

/// Whether anything is left that a finished process started: looked for only cheaply, because
/// almost always there is nothing.
pub fn group_lives(root: u32) -> bool {
    Pid::from_raw(root as i32).is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
}
