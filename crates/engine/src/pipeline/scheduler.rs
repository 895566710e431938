//! Schedules the trials of a run: which start, which are running, and the results of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::{Id, JoinError, JoinSet};

use super::agent_slots::{AgentSlots, SlotPermit};
use super::queue::{TrialEndDecision, TrialQueue};
use super::reuse::{ReusableTrial, ReuseTarget};
use super::run_context::RunContext;
use super::{
    new_tally, probing, run_trial, send_event, skill_judging, sleep_until, started_event, suite_gates,
    unfinished_record, waiting_event,
};
use crate::store::StoreError;
use practicum_core::aggregate::{RunCompletion, RunTally};
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{
    AgentEnding, SkillJudgement, Summary, Trial, TrialRecord, Verdict, count_with_noun,
};

/// The state of a run in progress.
pub struct Scheduler {
    context: Arc<RunContext>,
    sinks: EventSinks,
    tally: RunTally,
    started: Instant,
    /// Whether the probes activated their skills, so that trials can measure activation.
    probes_passed: bool,
    slots: Arc<AgentSlots>,
    queue: TrialQueue,
    running: JoinSet<TrialRecord>,
    in_flight: BTreeMap<Id, usize>,
    /// The running questions to judges about the texts of skills.
    skill_judgements: JoinSet<SkillJudgement>,
    /// Whether a trial has failed.
    has_failed: bool,
}

/// An event that the scheduler waits for.
pub enum SchedulerEvent {
    TrialEnded(usize, Box<TrialRecord>),
    SkillJudged(Box<SkillJudgement>),
    /// A slot became free, or a trial's wait is over.
    TrialMayStart,
    /// Nothing is running, and nothing is left to start.
    AllDone,
}

impl Scheduler {
    /// Reports the start of the run, and runs its probes.
    pub async fn start(exam: RunContext, mut sinks: EventSinks) -> Self {
        let (started, exam) = (Instant::now(), Arc::new(exam));
        let run = exam.run_dir.id().to_owned();
        let at = jiff::Timestamp::now().to_string();
        let trials = exam.plan.trials.len();
        send_event(&mut sinks, &RunEvent::RunStarted { schema_version: 1, run, at, trials });
        if let Some(notice) = exam.sandbox.notice() {
            send_event(&mut sinks, &RunEvent::Notice { text: notice.to_owned() });
        }
        let mut tally = new_tally(&exam.plan);
        let ready = probing::probe_all(&exam, &mut tally, &mut sinks).await;
        exam.reusable.skills_judged.iter().for_each(|judged| tally.add_skill_judgement(judged));
        Self {
            skill_judgements: if ready { skill_judging::start_judging_skills(&exam) } else { JoinSet::new() },
            slots: AgentSlots::new(exam.jobs, exam.judge_jobs),
            queue: TrialQueue::new(trials),
            running: JoinSet::new(),
            in_flight: BTreeMap::new(),
            has_failed: false,
            context: exam,
            sinks,
            tally,
            started,
            probes_passed: ready,
        }
    }

    /// Starts as many trials as there are free slots.
    pub fn start_next_trials(&mut self) {
        while self.may_start_trial() {
            let Some(seat) = self.slots.try_acquire() else { break };
            let Some(index) = self.queue.take_ready(Instant::now()) else { break };
            self.start_trial(index, seat);
        }
    }

    fn may_start_trial(&self) -> bool {
        let keeps_record = self.sinks.lost_record().is_none();
        self.context.may_continue() && keeps_record && !(self.has_failed && self.context.fail_fast)
    }

    /// Starts a trial, unless its result exists already or is not needed.
    fn start_trial(&mut self, index: usize, seat: SlotPermit) {
        let exam = Arc::clone(&self.context);
        let known = exam.reusable.trials.get(&index);
        if let Some(ReusableTrial::FromThisRun(record)) = known {
            self.tally.add(record);
            return;
        }
        // If a probe failed, a stored trial shows as little as a new one would. If earlier trials decide the case,
        // this one is not needed.
        if !self.probes_passed || self.is_no_longer_needed(index) {
            return;
        }
        if let Some(ReusableTrial::FromOtherRun { record, folder }) = known
            && let Ok(record) = self.reuse_target(index).copy_trial(record, folder)
        {
            self.has_failed |= record.verdict == Verdict::Fail;
            self.tally.add(&record);
            // Stored again for this run, so that later runs find its probes together with the trial.
            if let Some(cache) = exam.reusable.cache.as_ref().filter(|_| !exam.probes.trials.is_empty()) {
                let _ = cache.store(exam.run_dir.id(), &record);
            }
            self.send_event(&RunEvent::TrialFinished { record: Box::new(record) });
            return;
        }
        // A trial that cannot be copied is run like any other.
        let event = started_event(&self.context.plan, self.trial(index));
        self.send_event(&event);
        let handle = self.running.spawn(async move { run_trial(&exam, index, seat).await });
        self.in_flight.insert(handle.id(), index);
    }

    /// Says whether earlier trials have decided the case, so that this trial is not needed. A retry is always run,
    /// because only its record can report what the failed run cost.
    fn is_no_longer_needed(&mut self, index: usize) -> bool {
        if !self.context.stop_early || self.queue.is_retry(index) {
            return false;
        }
        let trial = &self.context.plan.trials[index];
        let (planned, case) = self.context.plan.suite_and_case(trial);
        self.tally.skip_if_decided(&planned.suite.name, &case.id, &trial.condition)
    }

    /// Waits until a trial ends, a judge has answered, or a trial may start.
    pub async fn wait_for_event(&mut self) -> SchedulerEvent {
        let wakes_at =
            self.queue.next_wakeup().filter(|_| self.slots.has_free_slot() && self.may_start_trial());
        if self.running.is_empty() && self.skill_judgements.is_empty() && wakes_at.is_none() {
            return SchedulerEvent::AllDone;
        }
        tokio::select! {
            Some(joined) = self.running.join_next_with_id() => self.trial_ended_event(joined),
            // A question that panicked has no result.
            Some(judged) = self.skill_judgements.join_next() => {
                judged.map_or(SchedulerEvent::TrialMayStart, |judged| SchedulerEvent::SkillJudged(Box::new(judged)))
            }
            () = sleep_until(wakes_at) => SchedulerEvent::TrialMayStart,
            () = self.slots.wait_for_free_slot() => SchedulerEvent::TrialMayStart,
        }
    }

    /// Makes an event of an ended trial. A trial that panicked becomes a failed record, so that it does not end
    /// the run.
    fn trial_ended_event(&mut self, joined: Result<(Id, TrialRecord), JoinError>) -> SchedulerEvent {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(index) = self.in_flight.remove(&id) else { return SchedulerEvent::TrialMayStart };
        let record = joined.map_or_else(
            |error| {
                unfinished_record(
                    &self.context.plan,
                    self.trial(index),
                    AgentEnding::Crashed,
                    &error.to_string(),
                )
            },
            |(_, record)| record,
        );
        SchedulerEvent::TrialEnded(index, Box::new(record))
    }

    /// Counts a trial that has ended, unless it is run again.
    pub fn finish_trial(&mut self, index: usize, record: TrialRecord) {
        let exam = Arc::clone(&self.context);
        let trial = &exam.plan.trials[index];
        match self.queue.decide_trial_end(index, record, exam.retry_policy(trial), Instant::now()) {
            TrialEndDecision::Done { record, retried } => {
                if retried && let Err(error) = exam.run_dir.write_record(&record, &exam.scrubber) {
                    self.send_event(&RunEvent::Notice { text: error.to_string() });
                }
                self.count_record(record);
            }
            TrialEndDecision::Retry { wait, everyone, why } => {
                // A folder that cannot be set aside is overwritten.
                let _ = exam.run_dir.set_aside_failed_try(&exam.run_dir.trial_folder(&trial.id));
                self.send_event(&waiting_event(&exam.plan, trial, wait, everyone, &why));
            }
        }
    }

    /// Counts a judgement on a skill's text.
    pub fn record_skill_judgement(&mut self, judged: Box<SkillJudgement>) {
        self.tally.add_skill_judgement(&judged);
        self.send_event(&RunEvent::SkillJudged { judged });
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
            send_event(&mut self.sinks, &RunEvent::Notice { text });
        }
        self.tally.add(&record);
        self.has_failed |= record.verdict == Verdict::Fail;
        if let Some(cache) = self.context.reusable.cache.as_ref().filter(|_| record.is_conclusive()) {
            // A cache that cannot be written only makes the next run slower.
            let _ = cache.store(self.context.run_dir.id(), &record);
        }
        self.send_event(&RunEvent::TrialFinished { record });
    }

    /// Ends the run and gives its summary.
    pub fn finish_run(mut self) -> Result<Summary, StoreError> {
        let exam = Arc::clone(&self.context);
        if let Some(why) = self.sinks.lost_record() {
            // Without a summary the run counts as interrupted, so it can be resumed.
            let left = count_with_noun(self.queue.remaining(), "trial");
            let why = format!("{why}; {left} not begun, practicum run --resume goes on");
            return Err(StoreError::at_path(exam.run_dir.path())(std::io::Error::other(why)));
        }
        self.tally.allow_unscored(exam.allow_unscored);
        if let Some(noise) = &exam.noise {
            self.tally.set_known_noise(noise);
        }
        let outcome = self.completion();
        if let (RunCompletion::OverBudget, Some(why)) = (outcome, exam.ledger.describe_used_up()) {
            let left = count_with_noun(self.queue.remaining(), "trial");
            self.send_event(&RunEvent::Notice {
                text: format!("the budget is used up: {why}; {left} not begun"),
            });
        }
        if exam.ledger.has_unknown_costs() {
            let text =
                "not everything that was spent has a known price; the limit in money holds only for the rest";
            self.send_event(&RunEvent::Notice { text: text.to_owned() });
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let summary = self.tally.summary(exam.run_dir.id(), &suite_gates(&exam.plan), seconds, outcome);
        exam.run_dir.write_summary(&summary)?;
        send_event(&mut self.sinks, &RunEvent::RunFinished { summary: Box::new(summary.clone()) });
        Ok(summary)
    }

    fn completion(&self) -> RunCompletion {
        let ledger = &self.context.ledger;
        let broke = ledger.has_refused_requests()
            || (self.queue.remaining() > 0 && ledger.describe_used_up().is_some());
        match self.context.stop.is_stopping() {
            true => RunCompletion::Interrupted,
            false if broke => RunCompletion::OverBudget,
            false if !self.probes_passed => RunCompletion::NotReady,
            false => RunCompletion::Completed,
        }
    }

    fn reuse_target(&self, index: usize) -> ReuseTarget<'_> {
        let RunContext { plan, run_dir, scrubber, reusable: prior, .. } = self.context.as_ref();
        let (trial, key) = (&plan.trials[index], prior.keys.get(index).cloned());
        ReuseTarget { plan, trial, key, run_dir, scrubber }
    }

    fn trial(&self, index: usize) -> &Trial {
        &self.context.plan.trials[index]
    }

    fn send_event(&mut self, event: &RunEvent) {
        send_event(&mut self.sinks, event);
    }
}
