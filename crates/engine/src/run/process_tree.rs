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

use super::proc_fs::{ProcessInfo, environment_of, list_orphans, list_processes, marker_in, stat};

/// The environment variable that marks a trial's processes.
pub const MARKER_VARIABLE: &str = "PRACTICUM_TRIAL";

/// Orphans of the trials become our children, so that none is out of reach.
pub fn adopt_orphans() {
    // Not fatal where the kernel lacks it: the sweep by marker still finds most.
    let _ = set_child_subreaper(Some(rustix::process::getpid()));
}

/// How long a sweep may go on before what is left is given up on.
const KILL_TIMEOUT: Duration = Duration::from_millis(1500);

/// The processes of one trial.
pub struct TrialProcesses {
    /// The one we started, which leads a group.
    pub root: Option<u32>,
    /// What all of them carry that have not shed their environment.
    pub marker: String,
    /// Where they work: what sits there is of the family, whatever it carries.
    pub folder: PathBuf,
}

impl TrialProcesses {
    /// Whether anything is left once the root is gone: looked for only cheaply, because almost
    /// always there is nothing. Whoever left the group and lost its parent is now our child.
    pub fn may_be_alive(&self) -> bool {
        let group = self.root.and_then(|root| Pid::from_raw(root as i32));
        group.is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
            || list_orphans().into_iter().any(|pid| self.has(pid))
    }

    fn has(&self, pid: i32) -> bool {
        stat(pid).is_some_and(|stat| stat.is_alive())
            && (marker_in(&environment_of(pid)).is_some_and(|marker| marker == self.marker)
                || self.works_in_folder(pid))
    }

    fn works_in_folder(&self, pid: i32) -> bool {
        std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&self.folder))
    }

    /// Kills the process group, every descendant, and every process that carries the marker, until
    /// none is left. Returns how many could not be killed.
    pub fn kill_all(&self) -> usize {
        let strays = list_orphans().into_iter().filter(|pid| self.has(*pid));
        let known = self.root.map(|root| root as i32).into_iter().chain(strays);
        kill_processes(self.root, known.collect(), Some(&self.marker))
    }
}

/// Kills every orphan we adopted and did not see the end of. For when nothing of ours runs any more.
pub fn kill_orphans() -> usize {
    let known: HashSet<i32> = list_orphans().into_iter().collect();
    if known.is_empty() { 0 } else { kill_processes(None, known, None) }
}

/// Kills everything that a run's trials left behind, wherever it is. For runs that were killed.
pub fn kill_run_processes(run: &str) -> usize {
    let ending = format!("@{run}");
    let markers: HashSet<String> = list_processes()
        .into_values()
        .filter_map(|process| process.marker)
        .filter(|marker| marker.ends_with(&ending))
        .collect();
    markers.iter().map(|marker| kill_processes(None, HashSet::new(), Some(marker))).sum()
}

fn kill_processes(root: Option<u32>, mut known: HashSet<i32>, marker: Option<&str>) -> usize {
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        let processes = list_processes();
        add_related_processes(&mut known, &processes, marker);
        let alive: Vec<i32> = known
            .iter()
            .copied()
            .filter(|pid| processes.get(pid).is_some_and(ProcessInfo::is_alive))
            .collect();
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

fn add_related_processes(
    known: &mut HashSet<i32>,
    processes: &HashMap<i32, ProcessInfo>,
    marker: Option<&str>,
) {
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
pub async fn wait_for_init_exit(marker: &str) {
    let marker = marker.to_owned();
    // If it cannot be done, what is left is a zombie, and no harm to this trial.
    let _ = tokio::task::spawn_blocking(move || block_until_init_exit(&marker)).await;
}

fn block_until_init_exit(marker: &str) {
    let deadline = Instant::now() + KILL_TIMEOUT;
    while reap_dead(Some(marker)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Forgets the dead among those we adopted, since a zombie a trial would use up the machine's
/// process numbers. Whether some of this trial are still dying.
pub fn reap_dead(marker: Option<&str>) -> bool {
    let mut dying = false;
    for pid in list_orphans() {
        let Some(stat) = stat(pid) else { continue };
        if !stat.is_alive() {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        } else if let Some(marker) = marker {
            // Whoever waits for the last of a namespace has already lost its own environment.
            let environment = environment_of(pid);
            dying |= environment.is_empty() || marker_in(&environment).as_deref() == Some(marker);
        }
    }
    dying
}
