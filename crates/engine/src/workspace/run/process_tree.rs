//! Finds and ends all processes of a trial.
//!
//! A process group is not enough, because a child may leave it. So each trial's processes carry a marker in their
//! environment, this program adopts orphans where the system allows it, and a search through all processes finds
//! the rest.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::process_table::{
    environment_of, exact_memory_of, folder_of, list_orphans, list_processes, list_strays, list_tree, stat,
    usage_of, used_in_memory_folder,
};
use crate::workspace::limits::TrialLimits;
use crate::workspace::sandbox::MEMORY_FOLDERS;

/// The environment variable that marks a trial's processes.
pub const MARKER_VARIABLE: &str = "PRACTICUM_TRIAL";

/// A running process.
pub struct ProcessInfo {
    pub stat: ProcessStat,
    pub marker: Option<String>,
}

/// The state, the parent and the process group of a process.
#[derive(Clone, Copy)]
pub struct ProcessStat {
    /// Whether the process is alive. A zombie is dead and only waits to be reaped.
    pub is_alive: bool,
    pub parent: i32,
    pub group: i32,
}

/// Finds the marker of a trial in the environment of a process.
pub fn marker_in(environment: &[u8]) -> Option<String> {
    environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(MARKER_VARIABLE.as_bytes())?.strip_prefix(b"="))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

/// How long killing may take before the remaining processes are given up.
const KILL_TIMEOUT: Duration = Duration::from_millis(1500);

/// The processes of one trial.
#[derive(Debug, Clone)]
pub struct TrialProcesses {
    /// The process that this program started. It leads a process group.
    pub root: Option<u32>,
    /// The marker in the environment of all these processes, unless one has cleared its environment.
    pub marker: String,
    /// The folder in which they work. A process in it belongs to the trial even without the marker.
    pub folder: PathBuf,
    /// Whether the root is the outer end of a namespace of processes, which ends all of them when it ends.
    pub has_init_process: bool,
}

impl TrialProcesses {
    /// Says whether any process is left after the root has ended. The search is a cheap one, because almost always
    /// nothing is left. A process that left the group and lost its parent is now a child of this program.
    pub fn may_be_alive(&self) -> bool {
        let group = self.root.and_then(|root| Pid::from_raw(root as i32));
        group.is_some_and(|group| rustix::process::test_kill_process_group(group).is_ok())
            || list_strays().into_iter().any(|pid| self.has(pid))
    }

    fn has(&self, pid: i32) -> bool {
        let Some(stat) = stat(pid) else { return false };
        stat.is_alive
            && (marker_in(&environment_of(pid)).is_some_and(|marker| marker == self.marker)
                || self.works_in_folder(pid)
                // macOS hides the environment of some programs. On Linux the marker is enough.
                || cfg!(target_os = "macos") && self.root.is_some_and(|root| stat.group == root as i32))
    }

    fn works_in_folder(&self, pid: i32) -> bool {
        folder_of(pid).is_some_and(|folder| folder.starts_with(&self.folder))
    }

    /// Asks every process to end, so that it can still write what it holds. Those that hold the sandbox together are
    /// not asked, because the others would end with them.
    pub fn ask_to_end(&self) {
        for pid in self.list().into_iter().skip(usize::from(self.has_init_process)) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }

    /// Says which limit these processes exceed; `None` if none.
    pub fn excess(&self, limits: &TrialLimits) -> Option<String> {
        let pids = self.list();
        let mut used = usage_of(&pids);
        if used.memory > limits.limits.memory {
            used.memory = exact_memory_of(&pids).unwrap_or(used.memory);
        }
        let sees_own_folders = pids.last().filter(|_| limits.has_private_tmp && pids.len() > 1);
        let in_folders = |pid: &i32| -> u64 {
            MEMORY_FOLDERS
                .iter()
                .filter_map(|folder| used_in_memory_folder(*pid, folder, limits.limits.memory))
                .sum()
        };
        used.memory += sees_own_folders.map_or(0, in_folders);
        limits.limits.excess_of(&used)
    }

    /// Lists the processes that are found quickly: the root with all that descend from it, and adopted ones.
    fn list(&self) -> Vec<i32> {
        let mut pids = self.root.map_or_else(Vec::new, |root| list_tree(root as i32));
        let strays: Vec<i32> =
            list_strays().into_iter().filter(|pid| !pids.contains(pid) && self.has(*pid)).collect();
        pids.extend(strays.into_iter().flat_map(list_tree));
        pids
    }

    /// Kills the process group, every descendant and every process with the marker, until none is left. Returns
    /// how many could not be killed.
    pub fn kill_all(&self) -> usize {
        let strays = list_strays().into_iter().filter(|pid| self.has(*pid));
        let known = self.root.map(|root| root as i32).into_iter().chain(strays);
        kill_processes(self.root, known.collect(), Some(&self.marker))
    }
}

/// Kills every adopted orphan that is still alive. Use it only when no trial is running.
pub(crate) fn kill_orphans() -> usize {
    let known: HashSet<i32> = list_orphans().into_iter().collect();
    if known.is_empty() { 0 } else { kill_processes(None, known, None) }
}

/// Kills all processes that the trials of a run left behind, for runs that were killed.
pub(crate) fn kill_run_processes(run: &str) -> usize {
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
            .filter(|pid| processes.get(pid).is_some_and(|process| process.stat.is_alive))
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
        let with_marker = processes.iter().filter(|(_, process)| process.marker.as_deref() == Some(marker));
        known.extend(with_marker.map(|(pid, _)| *pid));
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

/// Waits until the first process of a sandbox has ended, and with it every process in its namespace, so that
/// nothing writes any more when the workspace is examined. That process outlives bubblewrap for a moment and is
/// then adopted.
pub async fn wait_for_init_exit(marker: &str) {
    let marker = marker.to_owned();
    // If this fails, a zombie is left, which does not harm the trial.
    let _ = tokio::task::spawn_blocking(move || block_until_init_exit(&marker)).await;
}

fn block_until_init_exit(marker: &str) {
    let deadline = Instant::now() + KILL_TIMEOUT;
    while reap_dead(Some(marker)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Reaps the dead among the adopted processes, because zombies would use up the machine's process numbers. Says
/// whether some processes of this trial are still ending.
pub fn reap_dead(marker: Option<&str>) -> bool {
    let mut dying = false;
    for pid in list_orphans() {
        let Some(stat) = stat(pid) else { continue };
        if !stat.is_alive {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
        } else if let Some(marker) = marker {
            // A process that waits for the last one of its namespace has already lost its environment.
            let environment = environment_of(pid);
            dying |= environment.is_empty() || marker_in(&environment).as_deref() == Some(marker);
        }
    }
    dying
}
