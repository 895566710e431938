//! Keeps the index up to date during a run.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{database, index_path, log_import};
use crate::store::RunDir;
use practicum_core::event::{EventSink, RunEvent};

/// An event sink that updates the index during a run. It reads the log, so it must come after the log among the
/// sinks. If another process is writing, it skips an update, and the next reader of the index makes up for it.
pub struct IndexSink {
    file: PathBuf,
    run: RunDir,
    db: Option<Connection>,
    last_update: Instant,
}

/// The shortest time between updates, so that a run of short trials does not wait for the index after each.
const UPDATE_INTERVAL: Duration = Duration::from_millis(250);

/// The longest wait for other writers, so that a run is never held up for long.
const BUSY_TIMEOUT: Duration = Duration::from_millis(50);

impl IndexSink {
    pub fn new(project: &Path, run: &RunDir) -> Self {
        Self { file: index_path(project), run: run.clone(), db: None, last_update: Instant::now() }
    }

    fn update_index(&mut self) -> std::io::Result<()> {
        self.last_update = Instant::now();
        let db = match &mut self.db {
            Some(db) => db,
            None => match database::open(&self.file, BUSY_TIMEOUT) {
                Ok(db) => self.db.insert(db),
                Err(error) if error.is_busy() => return Ok(()),
                Err(error) => return Err(std::io::Error::other(error)),
            },
        };
        match log_import::import_log(db, self.run.path(), self.run.id()) {
            Err(error) if !error.is_busy() => Err(std::io::Error::other(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl EventSink for IndexSink {
    fn name(&self) -> &'static str {
        "the index"
    }

    fn receive(&mut self, event: &RunEvent) -> std::io::Result<()> {
        match event {
            RunEvent::TrialFinished { .. } if self.last_update.elapsed() < UPDATE_INTERVAL => Ok(()),
            RunEvent::TrialFinished { .. } | RunEvent::RunFinished { .. } => self.update_index(),
            RunEvent::RunStarted { .. }
            | RunEvent::ProbeFinished { .. }
            | RunEvent::TrialStarted { .. }
            | RunEvent::SkillJudged { .. }
            | RunEvent::Notice { .. } => Ok(()),
        }
    }
}
