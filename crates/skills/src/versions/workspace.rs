use std::fs::File;
use std::path::{Path, PathBuf};

use super::history::{History, Version};
use super::{Contents, ContentsError};
use crate::skill::{SKILL_FILE, workspace_of};
use practicum_core::model::{Digest, RelPath};

/// A folder of versions: `history.json`, and `vN/skill` for each.
#[derive(Debug, Clone)]
pub struct Workspace {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    #[error(transparent)]
    Contents(#[from] ContentsError),
    #[error("{0}")]
    History(String),
    #[error("there is no version v{0}; practicum versions lists them")]
    NoVersion(u32),
    #[error("the files of v{version} are not where {path} says; they cannot be put back")]
    Gone { version: u32, path: RelPath },
    #[error("cannot keep versions in {path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
}

/// Beside a version's files that nobody kept: their digest, so that they are known again.
const NOTED: &str = "digest";

const ASIDE: &str = ".aside-";

impl Workspace {
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The one beside a skill.
    pub fn of(skill: &Path) -> Self {
        Self { path: workspace_of(skill) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn history(&self) -> Result<History, VersionsError> {
        History::read(&self.path).map_err(VersionsError::History)
    }

    pub fn write(&self, history: &History) -> Result<(), VersionsError> {
        history.write(&self.path).map_err(self.failed())
    }

    /// One at a time: two commands must not give one number to two versions. Whoever is let in finds
    /// nothing that a killed one was at.
    pub fn lock(&self) -> Result<File, VersionsError> {
        std::fs::create_dir_all(&self.path).map_err(self.failed())?;
        let file = File::create(self.path.join(".lock")).map_err(self.failed())?;
        file.lock().map_err(self.failed())?;
        for entry in std::fs::read_dir(&self.path).map_err(self.failed())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(ASIDE) {
                std::fs::remove_dir_all(entry.path()).map_err(self.failed())?;
            }
        }
        Ok(file)
    }

    /// A folder on the same file system as the skill, for what is not whole yet.
    pub fn aside(&self) -> Result<tempfile::TempDir, VersionsError> {
        tempfile::Builder::new().prefix(ASIDE).tempdir_in(&self.path).map_err(self.failed())
    }

    pub fn failed(&self) -> impl Fn(std::io::Error) -> VersionsError + '_ {
        |error| VersionsError::Io { path: self.path.clone(), error }
    }

    /// The latest version that holds just this.
    pub fn find(&self, history: &History, wanted: &Digest) -> Option<u32> {
        let mut latest_first = history.versions.iter().rev();
        latest_first
            .find(|version| self.digest_of(version).as_ref() == Some(wanted))
            .map(|version| version.version)
    }

    /// What a version holds, or held when it was graded. `None` if nothing tells.
    pub fn digest_of(&self, version: &Version) -> Option<Digest> {
        let kept = self.files_of(version).ok().and_then(|skill| digest_in(&skill));
        kept.or_else(|| {
            let place = self.inside(self.place_of(version)?.as_path())?;
            // Hardly more than a line: what is longer was not written here.
            let noted = place.join(NOTED);
            let short = noted.metadata().is_ok_and(|metadata| metadata.len() < 200);
            let text = short.then(|| std::fs::read_to_string(noted).ok()).flatten()?;
            serde_json::from_value(text.trim().into()).ok()
        })
    }

    /// Notes what a version holds whose files are not kept.
    pub fn note(&self, version: &Version, digest: &Digest) -> Result<(), VersionsError> {
        let place = self.place_of(version).ok_or(VersionsError::NoVersion(version.version))?;
        std::fs::create_dir_all(&place)
            .and_then(|()| std::fs::write(place.join(NOTED), format!("{digest}\n")))
            .map_err(self.failed())
    }

    /// A version's files: the folder that holds them, or the command file in it. What a history from elsewhere
    /// says must not lead out of the workspace.
    pub fn files_of(&self, version: &Version) -> Result<PathBuf, VersionsError> {
        let gone = || VersionsError::Gone { version: version.version, path: version.path.clone() };
        let folder = self.inside(&version.path.under(&self.path)).ok_or_else(gone)?;
        Ok(skill_in(&folder))
    }

    /// Keeps a version's files. They are copied aside and moved, so that they are whole or not there.
    pub fn put_away(
        &self,
        contents: &Contents,
        digest: &Digest,
        version: &Version,
    ) -> Result<(), VersionsError> {
        let place = version.path.under(&self.path);
        if self.holds(&place, digest) {
            return Ok(());
        }
        let aside = self.aside()?;
        let whole = aside.path().join("skill");
        std::fs::create_dir(&whole).map_err(self.failed())?;
        contents.copy_to(&whole)?;
        let moved = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        moved.and_then(|()| std::fs::rename(&whole, &place)).map_err(self.failed())
    }

    /// The number for a version that holds this, after all others. A folder that the history does not list
    /// stays as it is, unless it holds just that: then a kill came before the history was written.
    pub fn free_number(&self, least: u32, wanted: &Digest) -> Option<u32> {
        (least..=u32::MAX).find(|number| {
            let place = self.path.join(format!("v{number}"));
            match std::fs::read_dir(&place) {
                Ok(mut entries) => entries.next().is_none() || self.holds(&place.join("skill"), wanted),
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            }
        })
    }

    /// Whether a folder of this workspace holds just this.
    pub fn holds(&self, folder: &Path, wanted: &Digest) -> bool {
        self.inside(folder).and_then(|folder| digest_in(&folder)).as_ref() == Some(wanted)
    }

    /// The folder of a version, with its files and what is known of it.
    pub fn place_of(&self, version: &Version) -> Option<PathBuf> {
        version.path.under(&self.path).parent().map(Path::to_owned)
    }

    fn inside(&self, folder: &Path) -> Option<PathBuf> {
        let folder = folder.canonicalize().ok()?;
        folder.starts_with(self.path.canonicalize().ok()?).then_some(folder)
    }
}

fn digest_in(folder: &Path) -> Option<Digest> {
    Contents::of(&skill_in(folder)).ok()?.digest().ok()
}

/// The skill in a version's folder: the folder, or the only file in it where that is a command file.
pub fn skill_in(folder: &Path) -> PathBuf {
    if folder.join(SKILL_FILE).is_file() || !folder.is_dir() {
        return folder.to_owned();
    }
    let entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().take(2).map(|entry| entry.path()).collect();
    match entries.as_slice() {
        [only] if only.extension().is_some_and(|ending| ending == "md") && only.is_file() => only.clone(),
        _ => folder.to_owned(),
    }
}
