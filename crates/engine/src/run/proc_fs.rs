//! Reads information about processes from /proc.

use std::collections::HashMap;

use super::process_tree::MARKER_VARIABLE;

pub struct ProcessInfo {
    pub stat: ProcessStat,
    pub marker: Option<String>,
}

impl ProcessInfo {
    pub fn is_alive(&self) -> bool {
        self.stat.is_alive()
    }
}

#[derive(Clone, Copy)]
pub struct ProcessStat {
    state: u8,
    pub parent: i32,
    group: i32,
    session: i32,
}

impl ProcessStat {
    /// Says whether the process is alive. A zombie is dead and only waits to be reaped.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

pub fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
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

/// Lists the child processes that this program adopted and did not start, including dead ones.
pub fn list_orphans() -> Vec<i32> {
    let ourselves = own_pid();
    // The session comes from /proc and not from getsid. In a container whose session began outside it, the session
    // is 0: not a valid process number for getsid, but good enough for the comparison below.
    let Some(own) = stat(ourselves) else { return Vec::new() };
    // A process that we start leads a group in our session. Such a leader cannot leave its group or session.
    let adopted = |pid: &i32| {
        stat(*pid).is_some_and(|stat| {
            stat.parent == ourselves && (stat.session != own.session || stat.group != *pid)
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

pub fn marker_in(environment: &[u8]) -> Option<String> {
    environment
        .split(|&byte| byte == 0)
        .find_map(|entry| entry.strip_prefix(MARKER_VARIABLE.as_bytes())?.strip_prefix(b"="))
        .map(|value| String::from_utf8_lossy(value).into_owned())
}

pub fn stat(pid: i32) -> Option<ProcessStat> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may contain anything, so the search is for the last parenthesis.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let mut number = || fields.next()?.parse().ok();
    Some(ProcessStat { state, parent: number()?, group: number()?, session: number()? })
}
