//! Takes over the record of a run that another installation made, so that its results can be reused here.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::log_line::{is_damaged, without_checksum};
use super::{RecordKey, RunDir, StoreError, TrialCache, TrialDigest, TrialOrigin, read_own_records};
use practicum_core::tree::{create_private_folder, open_regular, read_regular, write_unlinked};

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRun {
    /// The id of the run.
    pub id: String,
    /// The number of trials that can be reused from now on.
    pub trials: usize,
    /// The trials whose files are not as they were written. They are not taken over.
    pub damaged: Vec<String>,
}

/// Takes over a run: copies it into the project, unless it is there, and marks what it holds with the user's key. The
/// caller has asked for that, so the record counts as one of this installation.
pub fn import_run(project: &Path, from: &RunDir, key: &RecordKey) -> Result<ImportedRun, StoreError> {
    super::refuse_linked_records(project)?;
    let refused = |why: &str| StoreError::at_path(from.path())(std::io::Error::other(why.to_owned()));
    if !RunDir::is_id(from.id()) {
        return Err(refused("its name is not that of a run"));
    }
    from.info().map_err(|why| refused(&why))?;
    let folder = project.join(".practicum/runs").join(from.id());
    let is_here = folder.canonicalize().is_ok_and(|here| here == from.path());
    if !is_here {
        if folder.symlink_metadata().is_ok() {
            return Err(refused("the project has a run with this id"));
        }
        let run = RunDir::create(project, from.id().to_owned())?;
        copy_files(from.path(), run.path()).map_err(StoreError::at_path(run.path()))?;
    }
    let run = RunDir::at_path(&folder).ok_or_else(|| refused("it cannot be read"))?.with_key(key.clone());
    let damaged = mark_trials(&run, key)?;
    mark_log(&run).map_err(StoreError::at_path(run.path()))?;
    let info = run.path().join("run.json");
    let marked = read_regular(&info).and_then(|bytes| key.mark_file(&info, &bytes));
    marked.map_err(StoreError::at_path(&info))?;
    let records = read_own_records(run.path(), &run.line_marker()).unwrap_or_default();
    let cache = TrialCache::for_project(project);
    let mut trials = 0;
    for record in records.values().filter(|record| !damaged.contains(&record.trial.as_str().to_owned())) {
        if record.is_conclusive() && run.has_whole_trial(&record.trial) {
            cache.store(run.id(), record).map_err(StoreError::at_path(run.path()))?;
            trials += 1;
        }
    }
    Ok(ImportedRun { id: run.id().to_owned(), trials, damaged })
}

/// Marks the folders of all trials whose files are as they were written. Gives the names of the others.
fn mark_trials(run: &RunDir, key: &RecordKey) -> Result<Vec<String>, StoreError> {
    let mut damaged = Vec::new();
    let folders = std::fs::read_dir(run.path().join("trials")).into_iter().flatten().flatten();
    for entry in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        match TrialDigest::origin(&entry.path(), key) {
            TrialOrigin::MadeHere => {}
            TrialOrigin::Damaged => damaged.push(entry.file_name().to_string_lossy().into_owned()),
            TrialOrigin::MadeElsewhere => {
                let path = entry.path();
                TrialDigest::write(&path, Some(key)).map_err(StoreError::at_path(&path))?;
            }
        }
    }
    Ok(damaged)
}

/// Writes the log again, with the user's marks on all lines that are whole.
fn mark_log(run: &RunDir) -> std::io::Result<()> {
    let (path, aside) = (run.path().join("events.jsonl"), run.path().join(".events.jsonl.new"));
    let marker = run.line_marker();
    let mut lines = Vec::new();
    for line in BufReader::new(open_regular(&path)?).split(b'\n') {
        let line = line?;
        let is_object = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&line).is_ok();
        if is_object && !is_damaged(&line) {
            let mut line = without_checksum(&line);
            marker.add_to(&mut line);
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        }
    }
    write_unlinked(&aside, lines)?;
    std::fs::rename(aside, path)
}

/// Copies regular files and folders. Links, pipes and devices are left out: records have none.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        create_private_folder(&to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
            if kind.is_dir() {
                folders.push((entry.path(), target));
            } else if kind.is_file() {
                std::fs::copy(entry.path(), &target)?;
            }
        }
    }
    Ok(())
}
