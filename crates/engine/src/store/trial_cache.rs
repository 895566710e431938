//! The cache of finished trials of a project.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use super::{RecordKey, TrialDigest, TrialOrigin};
use practicum_core::model::{Digest, RelPath, TrialId, TrialRecord};
use practicum_core::tree::{append_unlinked, read_regular, write_unlinked};

/// Finished trials by their keys, so that no trial is paid for twice.
///
/// Each trial has a line in one of several files, chosen by the first two digits of the key. A file for each trial
/// would cost more than some trials do, and a single file would have to be read completely for one key.
#[derive(Debug)]
pub struct TrialCache {
    folder: PathBuf,
    /// The key of the records that may be reused; `None` to reuse none.
    key: Option<RecordKey>,
    /// The number of trials that were found and not made by this installation.
    foreign: AtomicUsize,
    entries_read: Mutex<HashMap<String, CacheEntries>>,
}

/// The content of one file: for each key, its trials, the newest last.
type CacheEntries = HashMap<String, Vec<CachedTrial>>;

/// The location of a finished trial.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedTrial {
    schema_version: u32,
    key: String,
    run: String,
    trial: TrialId,
}

impl TrialCache {
    pub fn for_project(project: &Path) -> Self {
        Self {
            folder: project.join(".practicum/cache/trials"),
            key: None,
            foreign: AtomicUsize::new(0),
            entries_read: Mutex::default(),
        }
    }

    /// Reuses the records of installations with this key.
    #[must_use]
    pub fn with_key(self, key: RecordKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Gives the key of the records that may be reused.
    pub fn key(&self) -> Option<&RecordKey> {
        self.key.as_ref()
    }

    /// Counts the trials that were found and not reused, because another installation made them.
    pub fn foreign(&self) -> usize {
        self.foreign.load(Ordering::Relaxed)
    }

    fn is_own(&self, folder: &Path) -> bool {
        let origin = self.key.as_ref().map(|key| TrialDigest::origin(folder, key));
        if origin != Some(TrialOrigin::MadeHere) {
            self.foreign.fetch_add(1, Ordering::Relaxed);
        }
        origin == Some(TrialOrigin::MadeHere)
    }

    /// Finds the newest trial with this key that fits and whose run still exists. Several suites may have trials
    /// with the same key.
    pub fn find(
        &self,
        key: &Digest,
        fits: impl Fn(&TrialRecord, &Path) -> bool,
    ) -> Option<(TrialRecord, PathBuf)> {
        let key_text = key.to_string();
        let mut read = self.entries_read.lock().ok()?;
        let part = cache_file_name(&key_text);
        let stored = read
            .entry(part.to_owned())
            .or_insert_with(|| read_entries(&self.path(part)))
            .get(&key_text)?
            .clone();
        drop(read);
        stored.iter().rev().find_map(|kept| {
            let folder = self.run_folder(&kept.run)?.join("trials").join(kept.trial.as_str());
            let record: TrialRecord =
                serde_json::from_slice(&read_regular(folder.join("checks.json")).ok()?).ok()?;
            let is_fitting =
                record.key.as_ref() == Some(key) && fits(&record, &folder) && self.is_own(&folder);
            is_fitting.then_some((record, folder))
        })
    }

    pub fn store(&self, run: &str, record: &TrialRecord) -> std::io::Result<()> {
        let Some(key) = &record.key else { return Ok(()) };
        let kept = CachedTrial {
            schema_version: 1,
            key: key.to_string(),
            run: run.to_owned(),
            trial: record.trial.clone(),
        };
        let mut line = serde_json::to_vec(&kept)?;
        line.push(b'\n');
        let path = self.path(cache_file_name(&kept.key));
        let open = || append_unlinked(&path);
        let mut file = match open() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::create_dir_all(&self.folder)?;
                open()?
            }
            opened => opened?,
        };
        // Each line is written with one call, so that two runs at the same time do not mix their lines.
        file.write_all(&line)
    }

    /// Removes duplicates, and trials of runs that no longer exist. Only files that this program would have made
    /// are changed.
    pub fn compact(&self) -> std::io::Result<()> {
        let Ok(parts) = std::fs::read_dir(&self.folder) else { return Ok(()) };
        for part in parts.flatten() {
            let path = part.path();
            if !is_cache_file(&part) {
                continue;
            }
            let kept = read_entries(&path);
            let there = kept
                .values()
                .flatten()
                .filter(|kept| self.run_folder(&kept.run).is_some_and(|run| run.is_dir()));
            let mut lines = Vec::new();
            for kept in there {
                serde_json::to_writer(&mut lines, kept)?;
                lines.push(b'\n');
            }
            write_unlinked(&path, lines)?;
        }
        Ok(())
    }

    fn path(&self, part: &str) -> PathBuf {
        self.folder.join(format!("{part}.jsonl"))
    }

    /// Gives the folder of a run, if its id, which comes from a file, is the name of one.
    fn run_folder(&self, id: &str) -> Option<PathBuf> {
        let id = RelPath::new(id).filter(|id| !id.as_str().contains('/'))?;
        Some(self.folder.parent()?.parent()?.join("runs").join(id.as_str()))
    }
}

/// Says whether a file has the name and the kind of those that this program makes.
fn is_cache_file(entry: &std::fs::DirEntry) -> bool {
    let name = entry.file_name();
    let part = name.to_str().and_then(|name| name.strip_suffix(".jsonl")).unwrap_or_default();
    part.len() == 2 && entry.file_type().is_ok_and(|kind| kind.is_file())
}

fn cache_file_name(key: &str) -> &str {
    key.get(..2).unwrap_or(key)
}

/// Reads the last entry of each key and trial. A line that was cut short by a crash is ignored.
fn read_entries(path: &Path) -> CacheEntries {
    let text = read_regular(path).unwrap_or_default();
    let mut part = CacheEntries::new();
    for line in text.split(|&byte| byte == b'\n') {
        let Ok(kept) = serde_json::from_slice::<CachedTrial>(line) else { continue };
        let same_key = part.entry(kept.key.clone()).or_default();
        same_key.retain(|older| older.trial != kept.trial);
        same_key.push(kept);
    }
    part
}
