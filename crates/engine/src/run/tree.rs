//! Every process of a trial, wherever it fled to.
//!
//! A process group is not enough: a child may leave it. So each trial's processes carry a marker
//! in their environment, we adopt orphans, and a sweep through /proc finds what is left.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, set_child_subreaper, waitpid,
};

use super::proc::{Process, environment_of, list, marker_in, orphans, stat};

/// The environment variable that marks a trial's processes.
pub const MARKER: &str = "PRACTICUM_TRIAL";

/// Orphans of the trials become our children, so that none is out of reach.
pub fn adopt_orphans() {
    // Not fatal where the kernel lacks it: the sweep by marker still finds most.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
}

/// How long a sweep may go on before what is left is given up on.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The processes of one trial.
pub struct Family {
    /// The one we started, which leads a group.
    pub root: Option<u32>,
    /// What all of them carry that have not shed their environment.
    pub marker: String,
    /// Where they work: what sits there is of the family, whatever it carries.
    pub folder: PathBuf,
}

impl Family {
    /// Whether anything is left once the root is gone: looked for only cheaply, because almost
    /// always there is nothing. Whoever left the group and lost its parent is now our child.
    pub fn may_live(&self) -> bool {
        let group = self.root.and_then(|root| Pid::from_raw(root as i32));
        group.is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
            || orphans().into_iter().any(|pid| self.has(pid))
    }

    fn has(&self, pid: i32) -> bool {
        stat(pid).is_some_and(|stat| stat.lives())
            && (marker_in(&environment_of(pid)).is_some_and(|marker| marker == self.marker)
                || self.shelters(pid))
    }

    fn shelters(&self, pid: i32) -> bool {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&self.folder))
    }

    /// Kills the process group, every descendant, and every process that carries the marker, until
    /// none is left. Returns how many could not be killed.
    pub fn sweep(&self) -> usize {
        let strays = orphans().into_iter().filter(|pid| self.has(*pid));
        let known = self.root.map(|root| root as i32).into_iter().chain(strays);
        sweep(self.root, known.collect(), Some(&self.marker))
    }
}

/// Kills every orphan we adopted and did not see the end of. For when nothing of ours runs any more.
pub fn sweep_orphans() -> usize {
    let known: HashSet<i32> = orphans().into_iter().collect();
    if known.is_empty() { 0 } else { sweep(None, known, None) }
}

/// Kills everything that a run's trials left behind, wherever it is. For runs that were killed.
pub fn sweep_run(run: &str) -> usize {
    let ending = format!("@{run}");
    let markers: HashSet<String> = list()
        .into_values()
        .filter_map(|process| process.marker)
        .filter(|marker| marker.ends_with(&ending))
        .collect();
    markers.iter().map(|marker| sweep(None, HashSet::new(), Some(marker))).sum()
}

fn sweep(root: Option<u32>, mut known: HashSet<i32>, marker: Option<&str>) -> usize {
    let deadline = Instant::now() + PATIENCE;
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

fn add_family(known: &mut HashSet<i32>, processes: &HashMap<i32, Process>, marker: Option<&str>) {
    if let Some(marker) = marker {
        let marked = processes.iter().filter(|(_, process)| process.marker.as_deref() == Some(marker));
        known.extend(marked.map(|(pid, _)| *pid));
    }
    loop {
        let more: Vec<i32> = processes
            .iter()
            .filter(|(pid, process)| !known.contains(pid) && known.contains(&process.stat.parent))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return;
        }
        known.extend(more);
    }
}

/// The first process of a sandbox outlives bubblewrap by a moment and then is ours. Waits until it
/// is gone, and with it everything in its namespace, so that nothing still writes when the room is
/// looked at.
pub async fn see_out(marker: &str) {
    let marker = marker.to_owned();
    // If it cannot be done, what is left is a zombie, and no harm to this trial.
    let _ = tokio::task::spawn_blocking(move || see_out_now(&marker)).await;
}

fn see_out_now(marker: &str) {
    let deadline = Instant::now() + PATIENCE;
    while bury(Some(marker)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Forgets the dead among those we adopted, since a zombie a trial would use up the machine's
/// process numbers. Whether some of this trial are still dying.
pub fn bury(marker: Option<&str>) -> bool {
    let mut dying = false;
    for pid in orphans() {
        let Some(stat) = stat(pid) else { continue };
        if !stat.lives() {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        } else if let Some(marker) = marker {
            // Whoever waits for the last of a namespace has already lost its own environment.
            let environment = environment_of(pid);
            dying |= environment.is_empty() || marker_in(&environment).as_deref() == Some(marker);
        }
    }
    dying
}
