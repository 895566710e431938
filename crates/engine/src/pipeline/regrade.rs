//! Regrades a stored run: no agent runs, and the current checks and judge are used.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::recorder::{CompletionRules, RunRecorder};
use super::reuse::link_or_copy_files;
use super::scheduler::{InOrder, Scheduler};
use super::{StopSignal, activation_rule, build_record, unfinished_record};
use crate::grade::SuiteServices;
use crate::grade::grading::{
    JudgeAccess, TrialGrader, expected_activation, needs_agent, offered_skills, requested_prediction,
    unanswered,
};
use crate::grade::judge::JudgeContext;
use crate::plan::{Plan, applicable_checks};
use crate::store::reload_trial::reload_trial;
use crate::store::{RunDir, Scrubber, StoreError};
use practicum_agents::agents::AgentRegistry;
use practicum_agents::gateway::{PriceTable, ScopeKind};
use practicum_core::aggregate::RunCompletion;
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{
    AgentEnding, Baseline, CheckPermissions, Digest, GivenFile, Noise, NotScoredReason, Ratio, RepeatDigests,
    SkillJudgement, Summary, Trial, TrialId, TrialRecord, UrlChecker, Verdict,
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
    /// The stored results that the run must not fall behind.
    pub baseline: Option<Baseline>,
    pub stop: StopSignal,
    pub prices: PriceTable,
    /// The number of judges that are asked at once.
    pub judge_jobs: usize,
    /// The network, if checks may use it.
    pub web: Option<HttpUrlChecker>,
    /// The decoders of the agents' streams.
    pub agents: AgentRegistry,
}

/// The least number of trials that are regraded at once. Judges have their own limit.
const MIN_CONCURRENT_TRIALS: usize = 16;

/// Regrades every trial of the plan. Gives the summary and the new records.
pub async fn regrade_run(
    again: &Arc<Regrade>,
    sinks: EventSinks,
) -> Result<(Summary, BTreeMap<TrialId, TrialRecord>), StoreError> {
    let plan = &again.plan;
    let mut recorder = RunRecorder::start(plan, &again.run_dir, sinks);
    for trial in &again.not_run {
        let (planned, case) = plan.suite_and_case(trial);
        recorder.tally.plan_trial(
            &planned.suite.name,
            case,
            &trial.condition,
            activation_rule(planned, case),
        );
    }
    let records = again.regrade_trials(&mut recorder).await?;
    for judged in again.judge_skills().await {
        recorder.tally.add_skill_judgement(&judged);
        recorder.send_event(&RunEvent::SkillJudged { judged: Box::new(judged) });
    }
    // A skipped trial stays unneeded only if the current results also decide its case.
    for trial in again.not_run.iter().filter(|_| again.stopped_early) {
        let (planned, case) = plan.suite_and_case(trial);
        recorder.tally.skip_if_decided(&planned.suite.name, &case.id, &trial.condition);
    }
    let completion =
        if again.stop.is_stopping() { RunCompletion::Interrupted } else { RunCompletion::Completed };
    let rules = CompletionRules {
        allow_unscored: again.allow_unscored,
        noise: again.noise.as_ref(),
        baseline: again.baseline.as_ref(),
    };
    Ok((recorder.finish(plan, &again.run_dir, rules, completion)?, records))
}

impl Regrade {
    async fn regrade_trials(
        self: &Arc<Self>,
        recorder: &mut RunRecorder,
    ) -> Result<BTreeMap<TrialId, TrialRecord>, StoreError> {
        let at_once = MIN_CONCURRENT_TRIALS.max(self.judge_jobs);
        let mut trials = Scheduler::new(self.plan.trials.len(), at_once, 0);
        let (mut in_order, mut records) = (InOrder::new(), BTreeMap::new());
        loop {
            while !self.stop.is_stopping()
                && let Some((index, permit)) = trials.take_next()
            {
                let again = Arc::clone(self);
                trials.spawn(index, async move {
                    let record = again.regrade_trial(&again.plan.trials[index]).await;
                    drop(permit);
                    record
                });
            }
            let may_start = !self.stop.is_stopping();
            if trials.is_done(may_start) {
                return Ok(records);
            }
            let Some((index, ended)) = trials.wait(may_start).await else { continue };
            let record = ended.unwrap_or_else(|why| {
                Ok(unfinished_record(&self.plan, &self.plan.trials[index], AgentEnding::Crashed, &why))
            })?;
            for record in in_order.add(index, record) {
                recorder.tally.add(&record);
                recorder.send_event(&RunEvent::TrialFinished { record: Box::new(record.clone()) });
                records.insert(record.trial.clone(), record);
            }
        }
    }

    /// Regrades one trial: its files are taken over and its grades are new.
    async fn regrade_trial(&self, trial: &Trial) -> Result<TrialRecord, StoreError> {
        let from = self.source_run.trial_folder(&trial.id);
        let old = &self.old_records[&trial.id];
        let record = if old.ended.can_be_graded() {
            let grades = self.regraded_record(trial, old, &from).await;
            let repeats = old.repeats.as_ref().map(|then| RepeatDigests {
                case: then.case.clone(),
                // Trials that were graded otherwise are no repeats.
                setup: Digest::of_parts([then.setup.as_str().as_bytes(), b"graded again"]),
            });
            TrialRecord { reused_from: Some(self.source_run.id().to_owned()), repeats, ..grades }
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
        let recalled = crate::workspace::run::run_blocking(|| reload_trial(from, &self.agents));
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
                let checks =
                    checks.into_iter().map(|check| unanswered(check, case.pass_rule, &why)).collect();
                let verdict = Verdict::NotScored(why.clone());
                let predicted = requested_prediction(case);
                return TrialRecord {
                    key: None,
                    verdict,
                    score: None,
                    checks,
                    fired: None,
                    predicted,
                    judging: None,
                    ..old.clone()
                };
            }
        };
        let offered = crate::workspace::run::run_blocking(|| offered_skills(&planned.suite, &checks));
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
        let grades =
            sheet.grade(&recalled.observation, &recalled.workspace, &recalled.given_files, &jury).await;
        let complaints = recalled.given_files.iter().filter_map(GivenFile::describe_problem);
        build_record(&self.plan, trial, &recalled.observation, grades, complaints.collect())
    }
}
