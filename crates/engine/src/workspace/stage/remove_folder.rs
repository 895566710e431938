//! Deletes a folder of any depth without following links.

use std::ffi::{CStr, CString};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// The number of folders inside each other that are open at a time.
const MAX_OPEN_FOLDERS: usize = 64;

/// A folder that is being emptied. Its files are deleted already.
struct OpenFolder {
    name: CString,
    folder: Dir,
    /// The names of the folders in it that are not deleted yet.
    inner: Vec<CString>,
}

/// Deletes a folder with everything in it. A link is deleted and not followed.
///
/// Folders that lie very deep are first moved to the top, so that neither the stack nor the number of open files grows
/// with the depth. An agent can make folders so deep that a path to the innermost would be too long for the system.
/// Folders that may not be written to are made writable.
pub fn remove_folder(path: &Path) -> std::io::Result<()> {
    let top = match open_folder(CWD, path) {
        Err(Errno::NOTDIR | Errno::LOOP) => return std::fs::remove_file(path),
        opened => opened?,
    };
    let mut top = Dir::new(top)?;
    let mut inner_of_top = remove_entries(&mut top)?;
    let top = top.fd()?;
    let mut moved = 0;
    while let Some(name) = inner_of_top.pop() {
        let mut open: Vec<OpenFolder> = Vec::new();
        open.extend(enter_folder(top, name)?);
        while let Some(mut last) = open.pop() {
            match last.inner.pop() {
                Some(name) if open.len() < MAX_OPEN_FOLDERS => {
                    let next = enter_folder(last.folder.fd()?, name)?;
                    open.push(last);
                    open.extend(next);
                }
                Some(name) => {
                    inner_of_top.push(move_to_top(last.folder.fd()?, &name, top, &mut moved)?);
                    open.push(last);
                }
                None => {
                    let parent = open.last().map_or(Ok(top), |above| above.folder.fd())?;
                    with_write_access(parent, || unlinkat(parent, &*last.name, AtFlags::REMOVEDIR))?;
                }
            }
        }
    }
    std::fs::remove_dir(path)
}

/// Opens a folder and deletes the files and the empty folders in it. `None` if it does not exist: an empty folder that was replaced by one
/// that was moved to the top is met twice.
fn enter_folder(parent: BorrowedFd<'_>, name: CString) -> rustix::io::Result<Option<OpenFolder>> {
    let folder = match open_folder(parent, &*name) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let mut folder = Dir::new(folder)?;
    let inner = remove_entries(&mut folder)?;
    Ok(Some(OpenFolder { name, folder, inner }))
}

/// Opens a folder, and makes it readable and writable if it is not.
fn open_folder(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            openat(parent, name, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// Deletes everything in a folder but the folders that are not empty, and gives the names of those.
fn remove_entries(open: &mut Dir) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in open.by_ref() {
        let entry = entry?;
        if entry.file_name() != c"." && entry.file_name() != c".." {
            names.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    let folder = open.fd()?;
    let mut folders = Vec::new();
    for (name, kind) in names {
        // Most folders in a workspace are empty, and need not be opened.
        let is_folder = kind == FileType::Directory;
        let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        match with_write_access(folder, || unlinkat(folder, &*name, flags)) {
            Err(_) if is_folder => folders.push(name),
            // Not every file system tells the kind. Linux says the one, other systems the other.
            Err(Errno::ISDIR | Errno::PERM) => folders.push(name),
            deleted => deleted?,
        }
    }
    Ok(folders)
}

/// Moves a folder to the top under a free name, and gives that name.
fn move_to_top(
    parent: BorrowedFd<'_>,
    name: &CStr,
    top: BorrowedFd<'_>,
    moved: &mut u64,
) -> std::io::Result<CString> {
    loop {
        *moved += 1;
        let free = CString::new(format!(".removed-{moved}"))?;
        match with_write_access(parent, || renameat(parent, name, top, &*free)) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            // Only a folder that can be written to can be moved.
            Err(Errno::ACCESS) => {
                chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
                renameat(parent, name, top, &*free)?;
                return Ok(free);
            }
            done => return Ok(done.map(|()| free)?),
        }
    }
}

/// Changes something in a folder. If the folder may not be written to, makes it writable and tries again.
fn with_write_access(
    folder: BorrowedFd<'_>,
    change: impl Fn() -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    match change() {
        Err(Errno::ACCESS) => {
            fchmod(folder, Mode::RWXU)?;
            change()
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_of_any_depth_are_deleted_and_links_are_not_followed() {
        let room = tempfile::tempdir().expect("a folder");
        let outside = room.path().join("outside");
        std::fs::create_dir(&outside).expect("create");
        std::fs::write(outside.join("kept"), "x").expect("write");
        let folder = room.path().join("workspace");
        std::fs::create_dir_all(folder.join("a/locked/inner")).expect("create");
        std::fs::write(folder.join("a/locked/file"), "x").expect("write");
        std::fs::create_dir(folder.join(".removed-1")).expect("create");
        std::fs::write(folder.join(".removed-1/file"), "x").expect("write");
        std::os::unix::fs::symlink(&outside, folder.join("a/link")).expect("link");
        let locked = std::fs::Permissions::from_mode(0o500);
        std::fs::set_permissions(folder.join("a/locked"), locked).expect("permissions");
        let mut deepest = open_folder(CWD, &folder).expect("open");
        for _ in 0..16_000 {
            rustix::fs::mkdirat(&deepest, "d", Mode::RWXU).expect("create");
            deepest = open_folder(deepest.as_fd(), "d").expect("open");
        }
        drop(deepest);
        remove_folder(&folder).expect("deleted");
        assert!(!folder.exists() && outside.join("kept").exists());
        std::os::unix::fs::symlink(&outside, &folder).expect("link");
        remove_folder(&folder).expect("deleted");
        assert!(!folder.is_symlink() && outside.join("kept").exists());
    }
}
