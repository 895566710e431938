//! A stored run, marked again: no agent, today's checks, today's judge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream;

use super::reuse::take_over;
use super::{Stop, SuiteMeans, fire_rate, gates, recorded, tally_of, tell};
use crate::judge::Sitting;
use crate::marking::{Jury, Sheet, expectation, needs_agent, offered, prediction_wanted, unanswered};
use crate::plan::{Plan, applicable};
use crate::recall::recall;
use crate::store::{RunDir, Scrubber, StoreError};
use practicum_agents::gateway::{Prices, ScopeKind};
use practicum_core::aggregate::Outcome;
use practicum_core::event::{RunEvent, Sinks};
use practicum_core::model::{
    Digest, Given, Leave, Network, Noise, Ratio, SkillJudged, Summary, Trial, TrialId, TrialRecord, Verdict,
    Why,
};
use practicum_evals::web::Web;

/// Everything that marking again needs.
pub struct Again {
    /// Today's suites, and the trials of the stored run that are of them and have a record.
    pub plan: Plan,
    /// The trials of the stored run that are of them and were not run.
    pub not_run: Vec<Trial>,
    /// Whether the stored run left out trials of cases that those before them decided (`--stop-early`).
    pub stopped_early: bool,
    /// One for each suite of the plan.
    pub suites: Vec<SuiteMeans>,
    /// The run that is marked again. It stays as it is.
    pub from: RunDir,
    pub old: BTreeMap<TrialId, TrialRecord>,
    /// The trials whose cases ask something else today: old answers to another question are not scored.
    pub asked_otherwise: BTreeSet<TrialId>,
    /// What was said then of the texts of its skills.
    pub skills_judged: Vec<SkillJudged>,
    /// Where the new marking goes.
    pub run_dir: RunDir,
    pub scrubber: Scrubber,
    pub allow_unscored: Ratio,
    /// What is known of how much cases differ from themselves.
    pub noise: Option<Noise>,
    pub stop: Stop,
    pub prices: Prices,
    /// How many judges are asked at once.
    pub judge_jobs: usize,
    /// The network, where checks may ask it.
    pub web: Option<Web>,
}

/// How many trials are marked at once, at least. Judges have a limit of their own.
const AT_ONCE: usize = 16;

/// Marks every trial of the plan again. The records come in the plan's order.
pub async fn mark_again(again: &Again, mut sinks: Sinks) -> Result<(Summary, Vec<TrialRecord>), StoreError> {
    let started = Instant::now();
    tell(
        &mut sinks,
        &RunEvent::RunStarted {
            schema_version: 1,
            run: again.run_dir.id().to_owned(),
            at: jiff::Timestamp::now().to_string(),
            trials: again.plan.trials.len(),
        },
    );
    let mut tally = tally_of(&again.plan);
    for trial in &again.not_run {
        let (planned, case) = again.plan.case(trial);
        tally.plan_trial(&planned.suite.name, case, &trial.condition, fire_rate(planned, case));
    }
    let mut records = Vec::new();
    let mut marking = stream::iter(&again.plan.trials)
        .take_while(|_| std::future::ready(!again.stop.is_stopping()))
        .map(|trial| again.mark(trial))
        .buffered(AT_ONCE.max(again.judge_jobs));
    while let Some(record) = marking.next().await {
        let record = record?;
        tally.add(&record);
        tell(&mut sinks, &RunEvent::TrialFinished { record: Box::new(record.clone()) });
        records.push(record);
    }
    for judged in again.judge_skills().await {
        tally.add_skill(&judged);
        tell(&mut sinks, &RunEvent::SkillJudged { judged: Box::new(judged) });
    }
    // A trial that was left out is still not needed only where today's results decide its case too.
    for trial in again.not_run.iter().filter(|_| again.stopped_early) {
        let (planned, case) = again.plan.case(trial);
        tally.leave_out_if_decided(&planned.suite.name, &case.id, &trial.condition);
    }
    tally.allow_unscored(again.allow_unscored);
    if let Some(noise) = &again.noise {
        tally.know(noise);
    }
    let outcome = if again.stop.is_stopping() { Outcome::Interrupted } else { Outcome::Completed };
    let seconds = started.elapsed().as_secs_f64();
    let summary = tally.summary(again.run_dir.id(), &gates(&again.plan), seconds, outcome);
    again.run_dir.write_summary(&summary)?;
    tell(&mut sinks, &RunEvent::RunFinished { summary: Box::new(summary.clone()) });
    Ok((summary, records))
}

impl Again {
    /// One trial: its files taken over, its marks new.
    async fn mark(&self, trial: &Trial) -> Result<TrialRecord, StoreError> {
        let from = self.from.trial(&trial.id);
        let old = &self.old[&trial.id];
        let record = if old.ended.can_be_marked() {
            let marked = self.marked(trial, old, &from).await;
            TrialRecord { reused_from: Some(self.from.id().to_owned()), ..marked }
        } else {
            // What never came to its end has nothing that could be marked, then or now.
            let (_, case) = self.plan.case(trial);
            let reused_from = Some(self.from.id().to_owned());
            let (expect, predicted) = (expectation(case), prediction_wanted(case));
            TrialRecord { key: None, expect, predicted, reused_from, ..old.clone() }
        };
        // A trial that was skipped or broke off has no folder of its own, only a record.
        if from.join("checks.json").exists() {
            let folder = self.run_dir.open_trial(&trial.id)?;
            take_over(&from, &folder).map_err(StoreError::at(&folder))?;
            self.run_dir.write_record(&record, &self.scrubber)?;
        }
        Ok(record)
    }

    async fn marked(&self, trial: &Trial, old: &TrialRecord, from: &Path) -> TrialRecord {
        let (planned, case) = self.plan.case(trial);
        let checks = applicable(case, &trial.condition);
        let recalled = crate::run::run_blocking(|| recall(from));
        let recalled = recalled.map_err(|why| format!("what was seen of this trial is gone: {why}"));
        let unseen = "no agent was run for this trial, because all that was asked was a prediction";
        let recalled = match recalled {
            _ if self.asked_otherwise.contains(&trial.id) => {
                Err("the prompt changed since; run it again".to_owned())
            }
            Ok(recalled) if recalled.only_predicted && needs_agent(&checks) => Err(unseen.to_owned()),
            recalled => recalled,
        };
        let recalled = match recalled {
            Ok(recalled) => recalled,
            Err(why) => {
                let why = Why::CheckFailed(why);
                let checks = checks.into_iter().map(|check| unanswered(check, &why)).collect();
                let verdict = Verdict::NotScored(why.clone());
                let predicted = prediction_wanted(case);
                return TrialRecord { key: None, verdict, checks, fired: None, predicted, ..old.clone() };
            }
        };
        let offered = crate::run::run_blocking(|| offered(&planned.suite, &checks));
        let sheet = Sheet {
            suite: &planned.suite,
            case,
            offered,
            checks,
            arm: trial.condition.arm,
            skills: recalled.skills,
            // No folder is left in which anything could run.
            leave: Leave { run_code: true, network: self.web.as_ref().map(|web| web as &dyn Network) },
        };
        let means = &self.suites[trial.suite];
        let address = || {
            let gateway = means.gateway.as_ref().map(|(gateway, _)| gateway);
            gateway.map(|at| at.register(trial.id.as_str(), ScopeKind::Judge, BTreeMap::new()))
        };
        let judge = match &means.judge {
            Ok(judge) => Ok(judge.as_ref()),
            Err(why) => Err(Why::NotJudged(why.clone())),
        };
        let marker = format!("{}@{}", Digest::of(trial.id.as_str().as_bytes()).short(), self.run_dir.id());
        let sitting = Sitting { marker: &marker, cancel: &self.stop.now };
        let (gateway, prices) = (means.stand_name(), means.prices(&self.prices));
        let jury = Jury { judge, sitting, address: &address, gateway, prices };
        let marked = sheet.mark(&recalled.seen, &recalled.workspace, &recalled.given, &jury).await;
        let complaints = recalled.given.iter().filter_map(Given::complaint);
        recorded(&self.plan, trial, &recalled.seen, marked, complaints.collect())
    }
}
