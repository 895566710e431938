//! Exchanges two folders in one step.

use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Puts the folder `new` where `old` is. At no time is neither there; afterwards `new` has the old content.
pub fn swap_folders(new: &Path, old: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // Not every file system can exchange folders; then there is a moment in between.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP) => {
            let aside = new.with_extension("old");
            std::fs::rename(old, &aside)?;
            if let Err(error) = std::fs::rename(new, old) {
                std::fs::rename(&aside, old)?;
                return Err(error);
            }
            std::fs::rename(&aside, new)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes a second tree with hard links to the same files, so that nothing is lost whichever tree is removed.
/// Symbolic links are made anew.
pub fn hard_link_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    // A list instead of recursion: a hostile tree may have thousands of folders inside each other.
    let mut entries = vec![(from.to_owned(), to.to_owned())];
    let mut folders = Vec::new();
    while let Some((from, to)) = entries.pop() {
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let metadata = std::fs::symlink_metadata(&from)?;
        if metadata.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&from)?, &to)?;
        } else if metadata.is_dir() {
            std::fs::create_dir_all(&to)?;
            for entry in std::fs::read_dir(&from)? {
                let entry = entry?;
                entries.push((entry.path(), to.join(entry.file_name())));
            }
            folders.push((to, metadata.permissions()));
        } else {
            std::fs::hard_link(&from, &to)?;
        }
    }
    // Permissions come last: a folder that may not be written to could not be filled.
    folders.into_iter().rev().try_for_each(|(to, permissions)| std::fs::set_permissions(to, permissions))
}
