//! Limits on what the processes of one trial may use: memory, processes, processor time, open files and disk.
//!
//! In: the settings of a run and the folders of a trial. Out: `ResourceLimits`, and `TrialLimits` that says which
//! limit is exceeded. Never: ends a process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk_usage::{DiskUsage, MeasuredDisk, measure_folder};
use super::stage::Workspace;

/// The most that the processes of one trial may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Memory, in bytes.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Time of processors.
    pub cpu: Duration,
    /// Open files of one process.
    pub open_files: u64,
    /// Disk space that the trial adds to its workspace, home and temporary folder, in bytes.
    pub disk: u64,
    /// Files and folders that the trial adds.
    pub files: u64,
}

const MEGABYTE: u64 = 1024 * 1024;
const GIGABYTE: u64 = 1024 * MEGABYTE;

impl Default for ResourceLimits {
    fn default() -> Self {
        Self {
            memory: 2 * GIGABYTE,
            processes: 1024,
            cpu: Duration::from_secs(60 * 60),
            open_files: 4096,
            disk: 4 * GIGABYTE,
            files: 75_000,
        }
    }
}

/// What the processes of a trial use at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// The number of processes and threads.
    pub processes: u64,
    pub memory: u64,
    pub cpu: Duration,
    /// The open files of the process that has the most.
    pub open_files: u64,
}

impl ResourceLimits {
    /// Says which limit is exceeded; `None` if none is.
    pub fn excess_of(&self, used: &ProcessUsage) -> Option<String> {
        let Self { memory, processes, cpu, open_files, .. } = self;
        if used.memory > *memory {
            return Some(excess("memory", format!("{} of memory", describe_bytes(*memory))));
        }
        if used.processes > *processes {
            return Some(excess("processes", format!("{processes} processes and threads")));
        }
        if used.cpu > *cpu {
            return Some(excess("cpu", format!("{} s of processor time", cpu.as_secs())));
        }
        (used.open_files > *open_files)
            .then(|| excess("open-files", format!("{open_files} open files in one process")))
    }

    fn disk_excess(&self, before: DiskUsage, now: &MeasuredDisk) -> Option<String> {
        let used = match now {
            MeasuredDisk::TooDeep => return Some("it made folders too deep to be read".to_owned()),
            MeasuredDisk::Measured(used) => used,
        };
        if used.bytes.saturating_sub(before.bytes) > self.disk {
            return Some(excess("disk", format!("{} of disk", describe_bytes(self.disk))));
        }
        (used.files.saturating_sub(before.files) > self.files)
            .then(|| excess("files", format!("{} files", self.files)))
    }

    /// Gives the amounts from which on a measurement of the disk need not go on.
    fn most_on_disk(&self, before: DiskUsage) -> DiskUsage {
        DiskUsage {
            bytes: before.bytes.saturating_add(self.disk),
            files: before.files.saturating_add(self.files),
        }
    }
}

fn excess(name: &str, amount: String) -> String {
    format!("it used more than {amount} (--limit {name}=… sets that limit)")
}

/// The limits of one trial, and what its folders held before it began.
#[derive(Debug, Clone)]
pub struct TrialLimits {
    pub limits: ResourceLimits,
    room: PathBuf,
    before: DiskUsage,
    /// Whether the trial has a temporary folder of its own in memory.
    pub has_private_tmp: bool,
}

impl TrialLimits {
    /// Measures the folder of a trial that is staged and has not begun.
    pub fn new(limits: ResourceLimits, room: &Path, has_private_tmp: bool) -> Self {
        let before = match measure_folder(room, DiskUsage::MAX) {
            MeasuredDisk::Measured(used) => used,
            MeasuredDisk::TooDeep => DiskUsage::default(),
        };
        Self { limits, room: room.to_owned(), before, has_private_tmp }
    }

    /// Makes the limits of a trial with a workspace. What its folder holds is known from staging it.
    pub(crate) fn of_workspace(limits: ResourceLimits, workspace: &Workspace, has_private_tmp: bool) -> Self {
        match workspace.staged_usage() {
            Some(before) => Self { limits, room: workspace.root().to_owned(), before, has_private_tmp },
            None => Self::new(limits, workspace.root(), has_private_tmp),
        }
    }

    /// Says which limit of the disk is exceeded; `None` if none is.
    pub fn disk_excess(&self) -> Option<String> {
        let most = self.limits.most_on_disk(self.before);
        self.limits.disk_excess(self.before, &measure_folder(&self.room, most))
    }
}

/// Reads an amount of bytes, such as `512MB` or `2GB`. Units are powers of 1024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || "it must be an amount such as 512MB or 2GB".to_owned();
    let text = text.trim().to_ascii_uppercase();
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic() || char == ' ');
    let unit = match text[digits.len()..].trim() {
        "" | "B" => 1,
        "KB" | "KIB" | "K" => 1024,
        "MB" | "MIB" | "M" => MEGABYTE,
        "GB" | "GIB" | "G" => GIGABYTE,
        "TB" | "TIB" | "T" => 1024 * GIGABYTE,
        _ => return Err(wrong()),
    };
    let amount: f64 = digits.parse().map_err(|_| wrong())?;
    let bytes = amount * unit as f64;
    // The largest whole number that the type below is exact for.
    if bytes.is_finite() && (1.0..9e15).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

/// Gives an amount of bytes as a person writes it.
pub fn describe_bytes(bytes: u64) -> String {
    match bytes {
        whole if whole >= GIGABYTE && whole % GIGABYTE == 0 => format!("{} GB", whole / GIGABYTE),
        whole if whole >= MEGABYTE && whole % MEGABYTE == 0 => format!("{} MB", whole / MEGABYTE),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_bytes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("512MB", Some(512 * MEGABYTE)),
            ("2GB", Some(2 * GIGABYTE)),
            ("1.5 gib", Some(3 * GIGABYTE / 2)),
            ("1000", Some(1000)),
            ("4k", Some(4096)),
            ("0", None),
            ("-1GB", None),
            ("much", None),
            ("1XB", None),
            ("1e30GB", None),
            ("NaN", None),
            ("", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), expected, "{text}");
        }
        for text in ["512 MB", "2 GB", "1000 bytes"] {
            assert_eq!(describe_bytes(parse_bytes(&text.replace(" bytes", "")).expect("an amount")), text);
        }
    }

    #[test]
    fn each_limit_is_told_by_its_name() {
        let limits = ResourceLimits::default();
        let used = ProcessUsage { processes: 5, memory: 5, cpu: Duration::from_secs(5), open_files: 5 };
        assert_eq!(limits.excess_of(&used), None);
        for (used, named) in [
            (ProcessUsage { memory: 3 * GIGABYTE, ..used }, "memory"),
            (ProcessUsage { processes: 1025, ..used }, "processes"),
            (ProcessUsage { cpu: Duration::from_secs(4000), ..used }, "cpu"),
            (ProcessUsage { open_files: 4097, ..used }, "open-files"),
        ] {
            let why = limits.excess_of(&used).expect("exceeded");
            assert!(why.contains(&format!("--limit {named}=")), "{why}");
        }
    }

    #[test]
    fn only_what_a_trial_adds_counts() {
        let room = tempfile::tempdir().expect("a folder");
        std::fs::write(room.path().join("staged"), vec![0; 8000]).expect("write");
        let small = ResourceLimits { disk: 4000, files: 2, ..ResourceLimits::default() };
        let limits = TrialLimits::new(small, room.path(), false);
        assert_eq!(limits.disk_excess(), None);
        for name in ["a", "b"] {
            std::fs::write(room.path().join(name), "x").expect("write");
        }
        assert_eq!(limits.disk_excess(), None);
        std::fs::create_dir(room.path().join("c")).expect("create");
        assert!(limits.disk_excess().is_some_and(|why| why.contains("2 files")));
        std::fs::remove_dir(room.path().join("c")).expect("remove");
        std::fs::write(room.path().join("a"), vec![0; 5000]).expect("write");
        assert!(limits.disk_excess().is_some_and(|why| why.contains("4000 bytes of disk")));
    }
}
