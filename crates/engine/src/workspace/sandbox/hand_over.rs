//! Gives the files of a workspace to the user without rights that an agent becomes.

use std::os::unix::fs::{MetadataExt, lchown};
use std::path::Path;

/// Says whether every user can read and start a program.
pub fn others_can_run(program: &Path) -> bool {
    program.metadata().is_ok_and(|metadata| metadata.mode() & 0o005 == 0o005)
}

/// Gives a folder and everything in it to a user. Links are given and not followed.
pub fn hand_over_folder(folder: &Path, user: u32) -> std::io::Result<()> {
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        lchown(&next, Some(user), Some(user))?;
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => open.push(entry.path()),
                false => lchown(entry.path(), Some(user), Some(user))?,
            }
        }
    }
    Ok(())
}

/// Gives a file and the folders between it and `room` to a user.
pub fn hand_over_file(file: &Path, room: &Path, user: u32) -> std::io::Result<()> {
    let parts = file.ancestors().take_while(|part| part.starts_with(room) && *part != room);
    parts.into_iter().try_for_each(|part| lchown(part, Some(user), Some(user)))
}
