//! Finds files of the system that are not meant for everyone, such as /etc/shadow.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// The folder of the system's settings. All other system folders hold programs, which everyone may read.
const SETTINGS_FOLDER: &str = "/etc";

/// The most entries that are looked at. Real systems have some thousand.
const MOST_ENTRIES: usize = 100_000;

/// Lists the files and folders below /etc that this user can read and that not everyone can. They are hidden from
/// agents. For most users there are none; for root there are the passwords.
pub fn private_files() -> Vec<PathBuf> {
    if cfg!(target_os = "macos") {
        return Vec::new();
    }
    private_files_in(Path::new(SETTINGS_FOLDER))
}

fn private_files_in(folder: &Path) -> Vec<PathBuf> {
    let mut private = Vec::new();
    let mut open = vec![folder.to_owned()];
    let mut seen = 0;
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            seen += 1;
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            let everyone = if metadata.is_dir() { 0o005 } else { 0o004 };
            if metadata.is_symlink() || seen > MOST_ENTRIES {
                continue;
            }
            if metadata.mode() & everyone == everyone {
                open.extend(metadata.is_dir().then_some(path));
            } else if rustix::fs::access(&path, Access::READ_OK).is_ok() {
                private.push(path);
            }
        }
    }
    private.sort();
    private
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_not_everyone_can_read_is_private() {
        let etc = tempfile::tempdir().expect("a folder");
        let set = |name: &str, mode| {
            let path = etc.path().join(name);
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
        };
        for (name, mode) in [("passwd", 0o644), ("shadow", 0o640), ("open/key", 0o600), ("closed/key", 0o644)]
        {
            let path = etc.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
            std::fs::write(path, "x").expect("write");
            set(name, mode);
        }
        set("closed", 0o700);
        let found = private_files_in(etc.path());
        let expected = ["closed", "open/key", "shadow"].map(|name| etc.path().join(name));
        assert_eq!(found, expected);
    }
}
