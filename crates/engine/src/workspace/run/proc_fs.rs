//! Reads information about processes from /proc. This is the Linux side; `process_table_macos.rs` has the same
//! functions for macOS.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::workspace::limits::ProcessUsage;

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
    // This program never changes its session, so it is read once.
    static OWN: OnceLock<Option<(i32, i32)>> = OnceLock::new();
    // The session comes from /proc and not from getsid. In a container whose session began outside it, the session
    // is 0: not a valid process number for getsid, but good enough for the comparison below.
    let read_own = || Some((own_pid(), stat_and_session(own_pid())?.1));
    let Some((ourselves, own_session)) = *OWN.get_or_init(read_own) else { return Vec::new() };
    // A process that we start leads a group in our session. Such a leader cannot leave its group or session.
    let adopted = |pid: &i32| {
        stat_and_session(*pid).is_some_and(|(stat, session)| {
            stat.parent == ourselves && (session != own_session || stat.group != *pid)
        })
    };
    // The first thread is the one that adopts. If the kernel does not list children, all processes are examined.
    match read_proc_file(format!("/proc/self/task/{ourselves}/children")) {
        Ok(children) => {
            let children = String::from_utf8_lossy(&children);
            children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(adopted).collect()
        }
        Err(_) => pids().filter(adopted).collect(),
    }
}

pub fn environment_of(pid: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()
}

/// Reads a short file of /proc. The size of such a file is unknown, so reading it in the usual way takes many small
/// reads.
fn read_proc_file(path: impl AsRef<Path>) -> std::io::Result<Vec<u8>> {
    let mut file = std::fs::File::open(path)?;
    let mut bytes = vec![0; 4096];
    let count = file.read(&mut bytes)?;
    bytes.truncate(count);
    if count > 0 {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
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
    let stat = read_proc_file(format!("/proc/{pid}/stat")).ok()?;
    // The command's name is in parentheses and may contain anything, so the search is for the last parenthesis.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let mut fields = rest.split(' ');
    let state = *fields.next()?.as_bytes().first()?;
    let mut number = || fields.next()?.parse().ok();
    let is_alive = !matches!(state, b'Z' | b'X');
    Some((ProcessStat { is_alive, parent: number()?, group: number()? }, number()?))
}

/// Lists a process and all that descend from it.
pub fn list_tree(root: i32) -> Vec<i32> {
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(pid) = tree.get(at).copied() {
        at += 1;
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = read_proc_file(thread.path().join("children")).unwrap_or_default();
            let children = String::from_utf8_lossy(&children);
            tree.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    tree
}

/// The unit of the times in `/proc/PID/stat`, which Linux fixes for all programs.
const TICKS_PER_SECOND: u64 = 100;

/// Adds up what processes use. Memory that several of them share counts once for each, except the memory of files
/// without a name on disk, of which only the largest share counts.
pub fn usage_of(pids: &[i32]) -> ProcessUsage {
    let mut used = ProcessUsage::default();
    let mut most_shared = 0;
    for pid in pids {
        let Ok(status) = read_proc_file(format!("/proc/{pid}/status")) else { continue };
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        used.processes += field("Threads:").max(1);
        used.memory += (field("RssAnon:") + field("VmSwap:")) * 1024;
        most_shared = most_shared.max(field("RssShmem:") * 1024);
        used.cpu += processor_time(*pid).unwrap_or_default();
        used.open_files = used.open_files.max(open_files(*pid));
    }
    ProcessUsage { memory: used.memory + most_shared, ..used }
}

/// Adds up the memory of processes exactly: memory that several share is divided among them. This takes far longer
/// than `usage_of`. `None` if the kernel does not tell.
pub fn exact_memory_of(pids: &[i32]) -> Option<u64> {
    let mut total = 0;
    for pid in pids {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let lines =
            text.lines().filter(|line| line.starts_with("Pss_Anon:") || line.starts_with("Pss_Shmem:"));
        total +=
            lines.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>() * 1024;
    }
    Some(total)
}

/// Gives the processor time of a process and of its children that have ended.
fn processor_time(pid: i32) -> Option<Duration> {
    let stat = read_proc_file(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let fields = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let ticks: u64 = fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

fn open_files(pid: i32) -> u64 {
    let folder = format!("/proc/{pid}/fd");
    // Newer kernels give the number as the size of the folder.
    match std::fs::metadata(&folder).map_or(0, |metadata| metadata.len()) {
        0 => std::fs::read_dir(folder).map_or(0, |entries| entries.count() as u64),
        count => count,
    }
}

/// Gives how much of a folder in memory is used, as a process sees it. `None` if the folder does not have this size: a
/// process that is just entering its sandbox still sees the folders of the machine.
pub fn used_in_memory_folder(pid: i32, folder: &str, size: u64) -> Option<u64> {
    let found = rustix::fs::statvfs(format!("/proc/{pid}/root{folder}")).ok()?;
    let whole = found.f_blocks * found.f_frsize;
    let is_own = whole.abs_diff(size) <= found.f_frsize;
    is_own.then_some((found.f_blocks - found.f_bfree) * found.f_frsize)
}
