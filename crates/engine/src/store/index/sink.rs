use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{file, follow, layout};
use crate::store::RunDir;
use practicum_core::event::{RunEvent, Sink};

/// Keeps the index up with a run. It reads what the log has, so it must hear after the log; what it
/// leaves out because others are writing, the next reader of the index takes over.
pub struct IndexSink {
    file: PathBuf,
    run: RunDir,
    db: Option<Connection>,
    last: Instant,
}

/// A run of short trials shall not wait for the index after each.
const PAUSE: Duration = Duration::from_millis(250);

/// A run never waits long for others.
const PATIENCE: Duration = Duration::from_millis(50);

impl IndexSink {
    pub fn new(project: &Path, run: &RunDir) -> Self {
        Self { file: file(project), run: run.clone(), db: None, last: Instant::now() }
    }

    fn follow(&mut self) -> std::io::Result<()> {
        self.last = Instant::now();
        let db = match &mut self.db {
            Some(db) => db,
            None => match layout::open(&self.file, PATIENCE) {
                Ok(db) => self.db.insert(db),
                Err(error) if error.is_busy() => return Ok(()),
                Err(error) => return Err(std::io::Error::other(error)),
            },
        };
        match follow::follow(db, self.run.path(), self.run.id()) {
            Err(error) if !error.is_busy() => Err(std::io::Error::other(error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Sink for IndexSink {
    fn name(&self) -> &'static str {
        "the index"
    }

    fn hear(&mut self, event: &RunEvent) -> std::io::Result<()> {
        match event {
            RunEvent::TrialFinished { .. } if self.last.elapsed() < PAUSE => Ok(()),
            RunEvent::TrialFinished { .. } | RunEvent::RunFinished { .. } => self.follow(),
            RunEvent::RunStarted { .. }
            | RunEvent::ProbeFinished { .. }
            | RunEvent::TrialStarted { .. }
            | RunEvent::SkillJudged { .. }
            | RunEvent::Notice { .. } => Ok(()),
        }
    }
}
