//! The folder of a run's workspaces, and how workspaces are deleted.

use std::path::{Path, PathBuf};

use super::remove_folder;

/// The folder of all workspaces of a run. Dropping it deletes it, unless it is to be kept.
#[derive(Debug)]
pub struct WorkspaceRoot {
    path: PathBuf,
    keep: bool,
}

impl WorkspaceRoot {
    /// Gives the folder of a run's workspaces. It follows from the run's id, so that it can be cleaned up after
    /// the run was killed.
    pub fn path_for_run(run: &str) -> PathBuf {
        let folder = std::env::temp_dir();
        // On macOS the temporary folder is behind a link, and both the sandbox and the list of processes name real
        // paths.
        let folder = if cfg!(target_os = "macos") { folder.canonicalize().unwrap_or(folder) } else { folder };
        folder.join(format!("practicum-{run}"))
    }

    /// Makes the folder, readable only by the user. Fails if it exists, because then it belongs to someone else.
    pub fn create(path: PathBuf) -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        spread_folders(&path);
        Ok(Self { path, keep: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder of one workspace: in one of sixteen subfolders, which the file system places far from each
    /// other. Placing every single workspace far from the others would cost small ones more than it gains.
    pub(crate) fn workspace_path(rooms: &Path, name: &str) -> PathBuf {
        rooms.join(name.get(..1).unwrap_or("0")).join(name)
    }

    /// Keeps the workspaces, and gives their folder.
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

/// Makes the folder of one workspace, which must not exist, and the folder around it if it is missing.
pub(super) fn create_workspace_root(root: &Path) -> std::io::Result<()> {
    match (std::fs::create_dir(root), root.parent()) {
        (Err(error), Some(parent)) if error.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(parent)?;
            std::fs::create_dir(root)
        }
        (made, _) => made,
    }
}

/// Asks the file system to place the subfolders of a folder far from each other. Without a journal, ext4 examines
/// the place of each recently deleted file before it places a new file nearby, so each workspace would be slowed
/// down by those before it. File systems that do not support this ignore it.
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

/// Deletes a workspace, whatever an agent made of it. What cannot be deleted stays.
pub(crate) fn remove_workspace(room: &Path) {
    let _ = remove_folder(room);
}
