//! Writes the files that a process expects to find when it starts.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use practicum_agents::agents::Launch;
use practicum_core::tree::read_bounded;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};

/// How a process gets the user's own login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginAccess {
    /// A copy. Whatever the process makes of it, the user's login stays as it is.
    Copy,
    /// A link to the user's file, for processes that do not do what a stranger's text says. A renewed login reaches
    /// the user.
    Link,
}

/// The largest login file that is copied. Real ones have a few kilobytes.
const LARGEST_LOGIN: u64 = 1024 * 1024;

/// Writes the files and the login of a launch.
pub fn write_launch_files(launch: &Launch, login: LoginAccess) -> Result<(), String> {
    for (path, content) in &launch.files {
        make_with_parent(path, |path| std::fs::write(path, content))?;
    }
    match (&launch.login_file, login) {
        (None, _) => Ok(()),
        (Some((path, user_file)), LoginAccess::Link) => {
            make_with_parent(path, |path| std::os::unix::fs::symlink(user_file, path))
        }
        (Some((path, user_file)), LoginAccess::Copy) => {
            let content = read_bounded(user_file, LARGEST_LOGIN)
                .map_err(|why| format!("the login in {} cannot be read: {why}", user_file.display()))?;
            make_with_parent(path, |path| {
                let mut new = std::fs::File::options();
                new.write(true).create_new(true).mode(0o600).open(path)?.write_all(&content)
            })
        }
    }
}

/// Deletes the copy of a login below `home`, so that it does not stay where workspaces are kept. The agent may have
/// replaced folders by links, which are not followed.
pub fn remove_login_copy(launch: &Launch, home: &Path) {
    let Some((path, _)) = &launch.login_file else { return };
    let Ok(below) = path.strip_prefix(home) else { return };
    let Some((parent, name)) = below.parent().zip(below.file_name()) else { return };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = openat(CWD, home, flags, Mode::empty());
    for part in parent {
        folder = folder.and_then(|folder| openat(folder, part, flags, Mode::empty()));
    }
    // If it is gone already, that is as well.
    let _ = folder.and_then(|folder| unlinkat(folder, name, AtFlags::empty()));
}

/// Makes a file or link, after the folder around it.
fn make_with_parent(path: &Path, make: impl Fn(&Path) -> std::io::Result<()>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| make(path));
    made.map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_copied_login_is_deleted_and_never_the_users_own() {
        let room = tempfile::tempdir().expect("a folder");
        let (home, own) = (room.path().join("home"), room.path().join("own"));
        for folder in [&home, &own] {
            std::fs::create_dir(folder).expect("create");
        }
        std::fs::write(own.join("auth.json"), "token").expect("write");
        let launch = Launch {
            program: "/bin/true".into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            files: Vec::new(),
            login_file: Some((home.join(".agent/auth.json"), own.join("auth.json"))),
            stdin: None,
        };
        write_launch_files(&launch, LoginAccess::Copy).expect("written");
        std::fs::write(home.join(".agent/auth.json"), "replaced").expect("write");
        remove_login_copy(&launch, &home);
        assert!(!home.join(".agent/auth.json").exists());
        std::fs::remove_dir(home.join(".agent")).expect("remove");
        symlink(&own, home.join(".agent")).expect("link");
        remove_login_copy(&launch, &home);
        let kept = read_bounded(&own.join("auth.json"), 100).expect("kept");
        assert_eq!(kept, b"token");
    }
}
