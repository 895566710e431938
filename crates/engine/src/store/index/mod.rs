//! The index: a database of all run directories, for queries over many runs.
//!
//! In: the logs of run directories. Out: rows. Never: contains anything that the directories do not, so that it
//! may be deleted at any time; fails a run.

mod cases;
mod checks;
mod database;
mod log_import;
mod metrics;
mod past_trials;
mod runs;
mod searchable_text;
mod sink;
#[cfg(test)]
mod tests;
mod trials;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

pub use cases::{CaseCell, CaseRow, ConditionColumn, SuiteRow};
pub use checks::{CheckCounts, CheckRow};
use database::IndexOpenError;
pub use metrics::{Metric, MetricPoint, MetricScope};
pub use past_trials::PastTrialCosts;
pub use runs::RunRow;
pub use sink::IndexSink;
pub use trials::{TrialFilter, TrialFilterValues, TrialOrder, TrialRow};

/// An open index.
pub struct Index {
    db: Connection,
    /// The folder of all run directories.
    runs: PathBuf,
    notice: Option<String>,
}

/// An error: the index cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the index cannot be used: {0}; practicum reindex rebuilds it")]
    Database(#[from] rusqlite::Error),
    #[error("the record of {run} cannot be read: {error}")]
    Log { run: String, error: std::io::Error },
}

impl IndexError {
    fn is_busy(&self) -> bool {
        matches!(self, IndexError::Database(error) if database::is_busy(error))
    }

    fn is_damage(&self) -> bool {
        matches!(self, IndexError::Database(error) if database::is_damage(error))
    }
}

/// How long to wait for other writers.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of runs from which on indexing takes noticeable time.
const MANY_RUNS: usize = 20;

/// The numbers of runs and trials that were indexed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexCounts {
    pub runs: usize,
    pub trials: u64,
}

impl Index {
    /// Opens the index of a project and updates it from the run directories. If the file cannot be used, an index
    /// in memory replaces it.
    pub fn open_updated(project: &Path) -> Result<Self, IndexError> {
        let mut index = Self::open(project)?;
        match index.update() {
            Ok(_) => {}
            Err(error) if error.is_damage() => {
                database::remove(&index_path(project));
                index = Self::open(project)?;
                index.notice = Some("the index was damaged and has been rebuilt".to_owned());
                index.update()?;
            }
            Err(error) if error.is_busy() => {
                index.notice = Some("the index is being written; what is new may be missing".to_owned());
            }
            Err(error) => return Err(error),
        }
        Ok(index)
    }

    /// Says whether there are many runs and no index, so that the first query takes a while.
    pub fn needs_first_build(project: &Path) -> bool {
        let many =
            || std::fs::read_dir(project.join(".practicum/runs")).is_ok_and(|runs| runs.count() > MANY_RUNS);
        !index_path(project).exists() && many()
    }

    /// Builds the index again from the run directories.
    pub fn rebuild(project: &Path) -> Result<IndexCounts, IndexError> {
        let mut index = match Self::open(project)? {
            index if index.is_in_file() => index,
            _ => {
                database::remove(&index_path(project));
                Self::open(project)?
            }
        };
        if let Err(error) = database::recreate_tables(&mut index.db).map_err(IndexError::from) {
            if !error.is_damage() {
                return Err(error);
            }
            database::remove(&index_path(project));
            index = Self::open(project)?;
        }
        index.update()
    }

    /// Opens the index of a project as it is. What the runs wrote since its last update is missing.
    pub fn open(project: &Path) -> Result<Self, IndexError> {
        let runs = project.join(".practicum/runs");
        let in_memory = |notice: Option<String>| {
            let db = database::in_memory()?;
            Ok(Self { db, runs: runs.clone(), notice })
        };
        if !runs.is_dir() {
            return in_memory(None);
        }
        match database::open(&index_path(project), BUSY_TIMEOUT) {
            Ok(db) => Ok(Self { db, runs, notice: None }),
            Err(IndexOpenError::Damaged) => {
                database::remove(&index_path(project));
                match database::open(&index_path(project), BUSY_TIMEOUT) {
                    Ok(db) => {
                        let notice = Some("the index was damaged and has been rebuilt".to_owned());
                        Ok(Self { db, runs, notice })
                    }
                    Err(error) => in_memory(Some(format!("{error}; this answer is made without it"))),
                }
            }
            Err(error) => in_memory(Some(format!("{error}; this answer is made without it"))),
        }
    }

    /// Says whether the index is in a file, so that others that open it see its updates too.
    pub fn is_in_file(&self) -> bool {
        self.db.path().is_some_and(|path| !path.is_empty())
    }

    /// Gives the number of bytes of logs that an update would import.
    pub fn bytes_behind(&self) -> Result<u64, IndexError> {
        let known = self.known_runs()?;
        let folders = std::fs::read_dir(&self.runs).into_iter().flatten().flatten();
        let behind = folders.map(|entry| {
            let log = std::fs::metadata(entry.path().join("events.jsonl")).map_or(0, |file| file.len());
            let imported = entry.file_name().to_str().and_then(|id| known.get(id)).copied().unwrap_or(0);
            // A log that became shorter is another log, and is imported from its beginning.
            if log < imported { log } else { log - imported }
        });
        Ok(behind.sum())
    }

    /// Gives a notice for the user about this index, if there is one.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Imports what is new in the run directories and removes what is gone. If nothing is new, each directory is
    /// only looked at once.
    pub fn update(&mut self) -> Result<IndexCounts, IndexError> {
        let mut known = self.known_runs()?;
        let mut found = IndexCounts::default();
        let mut folders: Vec<String> = std::fs::read_dir(&self.runs)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        folders.sort_unstable();
        for id in folders {
            let run = self.runs.join(&id);
            let log = std::fs::metadata(run.join("events.jsonl")).map(|file| file.len()).ok();
            match (known.remove(&id), log) {
                (Some(bytes), log) if bytes == log.unwrap_or(0) => {}
                // A folder without a log and without a run.json is not a run.
                (None, None) if !run.join("run.json").is_file() => continue,
                _ => found.trials += log_import::import_log(&mut self.db, &run, &id)?,
            }
            found.runs += 1;
        }
        for gone in known.into_keys() {
            log_import::remove_run(&mut self.db, &gone)?;
        }
        Ok(found)
    }

    /// Gives the indexed runs, and how many bytes of their logs were imported.
    fn known_runs(&self) -> Result<HashMap<String, u64>, IndexError> {
        let mut query = self.db.prepare("SELECT id, log_bytes FROM runs")?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn index_path(project: &Path) -> PathBuf {
    project.join(".practicum/index.db")
}
