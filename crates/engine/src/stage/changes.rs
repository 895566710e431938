use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use practicum_core::model::{Access, Change, Digest, FileChange, Fixture, RelPath};

/// The regular files of a folder with what changes when they do. Cheaper than their content: a
/// write changes the time that the kernel keeps, which the agent cannot set back.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    files: BTreeMap<RelPath, Mark>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    bytes: u64,
    inode: u64,
    changed: (i64, i64),
}

/// More files than this in one room are not listed one by one.
const MOST_FILES: usize = 100_000;

impl Snapshot {
    pub fn of(folder: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    open.push(entry.path());
                    continue;
                }
                let path = entry.path();
                let relative =
                    path.strip_prefix(folder).ok().and_then(|path| path.to_str()).and_then(RelPath::new);
                let (Some(relative), Ok(metadata)) = (relative, entry.metadata()) else { continue };
                if kind.is_file() && files.len() < MOST_FILES {
                    let mark = Mark {
                        bytes: metadata.len(),
                        inode: metadata.ino(),
                        changed: (metadata.ctime(), metadata.ctime_nsec()),
                    };
                    files.insert(relative, mark);
                }
            }
        }
        Self { files }
    }

    pub fn changes(&self, after: &Snapshot) -> Vec<FileChange> {
        let mut changes = Vec::new();
        for (path, mark) in &after.files {
            let change = match self.files.get(path) {
                None => Change::Created,
                Some(before) if before != mark => Change::Changed,
                Some(_) => continue,
            };
            changes.push(FileChange { path: path.clone(), change, bytes: mark.bytes });
        }
        for path in self.files.keys().filter(|path| !after.files.contains_key(*path)) {
            changes.push(FileChange { path: path.clone(), change: Change::Deleted, bytes: 0 });
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// The digests of a fixture: of the file, or of every file below the folder.
pub fn digests(path: &Path, relative: &RelPath) -> Vec<(RelPath, Digest)> {
    if path.is_dir() {
        let below = Snapshot::of(path);
        let named = below.files.keys().filter_map(|file| {
            let bytes = std::fs::read(file.under(path)).ok()?;
            Some((RelPath::new(&format!("{relative}/{file}"))?, Digest::of(&bytes)))
        });
        return named.collect();
    }
    std::fs::read(path).map(|bytes| (relative.clone(), Digest::of(&bytes))).into_iter().collect()
}

/// The files that the agent was given to work on, as they are now.
pub fn worked_on(fixtures: &[Fixture], workspace: &Path) -> Vec<FileChange> {
    let mut files = Vec::new();
    for fixture in fixtures.iter().filter(|fixture| fixture.access == Access::Mutable) {
        let path = fixture.to.under(workspace);
        let Ok(metadata) = path.symlink_metadata() else { continue };
        let mut add = |path: Option<RelPath>, bytes| {
            files.extend(path.map(|path| FileChange { path, change: Change::Changed, bytes }));
        };
        if metadata.is_file() {
            add(Some(fixture.to.clone()), metadata.len());
        } else if metadata.is_dir() {
            for (below, mark) in Snapshot::of(&path).files {
                add(RelPath::new(&format!("{}/{below}", fixture.to)), mark.bytes);
            }
        }
    }
    files
}

const LARGEST_KEPT: u64 = 10 * 1024 * 1024;
const MOST_KEPT: u64 = 100 * 1024 * 1024;

/// Copies files of the workspace into the record, within bounds. Gives a note for what was left out.
pub fn captured(changes: &[FileChange], workspace: &Path, record: &Path) -> Vec<String> {
    let mut notes = Vec::new();
    let mut total = 0;
    for file in changes.iter().filter(|file| file.change != Change::Deleted) {
        if file.bytes > LARGEST_KEPT || total + file.bytes > MOST_KEPT {
            notes.push(format!("{} ({} bytes) is too large to keep", file.path, file.bytes));
            continue;
        }
        let to = file.path.under(record);
        let copied = to
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| copy_regular(&file.path.under(workspace), &to));
        match copied {
            Ok(bytes) => total += bytes,
            Err(error) => notes.push(format!("{} could not be kept: {error}", file.path)),
        }
    }
    notes
}

/// Copies without following a link that the agent may have put there meanwhile.
fn copy_regular(from: &Path, to: &Path) -> std::io::Result<u64> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut source = std::fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(from)?;
    let mut limited = std::io::Read::take(&mut source, LARGEST_KEPT);
    let mut target = std::fs::File::create(to)?;
    std::io::copy(&mut limited, &mut target)
}
