//! Measures how much a folder holds, whatever an agent made in it.

use std::path::Path;

/// The files and bytes of a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// The sizes of all regular files. A file with holes counts as large as it says it is.
    pub bytes: u64,
    /// Files, folders, links and all else.
    pub files: u64,
}

impl DiskUsage {
    pub const MAX: DiskUsage = DiskUsage { bytes: u64::MAX, files: u64::MAX };
}

/// The result of measuring a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredDisk {
    Measured(DiskUsage),
    /// Folders lie so deep that nothing in them can be reached by its path.
    TooDeep,
}

/// The most folders inside each other. No tool needs as many, and far deeper ones cannot be named by a path.
const MOST_DEPTH: usize = 512;

/// The longest path that is followed: systems refuse those of 4096 bytes, macOS those of 1024.
const LONGEST_PATH: usize = if cfg!(target_os = "macos") { 1000 } else { 4000 };

/// Adds up a folder. Stops as soon as more than `most` is found. Links are counted and never followed, and folders
/// that cannot be read count as one file.
pub fn measure_folder(folder: &Path, most: DiskUsage) -> MeasuredDisk {
    let mut used = DiskUsage::default();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((next, depth)) = open.pop() {
        if depth > MOST_DEPTH || next.as_os_str().len() > LONGEST_PATH {
            return MeasuredDisk::TooDeep;
        }
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            used.files += 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                open.push((entry.path(), depth + 1));
            } else if kind.is_file() {
                used.bytes = used.bytes.saturating_add(entry.metadata().map_or(0, |file| file.len()));
            }
            if used.files > most.files || used.bytes > most.bytes {
                return MeasuredDisk::Measured(used);
            }
        }
    }
    MeasuredDisk::Measured(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_not_followed_and_depth_is_told() {
        let room = tempfile::tempdir().expect("a folder");
        std::fs::write(room.path().join("a"), "12345").expect("write");
        std::os::unix::fs::symlink("/usr", room.path().join("out")).expect("link");
        std::os::unix::fs::symlink("/dev/zero", room.path().join("zero")).expect("link");
        let expected = MeasuredDisk::Measured(DiskUsage { bytes: 5, files: 3 });
        assert_eq!(measure_folder(room.path(), DiskUsage::MAX), expected);
        std::fs::create_dir_all(room.path().join("d/".repeat(MOST_DEPTH + 1))).expect("create");
        assert_eq!(measure_folder(room.path(), DiskUsage::MAX), MeasuredDisk::TooDeep);
    }
}
