use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::model::{Digest, TrialId, TrialRecord};

/// Finished trials by what decided them, so that nothing is paid for twice.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// Where a finished trial is kept.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    schema_version: u32,
    run: String,
    trial: TrialId,
}

impl Cache {
    pub fn of(project: &Path) -> Self {
        Self { folder: project.join(".practicum/cache") }
    }

    /// A trial that ended the same question before, if its run is still there.
    pub fn find(&self, key: &Digest) -> Option<(TrialRecord, PathBuf)> {
        let kept: Kept = serde_json::from_slice(&std::fs::read(self.path(key)).ok()?).ok()?;
        let run = self.folder.parent()?.join("runs").join(&kept.run);
        let folder = run.join("trials").join(kept.trial.as_str());
        let record: TrialRecord =
            serde_json::from_slice(&std::fs::read(folder.join("checks.json")).ok()?).ok()?;
        (record.key.as_ref() == Some(key)).then_some((record, folder))
    }

    pub fn keep(&self, run: &str, record: &TrialRecord) -> std::io::Result<()> {
        let Some(key) = &record.key else { return Ok(()) };
        std::fs::create_dir_all(&self.folder)?;
        let kept = Kept { schema_version: 1, run: run.to_owned(), trial: record.trial.clone() };
        std::fs::write(self.path(key), serde_json::to_vec(&kept)?)
    }

    fn path(&self, key: &Digest) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}
