use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A run that goes on: who runs it, and where its rooms are. Left behind only by a kill, and then
/// it says what to sweep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    pub schema_version: u32,
    pub pid: u32,
    /// When that process began, because numbers of processes come again.
    pub began: u64,
    pub rooms: PathBuf,
}

const FILE: &str = "live.json";

impl Live {
    /// Marks a run directory as being worked on by this process.
    pub fn mark(run: &Path, rooms: &Path) -> std::io::Result<()> {
        let pid = std::process::id();
        let live = Live { schema_version: 1, pid, began: began(pid).unwrap_or(0), rooms: rooms.to_owned() };
        std::fs::write(run.join(FILE), serde_json::to_vec(&live)?)
    }

    pub fn read(run: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(run.join(FILE)).ok()?).ok()
    }

    pub fn clear(run: &Path) {
        let _ = std::fs::remove_file(run.join(FILE));
    }

    /// Whether the process that marked it is still there.
    pub fn is_running(&self) -> bool {
        began(self.pid).is_some_and(|began| began == self.began)
    }
}

/// The start of a process in clock ticks since boot: the twenty-second field of its status.
fn began(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(19)?.parse().ok()
}
