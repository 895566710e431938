//! What /proc says of processes.

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
    /// A zombie is dead; it only waits to be asked about.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

pub fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Every process but us.
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

/// The children that we did not start ourselves, dead ones too.
pub fn list_orphans() -> Vec<i32> {
    let ourselves = own_pid();
    // Not asked with getsid: in a container whose session began outside of it the answer is 0,
    // which is no process number there and a good answer here.
    let Some(own) = stat(ourselves) else { return Vec::new() };
    // What we start leads a group of our session, and so cannot leave either.
    let adopted = |pid: &i32| {
        stat(*pid).is_some_and(|stat| {
            stat.parent == ourselves && (stat.session != own.session || stat.group != *pid)
        })
    };
    // The first thread is the one that adopts. Where the kernel does not list children, all are asked.
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
    // The command's name stands in parentheses and may hold anything, so read from the last one.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let mut number = || fields.next()?.parse().ok();
    Some(ProcessStat { state, parent: number()?, group: number()?, session: number()? })
}
