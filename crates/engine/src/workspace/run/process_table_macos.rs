//! Reads information about processes on macOS, which has no /proc. The functions are those of `proc_fs.rs`.
//!
//! macOS differs from Linux in two ways. Orphans are adopted by launchd (process 1) and never by this program. And
//! the system hides the environment of Apple's own programs, such as /bin/sh: they are recognised by their process
//! group or by the folder that they work in, and one that left both is not found.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::process::{getpgid, getpid, getuid};
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};

use crate::workspace::limits::ProcessUsage;

use super::process_tree::{ProcessInfo, ProcessStat, marker_in};

/// The process that adopts all orphans.
const LAUNCHD: i32 = 1;

/// Does nothing: macOS lets no process adopt the orphans of others.
pub fn adopt_orphans() {}

/// Lists every process except this one.
pub fn list_processes() -> HashMap<i32, ProcessInfo> {
    let system = read_processes(ProcessesToUpdate::All, with_environment());
    let others = system.processes().iter().filter(|(pid, _)| signed(**pid) != own_pid());
    others
        .map(|(pid, process)| {
            let marker = marker_in(&environment(process));
            (signed(*pid), ProcessInfo { stat: stat_of(process), marker })
        })
        .collect()
}

/// Lists the processes that may belong to a trial although they are no descendants of its first process any more:
/// all of this user that launchd has adopted.
pub fn list_strays() -> Vec<i32> {
    let user = getuid().as_raw();
    let system = read_processes(ProcessesToUpdate::All, ProcessRefreshKind::nothing());
    let is_own = |process: &Process| process.user_id().is_some_and(|owner| **owner == user);
    let all = system.processes().values();
    let adopted = all.filter(|process| is_own(process) && stat_of(process).parent == LAUNCHD);
    adopted.map(|process| signed(process.pid())).collect()
}

/// Lists the child processes that this program adopted. There are none, because launchd adopts and reaps them.
pub fn list_orphans() -> Vec<i32> {
    Vec::new()
}

pub fn environment_of(pid: i32) -> Vec<u8> {
    find_process(pid, with_environment(), environment).unwrap_or_default()
}

/// Gives the folder in which a process works.
pub fn folder_of(pid: i32) -> Option<PathBuf> {
    let wanted = ProcessRefreshKind::nothing().with_cwd(UpdateKind::Always);
    find_process(pid, wanted, |process| process.cwd().map(PathBuf::from)).flatten()
}

pub fn stat(pid: i32) -> Option<ProcessStat> {
    find_process(pid, ProcessRefreshKind::nothing(), stat_of)
}

/// Gives the start of a process in seconds since 1970.
pub fn start_time(pid: u32) -> Option<u64> {
    let began = find_process(i32::try_from(pid).ok()?, ProcessRefreshKind::nothing(), Process::start_time);
    // Zero stands for a process of another user, whose start the system does not tell.
    began.filter(|began| *began > 0)
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

fn signed(pid: Pid) -> i32 {
    // Process numbers of macOS are below 100,000.
    i32::try_from(pid.as_u32()).unwrap_or(0)
}

fn with_environment() -> ProcessRefreshKind {
    ProcessRefreshKind::nothing().with_environ(UpdateKind::Always)
}

fn read_processes(which: ProcessesToUpdate<'_>, wanted: ProcessRefreshKind) -> System {
    let mut system = System::new();
    system.refresh_processes_specifics(which, true, wanted);
    system
}

fn find_process<T>(pid: i32, wanted: ProcessRefreshKind, read: impl Fn(&Process) -> T) -> Option<T> {
    let pid = Pid::from_u32(u32::try_from(pid).ok()?);
    read_processes(ProcessesToUpdate::Some(&[pid]), wanted).process(pid).map(read)
}

fn stat_of(process: &Process) -> ProcessStat {
    let group = rustix::process::Pid::from_raw(signed(process.pid())).and_then(|pid| getpgid(Some(pid)).ok());
    ProcessStat {
        is_alive: !matches!(process.status(), ProcessStatus::Zombie | ProcessStatus::Dead),
        parent: process.parent().map_or(0, signed),
        group: group.map_or(0, |group| group.as_raw_nonzero().get()),
    }
}

/// Gives the environment of a process in the form that Linux has: `NAME=value` entries, each followed by a zero.
fn environment(process: &Process) -> Vec<u8> {
    let entries = process.environ().iter();
    entries.flat_map(|entry| entry.as_bytes().iter().copied().chain([0])).collect()
}

/// Lists a process and all that descend from it.
pub fn list_tree(root: i32) -> Vec<i32> {
    let system = read_processes(ProcessesToUpdate::All, ProcessRefreshKind::nothing());
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(pid) = tree.get(at).copied() {
        at += 1;
        let children = system.processes().values().filter(|process| stat_of(process).parent == pid);
        tree.extend(children.map(|process| signed(process.pid())));
    }
    tree
}

/// Adds up what processes use. Open files are not known here.
pub fn usage_of(pids: &[i32]) -> ProcessUsage {
    let wanted = ProcessRefreshKind::nothing().with_memory().with_cpu();
    let pids: Vec<Pid> = pids.iter().filter_map(|pid| u32::try_from(*pid).ok()).map(Pid::from_u32).collect();
    let system = read_processes(ProcessesToUpdate::Some(&pids), wanted);
    let mut used = ProcessUsage::default();
    for process in pids.iter().filter_map(|pid| system.process(*pid)) {
        used.processes += 1;
        used.memory += process.memory();
        used.cpu += std::time::Duration::from_millis(process.accumulated_cpu_time());
    }
    used
}

/// Gives nothing: macOS does not tell how much memory processes share.
pub fn exact_memory_of(_pids: &[i32]) -> Option<u64> {
    None
}

/// Gives nothing: on macOS no trial has a temporary folder in memory.
pub fn used_in_memory_folder(_pid: i32, _folder: &str, _size: u64) -> Option<u64> {
    None
}
