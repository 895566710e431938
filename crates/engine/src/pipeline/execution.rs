//! The execution of a run: which trials start, and what becomes of those that ended.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::agent_slots::SlotPermit;
use super::executor::{ExecutorEvent, run_elsewhere};
use super::queue::TrialEndDecision;
use super::recorder::{CompletionRules, RunRecorder};
use super::reuse::{ReusableTrial, ReuseTarget};
use super::run_context::{RunContext, RunPhase};
use super::scheduler::Scheduler;
use super::{describe_wait, run_trial, skill_judging, started_event, unfinished_record, waiting_event};
use crate::store::StoreError;
use practicum_core::aggregate::RunCompletion;
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{
    AgentEnding, SkillJudgement, Summary, Trial, TrialRecord, Verdict, count_with_noun,
};

/// A run in progress.
pub struct RunExecution {
    pub(super) context: Arc<RunContext>,
    pub(super) recorder: RunRecorder,
    /// Whether the probes activated their skills, so that trials can measure activation.
    pub(super) probes_passed: bool,
    /// Whether a trial has failed.
    has_failed: bool,
    /// The number of trials that have not started, or wait for a retry.
    trials_left: usize,
    /// Whether the limit of the account resets later than this run may wait.
    out_of_time: bool,
    /// What the executor was told about the end of the run, if trials run elsewhere.
    executor_stop: ExecutorStop,
}

/// What an executor was told about the end of a run. Each order is given once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExecutorStop {
    /// Trials may begin.
    None,
    /// No trial may begin.
    Recalled,
    /// Running trials are ended.
    Cancelled,
}

impl RunExecution {
    /// Reports the start of the run.
    pub fn start(context: RunContext, sinks: EventSinks) -> Self {
        let mut recorder = RunRecorder::start(&context.plan, &context.run_dir, sinks);
        for notice in context.sandbox.notices() {
            recorder.send_event(&RunEvent::Notice { text: notice.clone() });
        }
        let trials_left = context.plan.trials.len();
        Self {
            context: Arc::new(context),
            recorder,
            probes_passed: false,
            has_failed: false,
            trials_left,
            out_of_time: false,
            executor_stop: ExecutorStop::None,
        }
    }

    /// Runs the trials, and asks the judges about the texts of skills meanwhile.
    pub async fn run_trials(&mut self) {
        let context = Arc::clone(&self.context);
        context
            .reusable
            .skills_judged
            .iter()
            .for_each(|judged| self.recorder.tally.add_skill_judgement(judged));
        let mut judgements = match self.probes_passed {
            true => skill_judging::start_judging_skills(&context),
            false => JoinSet::new(),
        };
        let mut trials =
            Scheduler::new(context.plan.trials.len(), context.trials_at_once(), context.judge_jobs);
        let mut not_begun = 0;
        loop {
            while self.may_start_trial()
                && let Some((index, permit)) = trials.take_next()
            {
                self.start_trial(&mut trials, index, permit);
            }
            let may_start = self.may_start_trial();
            self.stop_executor(may_start).await;
            if judgements.is_empty() && trials.is_done(may_start) {
                break;
            }
            tokio::select! {
                Some(judged) = judgements.join_next() => {
                    // A question that panicked has no result.
                    judged.into_iter().for_each(|judged| self.record_skill_judgement(judged));
                }
                ended = trials.wait(may_start) => {
                    match ended {
                        Some((_, Ok(None))) => not_begun += 1,
                        Some((index, Ok(Some(record)))) => self.finish_trial(&mut trials, index, Ok(record)),
                        Some((index, Err(why))) => self.finish_trial(&mut trials, index, Err(why)),
                        None => {}
                    }
                }
                event = context.next_executor_event() => self.show_executor_event(event),
                () = context.stop.cancel.wait_until_cancelled(),
                    if context.executor.is_some() && self.executor_stop < ExecutorStop::Cancelled => {}
            }
        }
        self.trials_left = trials.remaining() + not_begun;
    }

    /// Tells the executor, if there is one, that no trial may begin or that the run was cancelled.
    pub(super) async fn stop_executor(&mut self, may_start: bool) {
        let Some(executor) = self.context.executor.clone() else { return };
        if !may_start && self.executor_stop < ExecutorStop::Recalled {
            self.executor_stop = ExecutorStop::Recalled;
            executor.recall().await;
        }
        if self.context.stop.cancel.is_cancelled() && self.executor_stop < ExecutorStop::Cancelled {
            self.executor_stop = ExecutorStop::Cancelled;
            executor.cancel().await;
        }
    }

    /// Ends the work of the executor, if there is one.
    pub async fn close_executor(&mut self) {
        if let Some(executor) = self.context.executor.clone() {
            let keeps_record = self.recorder.sinks.lost_record().is_none();
            executor.close(keeps_record && self.completion() == RunCompletion::Completed).await;
            let _ = std::fs::remove_dir(self.context.run_dir.path().join("incoming"));
        }
    }

    pub(super) fn show_executor_event(&mut self, event: ExecutorEvent) {
        let plan = &self.context.plan;
        let event = match event {
            ExecutorEvent::Notice(text) => RunEvent::Notice { text },
            // Probes have no event for their start.
            ExecutorEvent::Began { is_probe: true, .. } => return,
            ExecutorEvent::Began { index, worker, .. } => match plan.trials.get(index) {
                Some(trial) => started_event(plan, trial, Some(worker)),
                None => return,
            },
        };
        self.recorder.send_event(&event);
    }

    fn may_start_trial(&self) -> bool {
        let keeps_record = self.recorder.sinks.lost_record().is_none();
        let has_time = !self.out_of_time && !self.context.is_past_end();
        has_time
            && self.context.may_continue()
            && keeps_record
            && !(self.has_failed && self.context.fail_fast)
    }

    /// Starts a trial, unless its result exists already or is not needed.
    fn start_trial(&mut self, trials: &mut Scheduler<Option<TrialRecord>>, index: usize, permit: SlotPermit) {
        let context = Arc::clone(&self.context);
        let trial = &context.plan.trials[index];
        let known = context.reusable.trials.get(&trial.id);
        if let Some(ReusableTrial::FromThisRun(record)) = known {
            self.recorder.tally.add(record);
            return;
        }
        // If a probe failed, a stored trial shows as little as a new one would. If earlier trials decide the case,
        // this one is not needed. A retry is always run, because only its record can report what the failed run
        // cost.
        if !self.probes_passed || (!trials.is_retry(index) && self.is_no_longer_needed(index)) {
            return;
        }
        if let Some(ReusableTrial::FromOtherRun { record, folder }) = known
            && let Ok(record) = self.reuse_target(trial).copy_trial(record, folder)
        {
            self.has_failed |= record.verdict == Verdict::Fail;
            self.recorder.tally.add(&record);
            // Stored again for this run, so that later runs find its probes together with the trial.
            if let Some(cache) = context.reusable.cache.as_ref().filter(|_| !context.probes.trials.is_empty())
            {
                let _ = cache.store(context.run_dir.id(), &record);
            }
            self.recorder.send_event(&RunEvent::TrialFinished { record: Box::new(record) });
            return;
        }
        // A trial that cannot be copied is run like any other.
        if let Some(executor) = context.executor.clone() {
            let current_try = trials.current_try(index);
            trials.spawn(index, async move {
                let phase = RunPhase::Trials;
                let result = run_elsewhere(&context, &executor, phase, index, current_try, permit).await;
                result.map(|(record, _)| record)
            });
            return;
        }
        self.recorder.send_event(&started_event(&context.plan, trial, None));
        trials.spawn(index, async move { Some(run_trial(&context, index, permit).await) });
    }

    /// Says whether earlier trials have decided the case, so that this trial is not needed.
    fn is_no_longer_needed(&mut self, index: usize) -> bool {
        if !self.context.stop_early {
            return false;
        }
        let trial = &self.context.plan.trials[index];
        let (planned, case) = self.context.plan.suite_and_case(trial);
        self.recorder.tally.skip_if_decided(&planned.suite.name, &case.id, &trial.condition)
    }

    /// Counts a trial that has ended, unless it is run again. A trial that panicked becomes a failed record.
    fn finish_trial(
        &mut self,
        trials: &mut Scheduler<Option<TrialRecord>>,
        index: usize,
        ended: Result<TrialRecord, String>,
    ) {
        let context = Arc::clone(&self.context);
        let trial = &context.plan.trials[index];
        let record =
            ended.unwrap_or_else(|why| unfinished_record(&context.plan, trial, AgentEnding::Crashed, &why));
        let Some((record, retried)) = self.done_or_retry(trials, RunPhase::Trials, index, record) else {
            return;
        };
        if retried && let Err(error) = context.run_dir.write_record(&record, &context.scrubber) {
            self.recorder.send_event(&RunEvent::Notice { text: error.to_string() });
        }
        self.count_record(record);
    }

    /// Gives the record of a trial that is done, and whether it was retried. `None` if the trial is run again.
    pub(super) fn done_or_retry<R: Send + 'static>(
        &mut self,
        scheduler: &mut Scheduler<R>,
        phase: RunPhase,
        index: usize,
        record: TrialRecord,
    ) -> Option<(Box<TrialRecord>, bool)> {
        let context = Arc::clone(&self.context);
        let plan = context.plan_of(phase);
        let trial = &plan.trials[index];
        match scheduler.decide_trial_end(index, record, context.retry_policy(trial)) {
            TrialEndDecision::Done { record, retried } => Some((record, retried)),
            TrialEndDecision::LimitResetsTooLate { record, retried, wait } => {
                self.out_of_time = true;
                let text = format!(
                    "the limit of the account resets in {}, which is longer than this run may wait; no more trials \
                     start, practicum run --resume continues",
                    describe_wait(wait)
                );
                self.recorder.send_event(&RunEvent::Notice { text });
                Some((record, retried))
            }
            TrialEndDecision::Retry { wait, everyone, why } => {
                // A folder that cannot be set aside is overwritten.
                let _ = context.run_dir.set_aside_failed_try(&context.folder_of(phase, trial));
                self.recorder.send_event(&waiting_event(plan, trial, wait, everyone, &why));
                None
            }
        }
    }

    /// Counts a judgement on a skill's text.
    fn record_skill_judgement(&mut self, judged: SkillJudgement) {
        self.recorder.tally.add_skill_judgement(&judged);
        self.recorder.send_event(&RunEvent::SkillJudged { judged: Box::new(judged) });
    }

    fn count_record(&mut self, mut record: Box<TrialRecord>) {
        // Secrets in the output of scripts are removed here, because notes go into the summary and nothing scrubs
        // that later.
        record.ended_because = record.ended_because.map(|why| self.context.scrubber.scrub_text(&why));
        for note in &mut record.notes {
            *note = self.context.scrubber.scrub_text(note);
        }
        for note in record.failed_teardowns() {
            let text = format!("{} #{}: {note}", record.case, record.attempt);
            self.recorder.send_event(&RunEvent::Notice { text });
        }
        self.recorder.tally.add(&record);
        self.has_failed |= record.verdict == Verdict::Fail;
        if let Some(cache) = self.context.reusable.cache.as_ref().filter(|_| record.is_conclusive()) {
            // A cache that cannot be written only makes the next run slower.
            let _ = cache.store(self.context.run_dir.id(), &record);
        }
        self.recorder.send_event(&RunEvent::TrialFinished { record });
    }

    /// Ends the run and gives its summary.
    pub fn finish(mut self) -> Result<Summary, StoreError> {
        let context = Arc::clone(&self.context);
        let left = count_with_noun(self.trials_left, "trial");
        if let Some(why) = self.recorder.sinks.lost_record() {
            // Without a summary the run counts as interrupted, so it can be resumed.
            let why = format!("{why}; {left} not started, practicum run --resume continues");
            return Err(StoreError::at_path(context.run_dir.path())(std::io::Error::other(why)));
        }
        let completion = self.completion();
        if let (RunCompletion::OverBudget, Some(why)) = (completion, context.ledger.describe_used_up()) {
            let text = format!("the budget is used up: {why}; {left} not started");
            self.recorder.send_event(&RunEvent::Notice { text });
        }
        if completion == RunCompletion::OutOfTime && context.is_past_end() {
            let text = format!("the time of --until is over; {left} not started");
            self.recorder.send_event(&RunEvent::Notice { text });
        }
        if context.ledger.has_unknown_costs() {
            let text =
                "not everything that was spent has a known price; the limit in money holds only for the rest";
            self.recorder.send_event(&RunEvent::Notice { text: text.to_owned() });
        }
        let rules = CompletionRules {
            allow_unscored: context.allow_unscored,
            noise: context.noise.as_ref(),
            baseline: context.baseline.as_ref(),
        };
        self.recorder.finish(&context.plan, &context.run_dir, rules, completion)
    }

    fn completion(&self) -> RunCompletion {
        let ledger = &self.context.ledger;
        let broke =
            ledger.has_refused_requests() || (self.trials_left > 0 && ledger.describe_used_up().is_some());
        match self.context.stop.is_stopping() {
            true => RunCompletion::Interrupted,
            false if broke => RunCompletion::OverBudget,
            false if !self.probes_passed => RunCompletion::NotReady,
            false if self.trials_left > 0 && (self.out_of_time || self.context.is_past_end()) => {
                RunCompletion::OutOfTime
            }
            false => RunCompletion::Completed,
        }
    }

    fn reuse_target<'r>(&'r self, trial: &'r Trial) -> ReuseTarget<'r> {
        let RunContext { plan, run_dir, scrubber, reusable: prior, .. } = self.context.as_ref();
        ReuseTarget { plan, trial, key: prior.keys.get(&trial.id).cloned(), run_dir, scrubber }
    }
}
