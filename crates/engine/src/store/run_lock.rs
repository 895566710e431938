//! The lock file of a run in progress.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A run in progress: its process, and the folder of its workspaces. Only a killed run leaves this file behind,
/// and then it says what to clean up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLock {
    pub schema_version: u32,
    pub pid: u32,
    /// The start time of the process, because process ids are reused.
    pub began: u64,
    pub rooms: PathBuf,
}

const LOCK_FILE: &str = "live.json";

impl RunLock {
    /// Marks a run directory as in use by this process.
    pub fn write(run: &Path, rooms: &Path) -> std::io::Result<()> {
        let pid = std::process::id();
        let live = RunLock {
            schema_version: 1,
            pid,
            began: process_start_time(pid).unwrap_or(0),
            rooms: rooms.to_owned(),
        };
        std::fs::write(run.join(LOCK_FILE), serde_json::to_vec(&live)?)
    }

    pub fn read(run: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(run.join(LOCK_FILE)).ok()?).ok()
    }

    pub fn remove(run: &Path) {
        let _ = std::fs::remove_file(run.join(LOCK_FILE));
    }

    /// Says whether the process that wrote the lock is still running.
    pub fn is_running(&self) -> bool {
        process_start_time(self.pid).is_some_and(|began| began == self.began)
    }
}

/// Gives the start of a process in clock ticks since boot: the twenty-second field of its status.
fn process_start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}
