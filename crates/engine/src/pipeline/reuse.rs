//! Trials that need not run, because this run or an earlier one already has their results.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::unfinished_record;
use crate::plan::Plan;
use crate::plan::trial_key::TrialKey;
use crate::store::{
    LineMarker, RecordKey, RunDir, Scrubber, StoreError, TrialCache, read_own_probes, read_own_records,
    read_own_skill_judgements,
};
use practicum_core::model::{Digest, ProbeRecord, SkillJudgement, SkillRef, Trial, TrialId, TrialRecord};
use practicum_core::tree::create_private_folder;
use practicum_skills::versions::SkillContents;

/// The results that exist before anything runs.
#[derive(Default)]
pub struct ReusableResults {
    /// For each planned trial, the digests of everything that its result depends on.
    pub keys: HashMap<TrialId, TrialKey>,
    /// The digests of the skills under test, by their paths.
    pub skills: HashMap<PathBuf, Digest>,
    /// The planned trials with an existing result.
    pub trials: HashMap<TrialId, ReusableTrial>,
    /// Successful probes of the run that is resumed.
    pub probes: Vec<ProbeRecord>,
    /// Successful probes of the runs from which trials are reused, by the folder of the run.
    pub probes_of_reused: HashMap<PathBuf, Vec<ProbeRecord>>,
    /// The judgements on the texts of skills in the run that is resumed.
    pub skills_judged: Vec<SkillJudgement>,
    /// The cache in which finished trials are stored.
    pub cache: Option<TrialCache>,
}

/// A trial with an existing result.
pub enum ReusableTrial {
    /// The trial is already in this run's directory.
    FromThisRun(Box<TrialRecord>),
    /// The trial is in another run's directory, and is copied.
    FromOtherRun { record: Box<TrialRecord>, folder: PathBuf },
}

impl ReusableResults {
    /// Looks up every trial: first in the run that is resumed, then, if wanted, in the cache.
    pub(crate) fn look_up(
        plan: &Plan,
        keys: HashMap<TrialId, TrialKey>,
        resumed: Option<&RunDir>,
        cache: Option<TrialCache>,
        reuse: bool,
    ) -> Self {
        let kept = resumed.and_then(|run| read_own_records(run.path(), &run.line_marker()).ok());
        let kept = kept.unwrap_or_default();
        let mut known = HashMap::new();
        for trial in &plan.trials {
            // A missing file and an empty file give the same key.
            if plan.why_not_started(trial).is_some() {
                continue;
            }
            if let Some(record) = kept.get(&trial.id)
                && record.is_conclusive()
                && record.key.as_ref() == keys.get(&trial.id).map(|of| &of.key)
                && resumed.is_some_and(|run| run.has_whole_trial(&trial.id))
            {
                known.insert(trial.id.clone(), ReusableTrial::FromThisRun(Box::new(record.clone())));
            }
        }
        if let Some(cache) = cache.as_ref().filter(|_| reuse) {
            take_from_cache(cache, plan, &keys, &mut known);
        }
        let tried = resumed.and_then(|run| read_own_probes(run.path(), &run.line_marker()).ok());
        let mut tried = tried.unwrap_or_default();
        tried.retain(|_, probe| probe.fired);
        let probes_of_reused = probes_of_reused(&known, cache.as_ref().and_then(TrialCache::key));
        let skills_judged =
            resumed.and_then(|run| read_own_skill_judgements(run.path(), &run.line_marker()).ok());
        let skills_judged = skills_judged.unwrap_or_default();
        let probes = tried.into_values().collect();
        Self {
            keys,
            skills: digests_of_skills(plan),
            trials: known,
            probes,
            probes_of_reused,
            skills_judged,
            cache,
        }
    }

    /// Explains why a suite's skills cannot be tested any more: one of them changed after the run began, so its
    /// results would belong to another version.
    pub(crate) fn why_changed(&self, skills: &[SkillRef]) -> Option<String> {
        let paths = skills.iter().filter_map(|skill| skill.path.as_ref());
        let mut known = paths.filter_map(|path| Some((path, self.skills.get(path)?)));
        let (path, _) = known.find(|(path, before)| digest_of(path).as_ref() != Some(*before))?;
        Some(format!("the skill {} was changed while the run was going on", path.display()))
    }

    /// Gives the probe of a reused trial in its own run. It is still valid, because the same key means the same
    /// skill and the same agent.
    pub(crate) fn probe_of_reused(&self, trial: &Trial, skill: &SkillRef) -> Option<&ProbeRecord> {
        let ReusableTrial::FromOtherRun { folder, .. } = self.trials.get(&trial.id)? else { return None };
        let condition = &trial.condition;
        let is_it = |probe: &&ProbeRecord| {
            (&probe.agent, &probe.model, &probe.skill) == (&condition.agent, &condition.model, &skill.name)
        };
        self.probes_of_reused.get(run_of(folder)?)?.iter().find(is_it)
    }

    /// Counts the reused trials.
    pub fn count(&self) -> usize {
        self.trials.len()
    }
}

fn digests_of_skills(plan: &Plan) -> HashMap<PathBuf, Digest> {
    let skills = plan.suites.iter().flat_map(|planned| &planned.suite.skills);
    let paths: HashSet<&PathBuf> = skills.filter_map(|skill| skill.path.as_ref()).collect();
    paths.into_iter().filter_map(|path| Some((path.clone(), digest_of(path)?))).collect()
}

fn digest_of(skill: &Path) -> Option<Digest> {
    SkillContents::scan(skill).ok()?.digest().ok()
}

/// Reads the successful probes of each run from which trials are reused.
fn probes_of_reused(
    known: &HashMap<TrialId, ReusableTrial>,
    key: Option<&RecordKey>,
) -> HashMap<PathBuf, Vec<ProbeRecord>> {
    let mut all: HashMap<PathBuf, Vec<ProbeRecord>> = HashMap::new();
    for known in known.values() {
        if let ReusableTrial::FromOtherRun { folder, .. } = known
            && let Some(run) = run_of(folder)
            && !all.contains_key(run)
        {
            let id = run.file_name().unwrap_or_default().to_string_lossy();
            let marker = LineMarker::new(&id, key.cloned());
            let tried = read_own_probes(run, &marker).unwrap_or_default().into_values();
            all.insert(run.to_owned(), tried.filter(|probe| probe.fired).collect());
        }
    }
    all
}

/// Gives the folder of the run that a trial's folder is in.
fn run_of(trial: &Path) -> Option<&Path> {
    trial.parent()?.parent()
}

/// Looks up in the cache the trials without a result so far. A stored trial is used for only one trial of the
/// plan, because counting it twice would make one run of the agent look like two. So each trial first takes the
/// stored one of its own suite. The rest may serve a case that another suite shares.
fn take_from_cache(
    cache: &TrialCache,
    plan: &Plan,
    keys: &HashMap<TrialId, TrialKey>,
    known: &mut HashMap<TrialId, ReusableTrial>,
) {
    let mut taken = HashSet::new();
    for own_suite in [true, false] {
        for trial in &plan.trials {
            // A missing file and an empty file give the same key.
            if known.contains_key(&trial.id) || plan.why_not_started(trial).is_some() {
                continue;
            }
            let Some(key) = keys.get(&trial.id) else { continue };
            let fits = |stored: &TrialRecord, folder: &Path| {
                (!own_suite || stored.trial == trial.id) && stored.is_reusable() && !taken.contains(folder)
            };
            if let Some((record, folder)) = cache.find(&key.key, fits) {
                taken.insert(folder.clone());
                let reused = ReusableTrial::FromOtherRun { record: Box::new(record), folder };
                known.insert(trial.id.clone(), reused);
            }
        }
    }
}

/// The destination of a reused trial: its place in the current plan and run.
pub struct ReuseTarget<'r> {
    pub plan: &'r Plan,
    pub trial: &'r Trial,
    pub key: Option<TrialKey>,
    pub run_dir: &'r RunDir,
    pub scrubber: &'r Scrubber,
}

impl ReuseTarget<'_> {
    /// Copies a trial of another run into this one: its files, and a record that names the other run.
    pub fn copy_trial(&self, stored: &TrialRecord, from: &Path) -> Result<TrialRecord, StoreError> {
        let folder = self.run_dir.create_trial_folder(&self.trial.id)?;
        link_or_copy_files(from, &folder).map_err(StoreError::at_path(&folder))?;
        let run = run_of(from).and_then(Path::file_name);
        let record = TrialRecord {
            key: self.key.as_ref().map(|of| of.key.clone()),
            repeats: self.key.as_ref().map(|of| of.repeats.clone()),
            reused_from: run.map(|run| run.to_string_lossy().into_owned()),
            ..with_results_of(stored, unfinished_record(self.plan, self.trial, stored.ended, ""))
        };
        self.run_dir.write_record(&record, self.scrubber)?;
        Ok(record)
    }
}

/// Combines the record of a planned trial with the results of a stored one. The plan says which trial it is,
/// because the stored one may belong to another suite with the same case. Every field is listed here, so that
/// whoever adds one must decide whether it is a result.
pub(super) fn with_results_of(stored: &TrialRecord, planned: TrialRecord) -> TrialRecord {
    let TrialRecord {
        trial: _,
        key: _,
        reused_from: _,
        repeats: _,
        suite: _,
        case: _,
        condition: _,
        attempt: _,
        expect: _,
        ended,
        ended_because,
        limit_resets_at,
        verdict,
        score,
        checks,
        fired,
        skills,
        predicted,
        usage,
        cost_usd,
        model,
        seconds,
        notes,
        remarks,
        shortened_evidence,
        judging,
        judged_by,
        user,
        mock_model,
    } = stored.clone();
    TrialRecord {
        ended,
        ended_because,
        limit_resets_at,
        verdict,
        score,
        checks,
        fired,
        skills,
        predicted,
        usage,
        cost_usd,
        model,
        seconds,
        notes,
        remarks,
        shortened_evidence,
        judging,
        judged_by,
        user,
        mock_model,
        ..planned
    }
}

/// Copies the files of a trial, as hard links if possible. Hard links are safe because stored files are never changed.
/// Symbolic links, pipes and devices are left out: records have none.
pub fn link_or_copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut folders = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = folders.pop() {
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
            if kind.is_dir() {
                create_private_folder(&target)?;
                folders.push((entry.path(), target));
            } else if kind.is_file() && std::fs::hard_link(entry.path(), &target).is_err() {
                std::fs::copy(entry.path(), &target)?;
            }
        }
    }
    Ok(())
}
