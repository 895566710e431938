//! The lock file of a run in progress.

use std::path::{Path, PathBuf};

use practicum_core::tree::{read_regular, write_unlinked};
use serde::{Deserialize, Serialize};

use crate::workspace::run::start_time;

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
        let live =
            RunLock { schema_version: 1, pid, began: start_time(pid).unwrap_or(0), rooms: rooms.to_owned() };
        write_unlinked(run.join(LOCK_FILE), serde_json::to_vec(&live)?)
    }

    /// Locks the folder of a run for as long as the file is open. Two processes that resume one run at the same moment
    /// would otherwise both find that nobody is at work on it. `None` if another process has the lock.
    pub(crate) fn lock_folder(run: &Path) -> std::io::Result<Option<std::fs::File>> {
        let folder = std::fs::File::open(run)?;
        match folder.try_lock() {
            Ok(()) => Ok(Some(folder)),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }

    pub fn read(run: &Path) -> Option<Self> {
        serde_json::from_slice(&read_regular(run.join(LOCK_FILE)).ok()?).ok()
    }

    pub fn remove(run: &Path) {
        let _ = std::fs::remove_file(run.join(LOCK_FILE));
    }

    /// Says whether the process that wrote the lock is still running.
    pub fn is_running(&self) -> bool {
        start_time(self.pid).is_some_and(|began| began == self.began)
    }
}
