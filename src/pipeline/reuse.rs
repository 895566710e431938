//! Trials that need not run: done in an earlier part of this run, or the same question answered
//! before.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::model::{Digest, ProbeRecord, SkillJudged, TrialRecord};
use crate::plan::Plan;
use crate::store::{Cache, RunDir, probes, records, skills_judged};

/// What is known before anything runs, by position in the plan.
#[derive(Default)]
pub struct Prior {
    pub keys: Vec<Digest>,
    pub known: HashMap<usize, Known>,
    /// Probes of the run that is gone on with, those that fired.
    pub probes: Vec<ProbeRecord>,
    /// What was said in that run of the texts of its skills.
    pub skills_judged: Vec<SkillJudged>,
    /// Where finished trials are remembered.
    pub cache: Option<Cache>,
}

pub enum Known {
    /// It stands in this run's directory already.
    Kept(Box<TrialRecord>),
    /// It stands in another run's, and is copied.
    Reused { record: Box<TrialRecord>, folder: PathBuf },
}

impl Prior {
    /// Looks every trial up: first in the run that is resumed, then, if wanted, in the cache.
    pub fn look_up(
        plan: &Plan,
        keys: Vec<Digest>,
        resumed: Option<&RunDir>,
        cache: Option<Cache>,
        reuse: bool,
    ) -> Self {
        let kept = resumed.and_then(|run| records(run.path()).ok()).unwrap_or_default();
        let mut known = HashMap::new();
        for (index, (trial, key)) in plan.trials.iter().zip(&keys).enumerate() {
            // A missing file and an empty one have the same key.
            if plan.why_not_started(trial).is_some() {
                continue;
            }
            if let Some(record) = kept.get(&trial.id)
                && record.is_conclusive()
                && record.key.as_ref() == Some(key)
            {
                known.insert(index, Known::Kept(Box::new(record.clone())));
            } else if let Some((record, folder)) =
                cache.as_ref().filter(|_| reuse).and_then(|cache| cache.find(key))
            {
                known.insert(index, Known::Reused { record: Box::new(record), folder });
            }
        }
        let mut tried = resumed.and_then(|run| probes(run.path()).ok()).unwrap_or_default();
        tried.retain(|_, probe| probe.fired);
        let skills_judged = resumed.and_then(|run| skills_judged(run.path()).ok()).unwrap_or_default();
        Self { keys, known, probes: tried.into_values().collect(), skills_judged, cache }
    }

    /// How many trials are taken over.
    pub fn count(&self) -> usize {
        self.known.len()
    }
}

/// Puts a trial of another run into this one: its files, and a record that says where from.
pub fn reuse(record: &TrialRecord, from: &Path, to: &RunDir) -> std::io::Result<TrialRecord> {
    let folder = to.open_trial(&record.trial).map_err(std::io::Error::other)?;
    take_over(from, &folder)?;
    let run = from.parent().and_then(Path::parent).and_then(Path::file_name);
    let reused_from = run.map(|run| run.to_string_lossy().into_owned());
    Ok(TrialRecord { reused_from, ..record.clone() })
}

/// The files of a trial. Hard links where they work, copies elsewhere: kept files are never changed.
pub fn take_over(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir(&target)?;
            take_over(&entry.path(), &target)?;
        } else if std::fs::hard_link(entry.path(), &target).is_err() {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
