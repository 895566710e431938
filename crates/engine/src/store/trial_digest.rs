//! The digests of a trial's files, which show whether the files are complete and who made them.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record_key::{MarkKind, RecordKey};
use practicum_core::model::Digest;
use practicum_core::tree::{open_regular, read_regular, write_unlinked};

/// The name of the file with the digests.
pub const DIGEST_FILE: &str = "digest.json";

/// The digests of all files of a trial, and the mark of the installation that made them: `digest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Digests of the files of a trial (trials/*/digest.json)")]
pub struct TrialDigest {
    /// The version of this document's form.
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The digest of each file, by its path in the trial's folder.
    pub files: BTreeMap<String, Digest>,
    /// The mark of the installation that made the trial. `None` if it has no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// The state of a stored trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialOrigin {
    /// This user's installation made the trial, and its files are as they were.
    MadeHere,
    /// Another installation made the trial, or an earlier version that wrote no digests.
    MadeElsewhere,
    /// A file is missing or not as it was.
    Damaged,
}

impl TrialDigest {
    /// Computes the digests of a trial's files.
    pub fn of_folder(folder: &Path, key: Option<&RecordKey>) -> std::io::Result<Self> {
        Self::with_known(folder, key, &BTreeMap::new())
    }

    /// Computes the digests of a trial's files. Those of `known` files were computed when they were written, so these
    /// files are not read again.
    fn with_known(
        folder: &Path,
        key: Option<&RecordKey>,
        known: &BTreeMap<String, Digest>,
    ) -> std::io::Result<Self> {
        let files = digest_files(folder, known)?;
        let mark = key.map(|key| key.mark(MarkKind::Trial, mark_parts(&files).iter().map(String::as_bytes)));
        Ok(Self { schema_version: 1, files, mark })
    }

    /// Computes the digests and writes them into the folder.
    pub fn write(folder: &Path, key: Option<&RecordKey>) -> std::io::Result<()> {
        Self::write_with_known(folder, key, &BTreeMap::new())
    }

    /// Writes the digests as [`TrialDigest::write`] does, without reading the `known` files again.
    pub(super) fn write_with_known(
        folder: &Path,
        key: Option<&RecordKey>,
        known: &BTreeMap<String, Digest>,
    ) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(&Self::with_known(folder, key, known)?)?;
        // The file may be a hard link to that of another run.
        let aside = folder.join(".digest.json.new");
        write_unlinked(&aside, bytes)?;
        std::fs::rename(aside, folder.join(DIGEST_FILE))
    }

    /// Reads the digests of a trial. `None` if it has none, as records of earlier versions.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&read_regular(folder.join(DIGEST_FILE)).ok()?).ok()
    }

    /// Says whether the files in a folder are those of the digests.
    fn fits(&self, folder: &Path) -> bool {
        digest_files(folder, &BTreeMap::new()).is_ok_and(|files| files == self.files)
    }

    /// Says whether one file of the folder is missing or not as it was.
    pub fn is_changed(&self, folder: &Path, name: &str) -> bool {
        self.files.get(name) != digest_file(&folder.join(name)).ok().as_ref()
    }

    /// Says who made a stored trial, and whether its files are as they were.
    pub fn origin(folder: &Path, key: &RecordKey) -> TrialOrigin {
        let Some(digest) = Self::read(folder) else { return TrialOrigin::MadeElsewhere };
        let parts = mark_parts(&digest.files);
        let mark = digest.mark.as_deref().unwrap_or_default();
        match (digest.fits(folder), key.is_mark(mark, MarkKind::Trial, parts.iter().map(String::as_bytes))) {
            (false, _) => TrialOrigin::Damaged,
            (true, true) => TrialOrigin::MadeHere,
            (true, false) => TrialOrigin::MadeElsewhere,
        }
    }
}

fn mark_parts(files: &BTreeMap<String, Digest>) -> Vec<String> {
    files.iter().flat_map(|(name, digest)| [name.clone(), digest.to_string()]).collect()
}

/// Computes the digests of all regular files below a folder, without the digests themselves. Files with a `known`
/// digest are not read.
fn digest_files(
    folder: &Path,
    known: &BTreeMap<String, Digest>,
) -> std::io::Result<BTreeMap<String, Digest>> {
    let mut files = BTreeMap::new();
    // A list instead of recursion: an agent may have made thousands of folders inside each other.
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && name != DIGEST_FILE && name != ".digest.json.new" {
                let digest = known.get(&name).cloned().map_or_else(|| digest_file(&path), Ok)?;
                files.insert(name, digest);
            }
        }
    }
    Ok(files)
}

fn digest_file(path: &Path) -> std::io::Result<Digest> {
    Digest::of_reader(open_regular(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_reused_only_as_it_was_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("write");
        std::fs::create_dir(folder.path().join("files")).expect("create");
        write("checks.json", "{}");
        write("files/a.txt", "a");
        let (own, other) = (RecordKey::temporary(), RecordKey::temporary());
        let origin = |key: &RecordKey| TrialDigest::origin(folder.path(), key);
        assert_eq!(origin(&own), TrialOrigin::MadeElsewhere, "no digests yet");
        TrialDigest::write(folder.path(), None).expect("written");
        assert_eq!(origin(&own), TrialOrigin::MadeElsewhere, "no key");
        TrialDigest::write(folder.path(), Some(&own)).expect("written");
        assert_eq!((origin(&own), origin(&other)), (TrialOrigin::MadeHere, TrialOrigin::MadeElsewhere));
        for (name, text) in [("checks.json", "{\"a\":1}"), ("files/a.txt", ""), ("extra", "x")] {
            let before = std::fs::read(folder.path().join(name)).ok();
            write(name, text);
            assert_eq!(origin(&own), TrialOrigin::Damaged, "{name}");
            match before {
                Some(bytes) => std::fs::write(folder.path().join(name), bytes).expect("write"),
                None => std::fs::remove_file(folder.path().join(name)).expect("removed"),
            }
            assert_eq!(origin(&own), TrialOrigin::MadeHere, "{name}");
        }
        std::fs::remove_file(folder.path().join("files/a.txt")).expect("removed");
        assert_eq!(origin(&own), TrialOrigin::Damaged);
    }
}
