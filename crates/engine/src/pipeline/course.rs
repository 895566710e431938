//! A run while it goes on: which trials are begun, which are at work, and what has come of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::task::{Id, JoinError, JoinSet};

use super::exam::Exam;
use super::queue::{Next, Queue};
use super::reuse::{Known, ReusedAs};
use super::seats::{Seat, Seats};
use super::{
    about_skills, gates, probing, sleep, started_event, take, tally_of, tell, unfinished, waiting_event,
};
use crate::store::StoreError;
use practicum_core::aggregate::{Outcome, Tally};
use practicum_core::event::{RunEvent, Sinks};
use practicum_core::model::{Ended, SkillJudged, Summary, Trial, TrialRecord, Verdict, counted};

pub struct Course {
    exam: Arc<Exam>,
    sinks: Sinks,
    tally: Tally,
    started: Instant,
    /// Whether the probes fired, so that what is to be measured can be.
    ready: bool,
    seats: Arc<Seats>,
    queue: Queue,
    running: JoinSet<TrialRecord>,
    in_flight: BTreeMap<Id, usize>,
    /// What judges are asked about the texts of skills.
    asking: JoinSet<SkillJudged>,
    /// Whether a trial has failed.
    failed: bool,
}

/// What a course has waited for.
pub enum Happened {
    TrialEnded(usize, Box<TrialRecord>),
    SkillJudged(Box<SkillJudged>),
    /// A place was left, or a trial's wait is over.
    MayBegin,
    /// Nothing is at work, and nothing will be.
    Over,
}

impl Course {
    /// Says that the run begins, and carries out its probes.
    pub async fn begin(exam: Exam, mut sinks: Sinks) -> Self {
        let (started, exam) = (Instant::now(), Arc::new(exam));
        let run = exam.run_dir.id().to_owned();
        let at = jiff::Timestamp::now().to_string();
        let trials = exam.plan.trials.len();
        tell(&mut sinks, &RunEvent::RunStarted { schema_version: 1, run, at, trials });
        if let Some(notice) = exam.sandbox.notice() {
            tell(&mut sinks, &RunEvent::Notice { text: notice.to_owned() });
        }
        let mut tally = tally_of(&exam.plan);
        let ready = probing::probe_all(&exam, &mut tally, &mut sinks).await;
        exam.prior.skills_judged.iter().for_each(|judged| tally.add_skill(judged));
        Self {
            asking: if ready { about_skills::ask(&exam) } else { JoinSet::new() },
            seats: Seats::new(exam.jobs, exam.judge_jobs),
            queue: Queue::new(trials),
            running: JoinSet::new(),
            in_flight: BTreeMap::new(),
            failed: false,
            exam,
            sinks,
            tally,
            started,
            ready,
        }
    }

    /// Begins as many trials as there are places for.
    pub fn fill_seats(&mut self) {
        while self.may_begin() {
            let Some(seat) = self.seats.take() else { break };
            let Some(index) = self.queue.take(Instant::now()) else { break };
            self.begin_trial(index, seat);
        }
    }

    fn may_begin(&self) -> bool {
        let keeps_record = self.sinks.lost_record().is_none();
        self.exam.goes_on() && keeps_record && !(self.failed && self.exam.fail_fast)
    }

    /// Begins a trial, unless its result is known already or not needed.
    fn begin_trial(&mut self, index: usize, seat: Seat) {
        let exam = Arc::clone(&self.exam);
        let known = exam.prior.known.get(&index);
        if let Some(Known::Kept(record)) = known {
            self.tally.add(record);
            return;
        }
        // Where a probe did not fire, a stored trial says as little as a new one would. Where those before it
        // decide its case, it is not needed.
        if !self.ready || self.is_decided(index) {
            return;
        }
        if let Some(Known::Reused { record, folder }) = known
            && let Ok(record) = self.reused_as(index).take(record, folder)
        {
            self.failed |= record.verdict == Verdict::Fail;
            self.tally.add(&record);
            // Later runs find the probes of this run with it.
            if let Some(cache) = exam.prior.cache.as_ref().filter(|_| !exam.probes.trials.is_empty()) {
                let _ = cache.keep(exam.run_dir.id(), &record);
            }
            self.tell(&RunEvent::TrialFinished { record: Box::new(record) });
            return;
        }
        // What cannot be taken over is run, as what is not known is.
        let event = started_event(&self.exam.plan, self.trial(index));
        self.tell(&event);
        let handle = self.running.spawn(async move { take(&exam, index, seat).await });
        self.in_flight.insert(handle.id(), index);
    }

    /// Whether a trial is not needed any more, because those before it decide its case. What was already
    /// begun has cost something, which only its record can tell.
    fn is_decided(&mut self, index: usize) -> bool {
        if !self.exam.stop_early || self.queue.was_tried(index) {
            return false;
        }
        let trial = &self.exam.plan.trials[index];
        let (planned, case) = self.exam.plan.case(trial);
        self.tally.leave_out_if_decided(&planned.suite.name, &case.id, &trial.condition)
    }

    /// Waits until a trial ends or a judge has answered, or a trial may begin.
    pub async fn wait(&mut self) -> Happened {
        let wakes_at = self.queue.wakes_at().filter(|_| self.seats.is_free() && self.may_begin());
        if self.running.is_empty() && self.asking.is_empty() && wakes_at.is_none() {
            return Happened::Over;
        }
        tokio::select! {
            Some(joined) = self.running.join_next_with_id() => self.ended(joined),
            // Of a question that panicked there is nothing to keep.
            Some(judged) = self.asking.join_next() => {
                judged.map_or(Happened::MayBegin, |judged| Happened::SkillJudged(Box::new(judged)))
            }
            () = sleep(wakes_at) => Happened::MayBegin,
            () = self.seats.freed() => Happened::MayBegin,
        }
    }

    /// One panicking trial must not end the run.
    fn ended(&mut self, joined: Result<(Id, TrialRecord), JoinError>) -> Happened {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some(index) = self.in_flight.remove(&id) else { return Happened::MayBegin };
        let record = joined.map_or_else(
            |error| unfinished(&self.exam.plan, self.trial(index), Ended::Crashed, &error.to_string()),
            |(_, record)| record,
        );
        Happened::TrialEnded(index, Box::new(record))
    }

    /// Counts a trial that has ended, unless it is to be tried again.
    pub fn settle(&mut self, index: usize, record: TrialRecord) {
        let exam = Arc::clone(&self.exam);
        let trial = &exam.plan.trials[index];
        match self.queue.settle(index, record, exam.retry_of(trial), Instant::now()) {
            Next::Done { record, retried } => {
                if retried && let Err(error) = exam.run_dir.write_record(&record, &exam.scrubber) {
                    self.tell(&RunEvent::Notice { text: error.to_string() });
                }
                self.count(record);
            }
            Next::Again { wait, everyone, why } => {
                // What cannot be set aside is written over.
                let _ = exam.run_dir.set_aside(&exam.run_dir.trial(&trial.id));
                self.tell(&waiting_event(&exam.plan, trial, wait, everyone, &why));
            }
        }
    }

    /// Counts what a judge said of a skill's text.
    pub fn note(&mut self, judged: Box<SkillJudged>) {
        self.tally.add_skill(&judged);
        self.tell(&RunEvent::SkillJudged { judged });
    }

    fn count(&mut self, mut record: Box<TrialRecord>) {
        // What scripts printed goes into the summary, which nobody cleans afterwards.
        record.ended_because = record.ended_because.map(|why| self.exam.scrubber.text(&why));
        for note in &mut record.notes {
            *note = self.exam.scrubber.text(note);
        }
        for note in record.failed_teardowns() {
            let text = format!("{} #{}: {note}", record.case, record.attempt);
            tell(&mut self.sinks, &RunEvent::Notice { text });
        }
        self.tally.add(&record);
        self.failed |= record.verdict == Verdict::Fail;
        if let Some(cache) = self.exam.prior.cache.as_ref().filter(|_| record.is_conclusive()) {
            // A cache that cannot be written to only costs the next run.
            let _ = cache.keep(self.exam.run_dir.id(), &record);
        }
        self.tell(&RunEvent::TrialFinished { record });
    }

    /// What has come of it all.
    pub fn conclude(mut self) -> Result<Summary, StoreError> {
        let exam = Arc::clone(&self.exam);
        if let Some(why) = self.sinks.lost_record() {
            // Without a summary the run counts as broken off, and can be gone on with.
            let left = counted(self.queue.left(), "trial");
            let why = format!("{why}; {left} not begun, practicum run --resume goes on");
            return Err(StoreError::at(exam.run_dir.path())(std::io::Error::other(why)));
        }
        self.tally.allow_unscored(exam.allow_unscored);
        if let Some(noise) = &exam.noise {
            self.tally.know(noise);
        }
        let outcome = self.outcome();
        if let (Outcome::OverBudget, Some(why)) = (outcome, exam.ledger.used_up()) {
            let left = counted(self.queue.left(), "trial");
            self.tell(&RunEvent::Notice { text: format!("the budget is used up: {why}; {left} not begun") });
        }
        if exam.ledger.is_blind() {
            let text =
                "not everything that was spent has a known price; the limit in money holds only for the rest";
            self.tell(&RunEvent::Notice { text: text.to_owned() });
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let summary = self.tally.summary(exam.run_dir.id(), &gates(&exam.plan), seconds, outcome);
        exam.run_dir.write_summary(&summary)?;
        tell(&mut self.sinks, &RunEvent::RunFinished { summary: Box::new(summary.clone()) });
        Ok(summary)
    }

    fn outcome(&self) -> Outcome {
        let ledger = &self.exam.ledger;
        let broke = ledger.cut() || (self.queue.left() > 0 && ledger.used_up().is_some());
        match self.exam.stop.is_stopping() {
            true => Outcome::Interrupted,
            false if broke => Outcome::OverBudget,
            false if !self.ready => Outcome::NotReady,
            false => Outcome::Completed,
        }
    }

    fn reused_as(&self, index: usize) -> ReusedAs<'_> {
        let Exam { plan, run_dir, scrubber, prior, .. } = self.exam.as_ref();
        let (trial, key) = (&plan.trials[index], prior.keys.get(index).cloned());
        ReusedAs { plan, trial, key, run_dir, scrubber }
    }

    fn trial(&self, index: usize) -> &Trial {
        &self.exam.plan.trials[index]
    }

    fn tell(&mut self, event: &RunEvent) {
        tell(&mut self.sinks, event);
    }
}
