//! Finds the files that an agent changed, and copies them into the record.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::workspace::disk_usage::DiskUsage;
use crate::workspace::secrets::Scrubber;
use practicum_core::model::{Digest, FileChange, FileChangeKind, Fixture, FixtureAccess, RelPath};
use practicum_core::tree::{create_private_folder, read_regular};

/// The regular files of a folder with their size, inode and times. This is cheaper than comparing contents: a
/// write changes the time that the kernel keeps, which the agent cannot set back.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    files: BTreeMap<RelPath, FileStamp>,
    /// How much the folder holds.
    pub(super) usage: DiskUsage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    bytes: u64,
    inode: u64,
    changed: (i64, i64),
}

/// The most files of one workspace that are listed.
const MOST_FILES: usize = 100_000;

impl Snapshot {
    pub fn of_folder(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut usage = DiskUsage::default();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
                usage.files += 1;
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    open.push(entry.path());
                    continue;
                }
                let path = entry.path();
                let relative =
                    path.strip_prefix(folder).ok().and_then(|path| path.to_str()).and_then(RelPath::new);
                let Ok(metadata) = entry.metadata() else { continue };
                if kind.is_file() {
                    usage.bytes = usage.bytes.saturating_add(metadata.len());
                }
                let Some(relative) = relative else { continue };
                if kind.is_file() && files.len() < MOST_FILES {
                    let stamp = FileStamp {
                        bytes: metadata.len(),
                        inode: metadata.ino(),
                        changed: (metadata.ctime(), metadata.ctime_nsec()),
                    };
                    files.insert(relative, stamp);
                }
            }
        }
        Self { files, usage }
    }

    pub fn changes(&self, after: &Snapshot) -> Vec<FileChange> {
        let mut changes = Vec::new();
        for (path, stamp) in &after.files {
            let change = match self.files.get(path) {
                None => FileChangeKind::Created,
                Some(before) if before != stamp => FileChangeKind::Changed,
                Some(_) => continue,
            };
            changes.push(FileChange { path: path.clone(), change, bytes: stamp.bytes });
        }
        for path in self.files.keys().filter(|path| !after.files.contains_key(*path)) {
            changes.push(FileChange { path: path.clone(), change: FileChangeKind::Deleted, bytes: 0 });
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// Computes the digests of a fixture: of the file, or of every file below the folder.
pub fn fixture_digests(path: &Path, relative: &RelPath) -> Vec<(RelPath, Digest)> {
    if path.is_dir() {
        let below = Snapshot::of_folder(path);
        let named = below.files.keys().filter_map(|file| {
            let bytes = read_regular(file.join_to(path)).ok()?;
            Some((RelPath::new(&format!("{relative}/{file}"))?, Digest::of_bytes(&bytes)))
        });
        return named.collect();
    }
    read_regular(path).map(|bytes| (relative.clone(), Digest::of_bytes(&bytes))).into_iter().collect()
}

/// Lists the files that the agent was given to work on, as they are now.
pub(crate) fn editable_file_changes(fixtures: &[Fixture], workspace: &Path) -> Vec<FileChange> {
    let mut files = Vec::new();
    for fixture in fixtures.iter().filter(|fixture| fixture.access == FixtureAccess::Mutable) {
        let path = fixture.destination.join_to(workspace);
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let mut add = |path: Option<RelPath>, bytes| {
            files.extend(path.map(|path| FileChange { path, change: FileChangeKind::Changed, bytes }));
        };
        if metadata.is_file() {
            add(Some(fixture.destination.clone()), metadata.len());
        } else if metadata.is_dir() {
            for (below, stamp) in Snapshot::of_folder(&path).files {
                add(RelPath::new(&format!("{}/{below}", fixture.destination)), stamp.bytes);
            }
        }
    }
    files
}

const LARGEST_CAPTURED_FILE: u64 = 10 * 1024 * 1024;
const MOST_CAPTURED_BYTES: u64 = 100 * 1024 * 1024;

/// Copies files of the workspace into the record, up to a limit and without secrets in names and contents. Gives a note
/// for each file that was left out.
pub fn capture_changed_files(
    changes: &[FileChange],
    workspace: &Path,
    record: &Path,
    scrubber: &Scrubber,
) -> Vec<String> {
    let mut notes = Vec::new();
    let mut total = 0;
    for file in changes.iter().filter(|file| file.change != FileChangeKind::Deleted) {
        if file.bytes > LARGEST_CAPTURED_FILE || total + file.bytes > MOST_CAPTURED_BYTES {
            notes.push(format!("{} ({} bytes) is too large to keep", file.path, file.bytes));
            continue;
        }
        let clean =
            RelPath::new(&scrubber.scrub_text(file.path.as_str())).unwrap_or_else(|| file.path.clone());
        let to = clean.join_to(record);
        let copied = to
            .parent()
            .map_or(Ok(()), create_private_folder)
            .and_then(|()| copy_regular(&file.path.join_to(workspace), &to, scrubber));
        match copied {
            Ok(bytes) => total += bytes,
            Err(error) => notes.push(format!("{} could not be kept: {error}", file.path)),
        }
    }
    notes
}

/// Copies a file without following a link that the agent may have put there meanwhile.
fn copy_regular(from: &Path, to: &Path, scrubber: &Scrubber) -> std::io::Result<u64> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut source = std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(from)?;
    let limited = std::io::Read::take(&mut source, LARGEST_CAPTURED_FILE);
    let target = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    scrubber.copy(limited, target)
}
