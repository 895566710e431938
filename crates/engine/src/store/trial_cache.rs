use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use practicum_core::model::{Digest, TrialId, TrialRecord};

/// Finished trials by what decided them, so that nothing is paid for twice.
///
/// A line for each, in a file for each first two digits of the key: a file for each trial would
/// cost more than many a trial does, and one file for all would be read whole for one key.
#[derive(Debug)]
pub struct TrialCache {
    folder: PathBuf,
    entries_read: Mutex<HashMap<String, CacheEntries>>,
}

/// What one file says: for each key, where the trials with it are kept, the newest last.
type CacheEntries = HashMap<String, Vec<CachedTrial>>;

/// Where a finished trial is kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedTrial {
    schema_version: u32,
    key: String,
    run: String,
    trial: TrialId,
}

impl TrialCache {
    pub fn for_project(project: &Path) -> Self {
        Self { folder: project.join(".practicum/cache/trials"), entries_read: Mutex::default() }
    }

    /// A trial that ended the same question before, if its run is still there and it fits: the newest of
    /// them. Several suites may have asked the question.
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
                serde_json::from_slice(&std::fs::read(folder.join("checks.json")).ok()?).ok()?;
            (record.key.as_ref() == Some(key) && fits(&record, &folder)).then_some((record, folder))
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
        let open = || File::options().create(true).append(true).open(&path);
        let mut file = match open() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::create_dir_all(&self.folder)?;
                open()?
            }
            opened => opened?,
        };
        // One call for each line, so that two runs at a time do not mix theirs.
        file.write_all(&line)
    }

    /// Forgets what was said twice, and trials of runs that are gone.
    pub fn compact(&self) -> std::io::Result<()> {
        let Ok(parts) = std::fs::read_dir(&self.folder) else { return Ok(()) };
        for part in parts.flatten() {
            let path = part.path();
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
            std::fs::write(&path, lines)?;
        }
        Ok(())
    }

    fn path(&self, part: &str) -> PathBuf {
        self.folder.join(format!("{part}.jsonl"))
    }

    fn run_folder(&self, id: &str) -> Option<PathBuf> {
        Some(self.folder.parent()?.parent()?.join("runs").join(id))
    }
}

fn cache_file_name(key: &str) -> &str {
    key.get(..2).unwrap_or(key)
}

/// The last word on each key and trial. A line that a crash cut short says nothing.
fn read_entries(path: &Path) -> CacheEntries {
    let text = std::fs::read(path).unwrap_or_default();
    let mut part = CacheEntries::new();
    for line in text.split(|&byte| byte == b'\n') {
        let Ok(kept) = serde_json::from_slice::<CachedTrial>(line) else { continue };
        let same_key = part.entry(kept.key.clone()).or_default();
        same_key.retain(|older| older.trial != kept.trial);
        same_key.push(kept);
    }
    part
}
