//! Where rooms are, and how they go.

use std::path::{Path, PathBuf};

/// The folder that holds a run's rooms. Dropping it removes it, unless it is to be kept.
#[derive(Debug)]
pub struct WorkspaceRoot {
    path: PathBuf,
    keep: bool,
}

impl WorkspaceRoot {
    /// Where the rooms of a run are. Known before they are made, so that whoever sweeps up after a
    /// killed run knows it too.
    pub fn path_for_run(run: &str) -> PathBuf {
        std::env::temp_dir().join(format!("practicum-{run}"))
    }

    /// Makes the folder, for us alone. One that is there already is somebody else's.
    pub fn create(path: PathBuf) -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        spread_folders(&path);
        Ok(Self { path, keep: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where one of the rooms in a folder of rooms is: off one of sixteen corridors, which are put far
    /// from each other. Each room far from every other would cost small ones more than it gains.
    pub fn workspace_path(rooms: &Path, name: &str) -> PathBuf {
        rooms.join(name.get(..1).unwrap_or("0")).join(name)
    }

    /// Leaves the rooms where they are, and says where that is.
    pub fn keep_workspaces(mut self) -> PathBuf {
        self.keep = true;
        self.path.clone()
    }
}

impl Drop for WorkspaceRoot {
    fn drop(&mut self) {
        if !self.keep {
            remove_workspace(&self.path);
        }
    }
}

/// Asks the file system to put the folders in a folder far from each other. Without a journal, ext4 looks
/// at the place of each file that was just removed before it gives a place to a new one nearby, so each
/// room would pay for those before it. Where nobody understands the question, nothing is lost.
fn spread_folders(folder: &Path) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
        let Ok(folder) = std::fs::File::open(folder) else { return };
        let _ = ioctl_getflags(&folder).and_then(|flags| ioctl_setflags(&folder, flags | IFlags::TOPDIR));
    }
    #[cfg(not(target_os = "linux"))]
    let _ = folder;
}

/// Removes a room. An agent may have made folders unwritable, so that is mended once.
pub fn remove_workspace(room: &Path) {
    if std::fs::remove_dir_all(room).is_ok() || !room.exists() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let walk = ignore::WalkBuilder::new(room).standard_filters(false).follow_links(false).build();
    for entry in walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_dir())) {
        let _ = std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o700));
    }
    let _ = std::fs::remove_dir_all(room);
}
