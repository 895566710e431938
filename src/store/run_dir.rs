use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EventLog, Scrubber};
use crate::model::{Summary, TrialId, TrialRecord};

/// The folder of one run: the truth about it.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    id: String,
}

/// What was asked: `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    pub schema_version: u32,
    pub run: String,
    pub started: String,
    pub practicum: String,
    /// Every suite in the native format.
    pub suites: Vec<Value>,
    /// For each suite, every setting with where it came from.
    pub settings: Vec<Value>,
    pub trials: Vec<Value>,
    /// Whether the model's answers were scripted.
    pub scripted: bool,
    /// Whether they came from a cassette.
    #[serde(default)]
    pub replayed: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot keep the record: {path}: {error}")]
pub struct StoreError {
    path: PathBuf,
    error: std::io::Error,
}

impl StoreError {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self { path, error }
    }
}

impl RunDir {
    /// A new run below a project's `.practicum` folder.
    pub fn create(project: &Path, now: jiff::Timestamp) -> Result<Self, StoreError> {
        let home = project.join(".practicum");
        let runs = home.join("runs");
        std::fs::create_dir_all(&runs).map_err(StoreError::at(&runs))?;
        let ignore = home.join(".gitignore");
        if !ignore.exists() {
            // Records hold what agents said; they are nobody's commit.
            let _ = std::fs::write(&ignore, "*\n");
        }
        let stamp = now.strftime("%Y%m%d-%H%M%S").to_string();
        let tail = uuid::Uuid::new_v4().simple().to_string();
        let id = format!("{stamp}-{}", &tail[..6]);
        let path = runs.join(&id);
        let trials = path.join("trials");
        std::fs::create_dir_all(&trials).map_err(StoreError::at(&trials))?;
        Ok(Self { path, id })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn log(&self, scrubber: Scrubber) -> Result<EventLog, StoreError> {
        let path = self.path.join("events.jsonl");
        EventLog::create(&path, scrubber).map_err(StoreError::at(&path))
    }

    pub fn write_info(&self, info: &RunInfo) -> Result<(), StoreError> {
        self.write_json("run.json", info)
    }

    pub fn write_summary(&self, summary: &Summary) -> Result<(), StoreError> {
        self.write_json("summary.json", summary)
    }

    /// Makes the folder of a trial. What an earlier, broken attempt left there goes.
    pub fn open_trial(&self, trial: &TrialId) -> Result<PathBuf, StoreError> {
        let path = self.path.join("trials").join(trial.as_str());
        match std::fs::create_dir(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                std::fs::remove_dir_all(&path).map_err(StoreError::at(&path))?;
                std::fs::create_dir(&path).map_err(StoreError::at(&path))?;
            }
            Err(error) => return Err(StoreError::at(&path)(error)),
        }
        Ok(path)
    }

    /// Completes a trial's folder: output and checks, everything scrubbed of secrets.
    pub fn close_trial(
        &self,
        folder: &Path,
        record: &TrialRecord,
        output: &str,
        scrubber: &Scrubber,
    ) -> Result<(), StoreError> {
        let path = folder.join("output.txt");
        std::fs::write(&path, output).map_err(StoreError::at(&path))?;
        let path = folder.join("checks.json");
        #[derive(Serialize)]
        struct Checks<'r> {
            schema_version: u32,
            #[serde(flatten)]
            record: &'r TrialRecord,
        }
        let bytes = serde_json::to_vec_pretty(&Checks { schema_version: 1, record }).unwrap_or_default();
        std::fs::write(&path, bytes).map_err(StoreError::at(&path))?;
        scrubber.folder(folder).map_err(StoreError::at(folder))
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        let path = self.path.join(name);
        let bytes = serde_json::to_vec_pretty(value).map_err(|error| StoreError::at(&path)(error.into()))?;
        // Written aside and moved, so that a reader never sees half of it.
        let aside = self.path.join(format!(".{name}.new"));
        std::fs::write(&aside, bytes).map_err(StoreError::at(&aside))?;
        std::fs::rename(&aside, &path).map_err(StoreError::at(&path))
    }
}
