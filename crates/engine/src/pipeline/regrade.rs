//! Regrades a stored run: no agent runs, and the current checks and judge are used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream;

use super::reuse::link_or_copy_files;
use super::{StopSignal, SuiteServices, activation_rule, build_record, new_tally, send_event, suite_gates};
use crate::grading::{
    JudgeAccess, TrialGrader, expected_activation, needs_agent, offered_skills, requested_prediction,
    unanswered,
};
use crate::judge::JudgeContext;
use crate::plan::{Plan, applicable_checks};
use crate::reload_trial::reload_trial;
use crate::store::{RunDir, Scrubber, StoreError};
use practicum_agents::gateway::{PriceTable, ScopeKind};
use practicum_core::aggregate::RunCompletion;
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{
    CheckPermissions, Digest, GivenFile, Noise, NotScoredReason, Ratio, SkillJudgement, Summary, Trial,
    TrialId, TrialRecord, UrlChecker, Verdict,
};
use practicum_evals::url_check::HttpUrlChecker;

/// Everything that regrading needs.
pub struct Regrade {
    /// The current suites, and the trials of the stored run that belong to them and have a record.
    pub plan: Plan,
    /// The trials of the stored run that belong to these suites and were not run.
    pub not_run: Vec<Trial>,
    /// Whether the stored run skipped trials of cases that earlier trials had decided (`--stop-early`).
    pub stopped_early: bool,
    /// The services of each suite of the plan.
    pub suites: Vec<SuiteServices>,
    /// The run that is regraded. It is not changed.
    pub source_run: RunDir,
    pub old_records: BTreeMap<TrialId, TrialRecord>,
    /// The trials whose cases have another prompt today. They are not scored, because the old answers are to another
    /// question.
    pub changed_trials: BTreeSet<TrialId>,
    /// The stored judgements on the texts of its skills.
    pub skills_judged: Vec<SkillJudgement>,
    /// The folder for the new grades.
    pub run_dir: RunDir,
    pub scrubber: Scrubber,
    pub allow_unscored: Ratio,
    /// The known variation of the cases between equal runs.
    pub noise: Option<Noise>,
    pub stop: StopSignal,
    pub prices: PriceTable,
    /// The number of judges that are asked at once.
    pub judge_jobs: usize,
    /// The network, if checks may use it.
    pub web: Option<HttpUrlChecker>,
}

/// The least number of trials that are regraded at once. Judges have their own limit.
const MIN_CONCURRENT_TRIALS: usize = 16;

/// Regrades every trial of the plan. The records come in the plan's order.
pub async fn regrade_run(
    again: &Regrade,
    mut sinks: EventSinks,
) -> Result<(Summary, Vec<TrialRecord>), StoreError> {
    let started = Instant::now();
    send_event(
        &mut sinks,
        &RunEvent::RunStarted {
            schema_version: 1,
            run: again.run_dir.id().to_owned(),
            at: jiff::Timestamp::now().to_string(),
            trials: again.plan.trials.len(),
        },
    );
    let mut tally = new_tally(&again.plan);
    for trial in &again.not_run {
        let (planned, case) = again.plan.suite_and_case(trial);
        tally.plan_trial(&planned.suite.name, case, &trial.condition, activation_rule(planned, case));
    }
    let mut records = Vec::new();
    let mut marking = stream::iter(&again.plan.trials)
        .take_while(|_| std::future::ready(!again.stop.is_stopping()))
        .map(|trial| again.regrade_trial(trial))
        .buffered(MIN_CONCURRENT_TRIALS.max(again.judge_jobs));
    while let Some(record) = marking.next().await {
        let record = record?;
        tally.add(&record);
        send_event(&mut sinks, &RunEvent::TrialFinished { record: Box::new(record.clone()) });
        records.push(record);
    }
    for judged in again.judge_skills().await {
        tally.add_skill_judgement(&judged);
        send_event(&mut sinks, &RunEvent::SkillJudged { judged: Box::new(judged) });
    }
    // A skipped trial stays unneeded only if the current results also decide its case.
    for trial in again.not_run.iter().filter(|_| again.stopped_early) {
        let (planned, case) = again.plan.suite_and_case(trial);
        tally.skip_if_decided(&planned.suite.name, &case.id, &trial.condition);
    }
    tally.allow_unscored(again.allow_unscored);
    if let Some(noise) = &again.noise {
        tally.set_known_noise(noise);
    }
    let outcome =
        if again.stop.is_stopping() { RunCompletion::Interrupted } else { RunCompletion::Completed };
    let seconds = started.elapsed().as_secs_f64();
    let summary = tally.summary(again.run_dir.id(), &suite_gates(&again.plan), seconds, outcome);
    again.run_dir.write_summary(&summary)?;
    send_event(&mut sinks, &RunEvent::RunFinished { summary: Box::new(summary.clone()) });
    Ok((summary, records))
}

impl Regrade {
    /// Regrades one trial: its files are taken over and its grades are new.
    async fn regrade_trial(&self, trial: &Trial) -> Result<TrialRecord, StoreError> {
        let from = self.source_run.trial_folder(&trial.id);
        let old = &self.old_records[&trial.id];
        let record = if old.ended.can_be_graded() {
            let marked = self.regraded_record(trial, old, &from).await;
            TrialRecord { reused_from: Some(self.source_run.id().to_owned()), ..marked }
        } else {
            // A trial that did not end properly could not be graded then and cannot be graded now.
            let (_, case) = self.plan.suite_and_case(trial);
            let reused_from = Some(self.source_run.id().to_owned());
            let (expect, predicted) = (expected_activation(case), requested_prediction(case));
            TrialRecord { key: None, expect, predicted, reused_from, ..old.clone() }
        };
        // A trial that was skipped or was interrupted has only a record and no folder.
        if from.join("checks.json").exists() {
            let folder = self.run_dir.create_trial_folder(&trial.id)?;
            link_or_copy_files(&from, &folder).map_err(StoreError::at_path(&folder))?;
            self.run_dir.write_record(&record, &self.scrubber)?;
        }
        Ok(record)
    }

    async fn regraded_record(&self, trial: &Trial, old: &TrialRecord, from: &Path) -> TrialRecord {
        let (planned, case) = self.plan.suite_and_case(trial);
        let checks = applicable_checks(case, &trial.condition);
        let recalled = crate::run::run_blocking(|| reload_trial(from));
        let recalled = recalled.map_err(|why| format!("what was seen of this trial is gone: {why}"));
        let unseen = "no agent was run for this trial, because all that was asked was a prediction";
        let recalled = match recalled {
            _ if self.changed_trials.contains(&trial.id) => {
                Err("the prompt changed since; run it again".to_owned())
            }
            Ok(recalled) if recalled.only_predicted && needs_agent(&checks) => Err(unseen.to_owned()),
            recalled => recalled,
        };
        let recalled = match recalled {
            Ok(recalled) => recalled,
            Err(why) => {
                let why = NotScoredReason::CheckFailed(why);
                let checks = checks.into_iter().map(|check| unanswered(check, &why)).collect();
                let verdict = Verdict::NotScored(why.clone());
                let predicted = requested_prediction(case);
                return TrialRecord { key: None, verdict, checks, fired: None, predicted, ..old.clone() };
            }
        };
        let offered = crate::run::run_blocking(|| offered_skills(&planned.suite, &checks));
        let sheet = TrialGrader {
            suite: &planned.suite,
            case,
            offered_skills: offered,
            checks,
            arm: trial.condition.arm,
            skills: recalled.skills,
            // No script can run: the trial has no folder any more.
            permissions: CheckPermissions {
                run_code: true,
                url_checker: self.web.as_ref().map(|web| web as &dyn UrlChecker),
            },
        };
        let means = &self.suites[trial.suite];
        let address = || {
            let gateway = means.gateway.as_ref().map(|(gateway, _)| gateway);
            gateway.map(|at| at.register(trial.id.as_str(), ScopeKind::Judge, BTreeMap::new()))
        };
        let judge = match &means.judge {
            Ok(judge) => Ok(judge.as_ref()),
            Err(why) => Err(NotScoredReason::NotJudged(why.clone())),
        };
        let marker =
            format!("{}@{}", Digest::of_bytes(trial.id.as_str().as_bytes()).short(), self.run_dir.id());
        let sitting = JudgeContext { marker: &marker, cancel: &self.stop.cancel };
        let (gateway, prices) = (means.gateway_name(), means.prices(&self.prices));
        let jury =
            JudgeAccess { judge, context: sitting, open_scope: &address, gateway_name: gateway, prices };
        let marked =
            sheet.grade(&recalled.observation, &recalled.workspace, &recalled.given_files, &jury).await;
        let complaints = recalled.given_files.iter().filter_map(GivenFile::describe_problem);
        build_record(&self.plan, trial, &recalled.observation, marked, complaints.collect())
    }
}
