//! The index of the viewer. It is kept up to date, but no page waits until much is imported.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use practicum_engine::store::{Index, IndexError};

/// The greatest age of the index before it is updated for a query.
const MAX_INDEX_AGE: Duration = Duration::from_millis(700);

/// The most bytes of logs that a page waits for: about a few hundred trials. More is imported in the background, in
/// parts that pages show as soon as they are there.
const MOST_BYTES_TO_WAIT_FOR: u64 = 1024 * 1024;

/// An index for the pages of the viewer.
pub struct ViewerIndex {
    project: PathBuf,
    index: Index,
    /// When somebody last looked for something new.
    looked_at: Instant,
    most_bytes_to_wait_for: u64,
    /// Whether a thread is importing.
    is_importing: Arc<AtomicBool>,
    /// Whether the file may have been replaced since it was opened.
    must_reopen: bool,
}

impl ViewerIndex {
    /// Opens the index of a project. If little is missing in it, it is updated now, otherwise in the background.
    pub fn open(project: &Path) -> Result<Self, IndexError> {
        Self::open_with(project, MOST_BYTES_TO_WAIT_FOR)
    }

    fn open_with(project: &Path, most_bytes_to_wait_for: u64) -> Result<Self, IndexError> {
        let mut opened = Self {
            project: project.to_owned(),
            index: Index::open(project)?,
            looked_at: Instant::now(),
            most_bytes_to_wait_for,
            is_importing: Arc::default(),
            must_reopen: false,
        };
        if opened.is_far_behind() {
            opened.import_in_background();
        } else {
            // This repairs a damaged index, too.
            opened.index = Index::open_updated(project)?;
        }
        Ok(opened)
    }

    /// Says whether runs and trials may be missing, because they are still being imported.
    pub fn is_importing(&self) -> bool {
        self.is_importing.load(Ordering::Acquire)
    }

    /// Gives the index, updated if that was long ago and takes no time.
    pub fn up_to_date(&mut self) -> &Index {
        if !self.is_importing() {
            if self.must_reopen {
                self.must_reopen = false;
                // If it cannot be opened, the old one still answers.
                if let Some(index) = Index::open(&self.project).ok().filter(Index::is_in_file) {
                    self.index = index;
                }
            }
            if self.looked_at.elapsed() > MAX_INDEX_AGE {
                match self.is_far_behind() {
                    true => self.import_in_background(),
                    // An index that cannot be updated still answers with what it has.
                    false => drop(self.index.update()),
                }
                self.looked_at = Instant::now();
            }
        }
        &self.index
    }

    /// An index in memory cannot be updated by another thread.
    fn is_far_behind(&self) -> bool {
        let is_far = |bytes| bytes > self.most_bytes_to_wait_for;
        self.index.is_in_file() && self.index.bytes_behind().is_ok_and(is_far)
    }

    fn import_in_background(&mut self) {
        self.is_importing.store(true, Ordering::Release);
        self.must_reopen = true;
        let (project, is_importing) = (self.project.clone(), Arc::clone(&self.is_importing));
        std::thread::spawn(move || {
            // If the import fails, the pages show what there is, and the next look tries again.
            drop(Index::open_updated(&project));
            is_importing.store(false, Ordering::Release);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_run(project: &Path, id: &str) {
        let run = project.join(".practicum/runs").join(id);
        std::fs::create_dir_all(&run).expect("create");
        std::fs::write(run.join("run.json"), "{}").expect("write");
        let started =
            r#"{"event":"run_started","schema_version":1,"run":"r","at":"2026-01-01T00:00:00Z","trials":1}"#;
        std::fs::write(run.join("events.jsonl"), format!("{started}\n")).expect("write");
    }

    #[test]
    fn a_page_waits_for_the_import_of_much() {
        let project = tempfile::tempdir().expect("a folder");
        write_run(project.path(), "20260101-000000000-aaaaaa");
        let count = |index: &Index| index.runs(None, 10).expect("rows").len();
        // Little: it is there when the index is opened.
        let mut little = ViewerIndex::open_with(project.path(), 10_000).expect("an index");
        assert_eq!((little.is_importing(), count(little.up_to_date())), (false, 1));
        // Everything counts as much: opening starts a thread, and pages do without what it has not imported yet.
        write_run(project.path(), "20260101-000000001-bbbbbb");
        let mut much = ViewerIndex::open_with(project.path(), 0).expect("an index");
        assert!(much.must_reopen, "a thread was started");
        assert!((1..=2).contains(&count(much.up_to_date())));
        while much.is_importing() {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(count(much.up_to_date()), 2);
    }
}
