//! The view of a workspace that checks get.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use practicum_core::model::{RelPath, WorkspaceView};
use practicum_core::tree::open_regular;

/// A folder as checks may see it: the files inside, never through a link that leads out.
pub struct FolderView {
    folder: PathBuf,
    /// The folder without links, once a check has asked for a file.
    real: OnceLock<Option<PathBuf>>,
}

/// The most bytes of a file that a check reads.
const MOST_READ: u64 = 32 * 1024 * 1024;

impl FolderView {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), real: OnceLock::new() }
    }

    fn real(&self) -> Option<&PathBuf> {
        self.real.get_or_init(|| self.folder.canonicalize().ok()).as_ref()
    }

    fn resolve_inside(&self, path: &RelPath) -> Option<PathBuf> {
        let resolved = path.join_to(&self.folder).canonicalize().ok()?;
        resolved.starts_with(self.real()?).then_some(resolved)
    }
}

impl WorkspaceView for FolderView {
    fn read(&self, path: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        let Some(resolved) = self.resolve_inside(path) else { return Ok(None) };
        if !resolved.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        open_regular(resolved)?.take(MOST_READ).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn exists(&self, path: &RelPath) -> std::io::Result<bool> {
        Ok(self.resolve_inside(path).is_some())
    }

    fn describe_unreadable(&self, path: &RelPath) -> Option<&'static str> {
        let at = path.join_to(&self.folder);
        let is_link = at.symlink_metadata().ok()?.is_symlink();
        match self.resolve_inside(path) {
            Some(resolved) if resolved.is_dir() => Some("is a folder, not a file"),
            Some(resolved) => (!resolved.is_file()).then_some("is no regular file"),
            None if is_link && !at.exists() => Some("is a link that leads to nothing"),
            None => Some("leads out of the workspace by a link"),
        }
    }

    fn link_target(&self, path: &RelPath) -> Option<RelPath> {
        let resolved = self.resolve_inside(path)?;
        let real = RelPath::new(resolved.strip_prefix(self.real()?).ok()?.to_str()?)?;
        (real != *path).then_some(real)
    }
}
