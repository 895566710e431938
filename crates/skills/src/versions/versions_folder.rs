//! The folder in which versions of a skill are stored.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::history::{SkillVersion, VersionHistory};
use super::{SkillContents, SkillContentsError};
use crate::skill::{SKILL_FILE, versions_folder_of};
use practicum_core::model::{Digest, RelPath};
use practicum_core::tree::{append_unlinked, read_regular_text};

/// A folder of versions: `history.json`, and `vN/skill` for each.
#[derive(Debug, Clone)]
pub struct VersionsFolder {
    path: PathBuf,
}

/// An error: the versions of a skill cannot be read or written.
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

/// A file with the digest of a version whose files were not kept, so that the version is recognised.
const DIGEST_FILE: &str = "digest";

const TEMP_FOLDER_PREFIX: &str = ".aside-";

impl VersionsFolder {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Gives the folder beside a skill.
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

    /// Locks the folder, so that two commands do not give one number to two versions. Removes what a killed
    /// command left unfinished.
    pub fn lock(&self) -> Result<File, VersionsError> {
        std::fs::create_dir_all(&self.path).map_err(self.io_error())?;
        let file = append_unlinked(self.path.join(".lock")).map_err(self.io_error())?;
        file.lock().map_err(self.io_error())?;
        for entry in std::fs::read_dir(&self.path).map_err(self.io_error())?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(TEMP_FOLDER_PREFIX) {
                std::fs::remove_dir_all(entry.path()).map_err(self.io_error())?;
            }
        }
        Ok(file)
    }

    /// Makes a temporary folder on the same file system as the skill, for files that are not complete yet.
    pub fn temp_folder(&self) -> Result<tempfile::TempDir, VersionsError> {
        tempfile::Builder::new().prefix(TEMP_FOLDER_PREFIX).tempdir_in(&self.path).map_err(self.io_error())
    }

    pub fn io_error(&self) -> impl Fn(std::io::Error) -> VersionsError + '_ {
        |error| VersionsError::Io { path: self.path.clone(), error }
    }

    /// Finds the latest version with this digest.
    pub fn find_version(&self, history: &VersionHistory, wanted: &Digest) -> Option<u32> {
        let mut latest_first = history.versions.iter().rev();
        latest_first
            .find(|version| self.digest_of(version).as_ref() == Some(wanted))
            .map(|version| version.version)
    }

    /// Gives the digest of a version's content, now or when it was graded. `None` if it is unknown.
    pub fn digest_of(&self, version: &SkillVersion) -> Option<Digest> {
        let kept = self.files_of(version).ok().and_then(|skill| digest_of_folder(&skill));
        kept.or_else(|| {
            let place = self.canonical_inside(self.version_folder(version)?.as_path())?;
            // A digest file is hardly longer than a line; a longer file was not written by this program.
            let noted = place.join(DIGEST_FILE);
            let short = noted.metadata().is_ok_and(|metadata| metadata.len() < 200);
            let text = short.then(|| read_regular_text(noted).ok()).flatten()?;
            serde_json::from_value(text.trim().into()).ok()
        })
    }

    /// Stores the digest of a version whose files are not kept.
    pub fn record_digest(&self, version: &SkillVersion, digest: &Digest) -> Result<(), VersionsError> {
        let place = self.version_folder(version).ok_or(VersionsError::NoVersion(version.version))?;
        std::fs::create_dir_all(&place)
            .and_then(|()| std::fs::write(place.join(DIGEST_FILE), format!("{digest}\n")))
            .map_err(self.io_error())
    }

    /// Gives the path of a version's files: the folder that contains them, or the command file in it. A path in a
    /// history from elsewhere must not lead out of the versions folder.
    pub fn files_of(&self, version: &SkillVersion) -> Result<PathBuf, VersionsError> {
        let gone = || VersionsError::FilesMissing { version: version.version, path: version.path.clone() };
        let folder = self.canonical_inside(&version.path.join_to(&self.path)).ok_or_else(gone)?;
        Ok(skill_in(&folder))
    }

    /// Stores a version's files. They are copied to a temporary folder and moved, so that they are complete or not
    /// there.
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

    /// Finds a number for a version with this digest, after all others. A folder that the history does not list is
    /// left alone, unless it has this digest: then the program was killed before it wrote the history.
    pub fn free_number(&self, least: u32, wanted: &Digest) -> Option<u32> {
        (least..=u32::MAX).find(|number| {
            let place = self.path.join(format!("v{number}"));
            match std::fs::read_dir(&place) {
                Ok(mut entries) => entries.next().is_none() || self.has_digest(&place.join("skill"), wanted),
                Err(error) => error.kind() == std::io::ErrorKind::NotFound,
            }
        })
    }

    /// Says whether a folder inside the versions folder has this digest.
    pub fn has_digest(&self, folder: &Path, wanted: &Digest) -> bool {
        self.canonical_inside(folder).and_then(|folder| digest_of_folder(&folder)).as_ref() == Some(wanted)
    }

    /// Gives the folder of a version, which contains its files, its digest and its score.
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

/// Finds the skill in a version's folder: the folder itself, or the only file in it if that is a command file.
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
