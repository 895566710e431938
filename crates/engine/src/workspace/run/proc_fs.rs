//! Reads information about processes from /proc. This is the Linux side; `process_table_macos.rs` has the same
//! functions for macOS.

use std::collections::HashMap;
use std::path::PathBuf;

use super::process_tree::{ProcessInfo, ProcessStat, marker_in};

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Makes this process adopt the orphans of trials, so that all can be found.
pub fn adopt_orphans() {
    // Errors are ignored: without this kernel feature, the search by marker still finds most processes.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Lists every process except this one.
pub fn list_processes() -> HashMap<i32, ProcessInfo> {
    let read = |pid| {
        let stat = stat(pid)?;
        Some((pid, ProcessInfo { stat, marker: marker_in(&environment_of(pid)) }))
    };
    pids().filter_map(read).collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let ourselves = own_pid();
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        entry.file_name().to_str()?.parse::<i32>().ok().filter(|pid| *pid != ourselves)
    })
}

/// Lists the processes that may belong to a trial although they are no descendants of its first process any more.
pub fn list_strays() -> Vec<i32> {
    list_orphans()
}

/// Lists the child processes that this program adopted and did not start, including dead ones.
pub fn list_orphans() -> Vec<i32> {
    let ourselves = own_pid();
    // The session comes from /proc and not from getsid. In a container whose session began outside it, the session
    // is 0: not a valid process number for getsid, but good enough for the comparison below.
    let Some((_, own_session)) = stat_and_session(ourselves) else { return Vec::new() };
    // A process that we start leads a group in our session. Such a leader cannot leave its group or session.
    let adopted = |pid: &i32| {
        stat_and_session(*pid).is_some_and(|(stat, session)| {
            stat.parent == ourselves && (session != own_session || stat.group != *pid)
        })
    };
    // The first thread is the one that adopts. If the kernel does not list children, all processes are examined.
    match std::fs::read_to_string(format!("/proc/self/task/{ourselves}/children")) {
        Ok(children) => {
            children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(adopted).collect()
        }
        Err(_) => pids().filter(adopted).collect(),
    }
}

pub fn environment_of(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// Gives the folder in which a process works.
pub fn folder_of(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// Gives the start of a process in clock ticks since boot: the twenty-second field of its status.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}

pub fn stat(pid: i32) -> Option<ProcessStat> {
    stat_and_session(pid).map(|(stat, _)| stat)
}

fn stat_and_session(pid: i32) -> Option<(ProcessStat, i32)> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may contain anything, so the search is for the last parenthesis.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let mut number = || fields.next()?.parse().ok();
    let is_alive = !matches!(state, b'Z' | b'X');
    Some((ProcessStat { is_alive, parent: number()?, group: number()? }, number()?))
}
