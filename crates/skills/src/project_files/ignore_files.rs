//! Decides whether the ignore files of a folder can be read safely by the library that walks folders.

use std::path::Path;

use ignore::WalkBuilder;

/// The files in a folder that the library reads.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// The largest ignore file that is read.
const MAX_IGNORE_FILE_SIZE: u64 = 4 * 1024 * 1024;

/// Says whether a folder has an ignore file that must not be read: a pipe or a device, a link to one, or a file of
/// many megabytes. Reading it would take for ever or fill the memory.
pub fn has_unreadable_ignore_file(folder: &Path) -> bool {
    let is_unreadable = |name: &str| {
        let found = folder.join(name).metadata();
        found.is_ok_and(|found| !found.is_file() || found.len() > MAX_IGNORE_FILE_SIZE)
    };
    IGNORE_FILES.iter().any(|name| is_unreadable(name))
}

/// Lets a walk that starts at `folder` read no ignore files if one there or above must not be read. The folders below
/// are for the filter of the walk to refuse.
pub fn skip_unreadable_ignore_files(walk: &mut WalkBuilder, folder: &Path) {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    if folder.ancestors().any(has_unreadable_ignore_file) {
        walk.parents(false).ignore(false).git_ignore(false).git_exclude(false);
    }
}
