//! Puts the parts of a run together: the runs of `--shard 1/3`, `2/3` and `3/3` become the run that one machine would
//! have made.
//!
//! The plan is made again from the eval files, as for a run. Only the results come from the parts, so gates, rates and
//! reports are computed as in any other run. No agent is started.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::changed_evals::describe_changes;
use super::prepared::stored_baseline;
use super::record::{keep_graded_skills, run_info};
use super::{FinishedRun, RunObserver, Session, SessionError, SuitesToRun};
use crate::pipeline::{CompletionRules, RunRecorder, link_or_copy_files};
use crate::plan::options::{CaseSelection, RunOptions};
use crate::plan::{Plan, set_gates};
use crate::store::{
    IndexSink, RecordKey, RunDir, RunInfo, Scrubber, StoreError, read_noise, read_probes, read_records,
    read_skill_judgements,
};
use practicum_core::aggregate::RunCompletion;
use practicum_core::event::RunEvent;
use practicum_core::model::{Outcome, ProbeRecord, SkillJudgement, TrialId, TrialRecord};

/// The deepest folder, below one that the user names, in which runs are searched.
const SEARCH_DEPTH: usize = 5;

/// The parts of one run.
pub struct RunParts {
    parts: Vec<RunPart>,
    options: RunOptions,
    /// Sentences about parts that are missing.
    missing: Vec<String>,
}

/// A run of one part of the cases.
struct RunPart {
    run_dir: RunDir,
    info: RunInfo,
    records: BTreeMap<TrialId, TrialRecord>,
    /// The number of the part and the number of all parts.
    shard: (u32, u32),
}

impl RunParts {
    /// Finds the runs that the user names, by their ids or folders, or by a folder that has them somewhere below.
    /// Refuses runs that are not parts of one run.
    pub fn find(project: &Path, named: &[String]) -> Result<Self, SessionError> {
        let mut runs: BTreeMap<PathBuf, RunDir> = BTreeMap::new();
        for name in named {
            let found = runs_below(Path::new(name));
            let found = match found.is_empty() {
                true => vec![RunDir::find(project, name).map_err(SessionError::Refused)?],
                false => found,
            };
            runs.extend(found.into_iter().map(|run| (run.path().to_owned(), run)));
        }
        let mut parts = runs.into_values().map(read_part).collect::<Result<Vec<RunPart>, SessionError>>()?;
        parts.sort_by_key(|part| part.shard);
        let missing = require_one_set(&parts)?;
        let options = common_options(&parts, project)?;
        Ok(Self { parts, options, missing })
    }

    /// Gives a session whose plan is that of the whole run.
    pub fn session(&self, project: &Path) -> Session<'static> {
        Session::new(project).with_options(self.options.clone()).showing_only(true)
    }

    /// Plans the whole run and takes the results from the parts.
    pub fn merge(
        self,
        mut suites: SuitesToRun,
        observer: &mut dyn RunObserver,
    ) -> Result<FinishedRun, SessionError> {
        suites.options.inputs.only_shown = false;
        let project = suites.project.clone();
        let Some((mut plan, run)) = suites.plan(observer)? else {
            return Err(SessionError::Refused("the eval files have no cases".to_owned()));
        };
        set_gates(&mut plan.suites, &run.options.gates);
        self.refuse_other_evals(&plan)?;
        let mut notices = run.notices.clone();
        self.missing.iter().for_each(|text| observer.on_notice(text));
        notices.extend(self.missing.iter().cloned());
        // Who merges parts takes them over, so the merged run is one of this installation.
        let key = RecordKey::of_user(&run.environment).unwrap_or_else(|_| RecordKey::temporary());
        let noise = match run.options.count_flaky {
            true => None,
            false => read_noise(&project, &key).map_err(SessionError::Refused)?,
        };
        let run_dir = RunDir::create(&project, RunDir::new_id(jiff::Timestamp::now()))?.with_key(key);
        self.write_info(&plan, &run_dir, notices)?;
        // What the parts recorded was scrubbed of secrets where it was written.
        let scrubber = Scrubber::new(&run.environment);
        let index = IndexSink::new(&project, &run_dir);
        let sinks = run_dir.open_log(scrubber.clone(), vec![Box::new(index)])?;
        let mut recorder = RunRecorder::start(&plan, &run_dir, sinks);
        for probe in self.probes() {
            recorder.tally.add_probe(&probe);
            recorder.send_event(&RunEvent::ProbeFinished { probe: Box::new(probe) });
        }
        for judged in self.skill_judgements() {
            recorder.tally.add_skill_judgement(&judged);
            recorder.send_event(&RunEvent::SkillJudged { judged: Box::new(judged) });
        }
        for trial in &plan.trials {
            let Some((part, record)) = self.result_of(&trial.id) else { continue };
            copy_trial(part, record, &run_dir, &scrubber)?;
            recorder.tally.add(record);
            recorder.send_event(&RunEvent::TrialFinished { record: Box::new(record.clone()) });
        }
        for trial in plan.trials.iter().filter(|_| run.options.stop_early) {
            let (planned, case) = plan.suite_and_case(trial);
            if self.result_of(&trial.id).is_none() {
                recorder.tally.skip_if_decided(&planned.suite.name, &case.id, &trial.condition);
            }
        }
        let baseline = stored_baseline(&plan, &project, &run.options)?;
        let rules = CompletionRules {
            allow_unscored: run.options.allow_unscored,
            noise: noise.as_ref(),
            baseline: baseline.as_ref(),
        };
        let summary = recorder.finish(&plan, &run_dir, rules, self.completion())?;
        Ok(FinishedRun { summary, run_dir, workspaces: None })
    }

    fn result_of(&self, trial: &TrialId) -> Option<(&RunPart, &TrialRecord)> {
        self.parts.iter().find_map(|part| Some((part, part.records.get(trial)?)))
    }

    /// Refuses parts that were run with other evals, another skill or other files than those that are here.
    fn refuse_other_evals(&self, plan: &Plan) -> Result<(), SessionError> {
        let planned: BTreeSet<&TrialId> = plan.trials.iter().map(|trial| &trial.id).collect();
        for part in &self.parts {
            let known: BTreeSet<&TrialId> = part.info.trials.iter().map(|trial| &trial.id).collect();
            let own = plan.trials.iter().filter(|trial| known.contains(&trial.id));
            let own = Plan { trials: own.cloned().collect(), ..plan.clone() };
            let mut changes = describe_changes(&part.info, &own);
            let foreign = part.info.trials.iter().filter(|trial| !planned.contains(&trial.id)).count();
            if changes.is_empty() && foreign > 0 {
                changes.push(format!("{foreign} of its trials are not in the plan"));
            }
            if !changes.is_empty() {
                return Err(SessionError::Refused(format!(
                    "{} does not belong to the evals that are here: {}",
                    part.describe(),
                    changes.join(", ")
                )));
            }
        }
        Ok(())
    }

    fn write_info(&self, plan: &Plan, run_dir: &RunDir, notices: Vec<String>) -> Result<(), SessionError> {
        let infos = || self.parts.iter().map(|part| &part.info);
        let info = run_info(plan, run_dir, infos().any(|info| info.scripted), Vec::new());
        let mut notices: Vec<String> = notices;
        notices.extend(keep_graded_skills(&info, run_dir));
        for notice in infos().flat_map(|info| &info.notices) {
            if !notices.contains(notice) {
                notices.push(notice.clone());
            }
        }
        let started = infos().map(|info| info.started.clone()).min().unwrap_or_default();
        run_dir.write_info(&RunInfo {
            notices,
            started,
            replayed: infos().any(|info| info.replayed),
            gates: self.options.gates.clone(),
            count_flaky: self.options.count_flaky,
            options: Some(self.options.clone()),
            command: vec!["run".to_owned()],
            ..info
        })?;
        Ok(())
    }

    /// Gives the probes of all parts. Each part makes its own; one for each agent and skill is shown.
    fn probes(&self) -> Vec<ProbeRecord> {
        let mut seen = BTreeSet::new();
        let all = self.parts.iter().filter_map(|part| read_probes(part.run_dir.path()).ok());
        let all = all.flat_map(BTreeMap::into_values);
        // One that failed says why the run is not complete, so it is not hidden by one that did not.
        let (failed, others): (Vec<ProbeRecord>, Vec<ProbeRecord>) = all.partition(|probe| !probe.fired);
        failed.into_iter().chain(others).filter(|probe| seen.insert(probe.trial.clone())).collect()
    }

    fn skill_judgements(&self) -> Vec<SkillJudgement> {
        let mut seen = BTreeSet::new();
        let all = self.parts.iter().filter_map(|part| read_skill_judgements(part.run_dir.path()).ok());
        all.flatten().filter(|judged| seen.insert((judged.suite.clone(), judged.skill.clone()))).collect()
    }

    /// Says how the whole run ended: as the part that ended worst. A part without a summary was killed.
    fn completion(&self) -> RunCompletion {
        let ends: Vec<Option<Outcome>> =
            self.parts.iter().map(|part| part.run_dir.summary().map(|summary| summary.exit)).collect();
        let any = |outcome: Option<Outcome>| ends.contains(&outcome);
        if any(None) || any(Some(Outcome::Interrupted)) {
            RunCompletion::Interrupted
        } else if any(Some(Outcome::OverBudget)) {
            RunCompletion::OverBudget
        } else if self.probes().iter().any(|probe| !probe.fired) {
            RunCompletion::NotReady
        } else {
            RunCompletion::Completed
        }
    }
}

impl RunPart {
    fn describe(&self) -> String {
        let (part, parts) = self.shard;
        format!("part {part}/{parts} ({})", self.run_dir.path().display())
    }
}

/// Copies the folder of a trial into the merged run. A trial that was skipped has only a record.
fn copy_trial(
    part: &RunPart,
    record: &TrialRecord,
    run_dir: &RunDir,
    scrubber: &Scrubber,
) -> Result<(), StoreError> {
    let from = part.run_dir.trial_folder(&record.trial);
    if from.join("checks.json").exists() {
        let folder = run_dir.create_trial_folder(&record.trial)?;
        link_or_copy_files(&from, &folder).map_err(StoreError::at_path(&folder))?;
        run_dir.write_record(record, scrubber)?;
    }
    Ok(())
}

/// Finds the runs in a folder and below it. Links are not followed.
fn runs_below(folder: &Path) -> Vec<RunDir> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if let Some(run) = RunDir::at_path(&folder) {
            found.push(run);
            continue;
        }
        if depth == SEARCH_DEPTH {
            continue;
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(inner.map(|entry| (entry.path(), depth + 1)));
    }
    found
}

fn read_part(run_dir: RunDir) -> Result<RunPart, SessionError> {
    let refused = |why: String| SessionError::Refused(format!("{}: {why}", run_dir.path().display()));
    let info = run_dir.info().map_err(refused)?;
    let shard = info.options.as_ref().and_then(|options| options.selection.shard);
    let shard = shard.ok_or_else(|| refused("this run was not made with --shard".to_owned()))?;
    let records = read_records(run_dir.path()).map_err(|error| refused(error.to_string()))?;
    Ok(RunPart { run_dir, info, records, shard })
}

/// Refuses parts of different splits, and parts that are there twice. Gives a sentence if some are missing.
fn require_one_set(parts: &[RunPart]) -> Result<Vec<String>, SessionError> {
    let Some(first) = parts.first() else {
        return Err(SessionError::Refused("there are no runs to merge".to_owned()));
    };
    let whole = first.shard.1;
    if let Some(other) = parts.iter().find(|part| part.shard.1 != whole) {
        return Err(SessionError::Refused(format!(
            "{} and {} are not parts of one run",
            first.describe(),
            other.describe()
        )));
    }
    let mut neighbours = parts.iter().zip(parts.iter().skip(1));
    if let Some((one, other)) = neighbours.find(|(one, other)| one.shard == other.shard) {
        return Err(SessionError::Refused(format!(
            "{} is also in {}; name only one of them",
            one.describe(),
            other.run_dir.path().display()
        )));
    }
    let there: BTreeSet<u32> = parts.iter().map(|part| part.shard.0).collect();
    let missing: Vec<String> =
        (1..=whole).filter(|part| !there.contains(part)).map(|part| format!("{part}/{whole}")).collect();
    Ok(match missing.as_slice() {
        [] => Vec::new(),
        [one] => vec![format!("part {one} is missing; its trials count as not run")],
        several => vec![format!("parts {} are missing; their trials count as not run", several.join(", "))],
    })
}

/// Gives the options of the whole run: those of the parts, which must agree, without the shard and with paths in this
/// project.
fn common_options(parts: &[RunPart], project: &Path) -> Result<RunOptions, SessionError> {
    let mut all = parts.iter().map(|part| (part, options_of(part, project)));
    let Some((first, options)) = all.next() else { return Ok(RunOptions::default()) };
    for (other, others) in all {
        if let Some(name) = first_difference(&options, &others) {
            return Err(SessionError::Refused(format!(
                "{} and {} were run with different options: {name}",
                first.describe(),
                other.describe()
            )));
        }
    }
    Ok(options)
}

/// Gives the options of a part as they are for the whole run. What only a machine or a terminal needs is left out.
fn options_of(part: &RunPart, project: &Path) -> RunOptions {
    let options = part.info.options.clone().unwrap_or_default();
    let there = part.info.project.clone();
    let moved = options.map_paths(|path| match path.strip_prefix(&there) {
        Ok(rest) if !there.as_os_str().is_empty() => project.join(rest),
        _ => path.to_owned(),
    });
    let mut settings = moved.settings;
    for limit in ["jobs", "judge-jobs", "max-cost", "max-tokens", "retries", "retry-wait", "sandbox"] {
        settings.remove(limit);
    }
    // The agent that a machine chose must not be chosen again here.
    let agents: BTreeSet<&str> =
        part.info.trials.iter().map(|trial| trial.condition.agent.as_str()).collect();
    let chose_agent = part.info.suites.iter().any(|of| of.setting("agent") == Some("auto"));
    if chose_agent && !agents.is_empty() {
        settings.insert("agent".to_owned(), agents.into_iter().collect::<Vec<&str>>().join(","));
    }
    RunOptions {
        settings,
        reports: Vec::new(),
        keep_workspaces: false,
        fail_fast: false,
        until: None,
        no_reuse: false,
        selection: CaseSelection { shard: None, durations: None, ..moved.selection },
        ..moved
    }
}

/// Gives the name of the first option that differs.
fn first_difference(one: &RunOptions, other: &RunOptions) -> Option<String> {
    let written = |options| serde_json::to_value(options).unwrap_or_default();
    let (one, other) = (written(one), written(other));
    let names = one.as_object().into_iter().chain(other.as_object()).flat_map(|options| options.keys());
    names.filter(|name| one.get(name) != other.get(name)).map(|name| name.replace('_', " ")).next()
}
