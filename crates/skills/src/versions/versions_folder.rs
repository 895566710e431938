use std::fs::File;
use std::path::{Path, PathBuf};

use super::history::{SkillVersion, VersionHistory};
use super::{SkillContents, SkillContentsError};
use crate::skill::{SKILL_FILE, versions_folder_of};
use practicum_core::model::{Digest, RelPath};

/// A folder of versions: `history.json`, and `vN/skill` for each.
#[derive(Debug, Clone)]
pub struct VersionsFolder {
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    #[error(transparent)]
    Contents(#[from] SkillContentsError),
    #[error("{0}")]
    History(String),
    #[error("there is no version v{0}; practicum versions lists them")]
    NoVersion(u32),
    #[error("the files of v{version} are not where {path} says; they cannot be put back")]
    FilesMissing { version: u32, path: RelPath },
    #[error("cannot keep versions in {path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
}

/// Beside a version's files that nobody kept: their digest, so that they are known again.
const DIGEST_FILE: &str = "digest";

const TEMP_FOLDER_PREFIX: &str = ".aside-";

impl VersionsFolder {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The one beside a skill.
    pub fn beside_skill(skill: &Path) -> Self {
        Self { path: versions_folder_of(skill) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn history(&self) -> Result<VersionHistory, VersionsError> {
        VersionHistory::read(&self.path).map_err(VersionsError::History)
    }

    pub fn write_history(&self, history: &VersionHistory) -> Result<(), VersionsError> {
        history.write(&self.path).map_err(self.io_error())
    }

    /// One at a time: two commands must not give one number to two versions. Whoever is let in finds
    /// nothing that a killed one was at.
    pub fn lock(&self) -> Result<File, VersionsError> {
        std::fs::create_dir_all(&self.path).map_err(self.io_error())?;
        let file = File::create(self.path.join(".lock")).map_err(self.io_error())?;
        file.lock().map_err(self.io_error())?;
        for entry in std::fs::read_dir(&self.path).map_err(self.io_error())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMP_FOLDER_PREFIX) {
                std::fs::remove_dir_all(entry.path()).map_err(self.io_error())?;
            }
        }
        Ok(file)
    }

    /// A folder on the same file system as the skill, for what is not whole yet.
    pub fn temp_folder(&self) -> Result<tempfile::TempDir, VersionsError> {
        tempfile::Builder::new().prefix(TEMP_FOLDER_PREFIX).tempdir_in(&self.path).map_err(self.io_error())
    }

    pub fn io_error(&self) -> impl Fn(std::io::Error) -> VersionsError + '_ {
        |error| VersionsError::Io { path: self.path.clone(), error }
    }

    /// The latest version that holds just this.
    pub fn find_version(&self, history: &VersionHistory, wanted: &Digest) -> Option<u32> {
        let mut latest_first = history.versions.iter().rev();
        latest_first
            .find(|version| self.digest_of(version).as_ref() == Some(wanted))
            .map(|version| version.version)
    }

    /// What a version holds, or held when it was graded. `None` if nothing tells.
    pub fn digest_of(&self, version: &SkillVersion) -> Option<Digest> {
        let kept = self.files_of(version).ok().and_then(|skill| digest_of_folder(&skill));
        kept.or_else(|| {
            let place = self.canonical_inside(self.version_folder(version)?.as_path())?;
            // Hardly more than a line: what is longer was not written here.
            let noted = place.join(DIGEST_FILE);
            let short = noted.metadata().is_ok_and(|metadata| metadata.len() < 200);
            let text = short.then(|| std::fs::read_to_string(noted).ok()).flatten()?;
            serde_json::from_value(text.trim().into()).ok()
        })
    }

    /// Notes what a version holds whose files are not kept.
    pub fn record_digest(&self, version: &SkillVersion, digest: &Digest) -> Result<(), VersionsError> {
        let place = self.version_folder(version).ok_or(VersionsError::NoVersion(version.version))?;
        std::fs::create_dir_all(&place)
            .and_then(|()| std::fs::write(place.join(DIGEST_FILE), format!("{digest}\n")))
            .map_err(self.io_error())
    }

    /// A version's files: the folder that holds them, or the command file in it. What a history from elsewhere
    /// says must not lead out of the workspace.
    pub fn files_of(&self, version: &SkillVersion) -> Result<PathBuf, VersionsError> {
        let gone = || VersionsError::FilesMissing { version: version.version, path: version.path.clone() };
        let folder = self.canonical_inside(&version.path.join_to(&self.path)).ok_or_else(gone)?;
        Ok(skill_in(&folder))
    }

    /// Keeps a version's files. They are copied aside and moved, so that they are whole or not there.
    pub fn store_files(
        &self,
        contents: &SkillContents,
        digest: &Digest,
        version: &SkillVersion,
    ) -> Result<(), VersionsError> {
        let place = version.path.join_to(&self.path);
        if self.has_digest(&place, digest) {
            return Ok(());
        }
        let aside = self.temp_folder()?;
        let whole = aside.path().join("skill");
        std::fs::create_dir(&whole).map_err(self.io_error())?;
        contents.copy_to(&whole)?;
        let moved = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        moved.and_then(|()| std::fs::rename(&whole, &place)).map_err(self.io_error())
    }

    /// The number for a version that holds this, after all others. A folder that the history does not list
    /// stays as it is, unless it holds just that: then a kill came before the history was written.
    pub fn free_number(&self, least: u32, wanted: &Digest) -> Option<u32> {
        (least..=u32::MAX).find(|number| {
            let place = self.path.join(format!("v{number}"));
            match std::fs::read_dir(&place) {
                Ok(mut entries) => entries.next().is_none() || self.has_digest(&place.join("skill"), wanted),
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            }
        })
    }

    /// Whether a folder of this workspace holds just this.
    pub fn has_digest(&self, folder: &Path, wanted: &Digest) -> bool {
        self.canonical_inside(folder).and_then(|folder| digest_of_folder(&folder)).as_ref() == Some(wanted)
    }

    /// The folder of a version, with its files and what is known of it.
    pub fn version_folder(&self, version: &SkillVersion) -> Option<PathBuf> {
        version.path.join_to(&self.path).parent().map(Path::to_owned)
    }

    fn canonical_inside(&self, folder: &Path) -> Option<PathBuf> {
        let folder = folder.canonicalize().ok()?;
        folder.starts_with(self.path.canonicalize().ok()?).then_some(folder)
    }
}

fn digest_of_folder(folder: &Path) -> Option<Digest> {
    SkillContents::scan(&skill_in(folder)).ok()?.digest().ok()
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
