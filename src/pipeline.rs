//! The one place that calls the stages in order.
//!
//! In: a `Plan` and what it needs to be carried out. Out: `Summary`, and everything on disk.
//! Never: knows a format, an agent or a check by name.

mod again;
mod probing;
mod queue;
mod reuse;
mod room;
mod seats;
mod strangers;
#[cfg(test)]
mod testing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

pub use again::{Again, mark_again};
pub use queue::Retry;
pub use reuse::{Known, Prior};

use self::queue::{Next, Queue};
use self::room::Prepared;
use self::seats::{Seat, Seats};
use crate::agents::Agent;
use crate::aggregate::{FireRule, Outcome, SuiteGate, Tally};
use crate::event::{RunEvent, Sinks};
use crate::gateway::{Gateway, Ledger, Prices};
use crate::judge::Judge;
use crate::marking::{Marked, expectation};
use crate::model::{
    Case, Ended, Given, Noise, Observation, PassRule, Ratio, Remarks, Rivals, SkillUse, Suite, Summary,
    Trial, TrialRecord, Usage, Verdict, Why, counted,
};
use crate::observe::observe;
use crate::plan::{Plan, Planned};
use crate::run::{Cancel, Conversed, Held, Memory, adopt_orphans, sweep_orphans};
use crate::sandbox::Sandbox;
use crate::stage::Hidden;
use crate::store::{RunDir, Scrubber, StoreError, TurnFacts};
use crate::web::Web;

/// Everything a run needs.
pub struct Exam {
    pub plan: Plan,
    /// What is tried before anything is measured, of the same suites.
    pub probes: Plan,
    pub agents: BTreeMap<String, Agent>,
    /// One for each suite of the plan.
    pub suites: Vec<SuiteMeans>,
    pub user_env: BTreeMap<String, String>,
    pub hidden: Hidden,
    pub sandbox: Sandbox,
    /// Where rooms are made; gone at the end.
    pub rooms: PathBuf,
    pub keep_workspaces: bool,
    /// Whether setup and teardown scripts may run.
    pub trusted: bool,
    /// The network, where checks may ask it.
    pub web: Option<Web>,
    /// How many agents are at work at once.
    pub jobs: usize,
    /// How many judges are asked at once.
    pub judge_jobs: usize,
    /// What long transcripts share.
    pub memory: Memory,
    pub run_dir: RunDir,
    pub scrubber: Scrubber,
    /// What the run may spend.
    pub ledger: Arc<Ledger>,
    pub stop: Stop,
    /// What need not run.
    pub prior: Prior,
    /// Variables of the user's that agents get by name.
    pub pass_env: Vec<String>,
    pub fail_fast: bool,
    /// How what the outside world broke is tried again.
    pub retry: Retry,
    /// The share of trials that may stay unscored.
    pub allow_unscored: Ratio,
    /// What is known of the cases when nothing is changed.
    pub noise: Option<Noise>,
    /// Whether a case is run no more once its runs tell enough.
    pub stop_early: bool,
}

/// The two parts of an exam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Probes,
    Trials,
}

impl Exam {
    fn plan_of(&self, part: Part) -> &Plan {
        match part {
            Part::Probes => &self.probes,
            Part::Trials => &self.plan,
        }
    }
}

/// What one suite is run and judged with.
pub struct SuiteMeans {
    /// Stands in for the model, or between us and it.
    pub gateway: Option<(Arc<Gateway>, Stand)>,
    /// Why nobody judges, if nobody does.
    pub judge: Result<Arc<Judge>, String>,
}

impl SuiteMeans {
    /// Who speaks where a gateway has something to tell.
    pub fn stand_name(&self) -> &'static str {
        match self.gateway {
            Some((_, Stand::Script)) => "script",
            Some((_, Stand::Replay)) => "replay",
            Some((_, Stand::Record | Stand::Meter)) | None => "gateway",
        }
    }

    /// What a judge's answers cost: those of a script nothing.
    pub fn prices<'p>(&self, prices: &'p Prices) -> Option<&'p Prices> {
        Some(prices).filter(|_| !matches!(self.gateway, Some((_, Stand::Script))))
    }
}

/// What a gateway does for a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    Script,
    Replay,
    Record,
    Meter,
}

impl Stand {
    /// Whether tokens and money at the gateway are those of a model, now or when it was recorded.
    fn is_real(self) -> bool {
        match self {
            Stand::Script => false,
            Stand::Replay | Stand::Record | Stand::Meter => true,
        }
    }

    /// Whether an agent that cannot be pointed at a gateway may go its own way.
    fn is_optional(self) -> bool {
        match self {
            Stand::Script | Stand::Replay | Stand::Record => false,
            Stand::Meter => true,
        }
    }
}

/// How a run is ended early: no new trials, or none at all.
#[derive(Clone, Default)]
pub struct Stop {
    no_more: Arc<AtomicBool>,
    pub now: Cancel,
}

impl Stop {
    pub fn after_running(&self) {
        self.no_more.store(true, Ordering::Relaxed);
    }

    pub fn now(&self) {
        self.after_running();
        self.now.cancel();
    }

    pub fn is_stopping(&self) -> bool {
        self.no_more.load(Ordering::Relaxed)
    }
}

/// Carries out a plan: every trial through every stage, as many agents at once as there are jobs.
pub async fn examine(exam: Exam, mut sinks: Sinks) -> Result<Summary, StoreError> {
    adopt_orphans();
    let started = Instant::now();
    let exam = Arc::new(exam);
    tell(
        &mut sinks,
        &RunEvent::RunStarted {
            schema_version: 1,
            run: exam.run_dir.id().to_owned(),
            at: jiff::Timestamp::now().to_string(),
            trials: exam.plan.trials.len(),
        },
    );
    if let Some(notice) = exam.sandbox.notice() {
        tell(&mut sinks, &RunEvent::Notice { text: notice.to_owned() });
    }
    let mut tally = tally_of(&exam.plan);
    let ready = probing::probe_all(&exam, &mut tally, &mut sinks).await;
    let seats = Seats::new(exam.jobs, exam.judge_jobs);
    let mut running: JoinSet<TrialRecord> = JoinSet::new();
    let mut failed = false;
    let mut in_flight: BTreeMap<tokio::task::Id, usize> = BTreeMap::new();
    let mut queue = Queue::new(exam.plan.trials.len());
    loop {
        while may_begin(&exam, failed) && sinks.lost_record().is_none() {
            let Some(seat) = seats.take() else { break };
            let Some(index) = queue.take(Instant::now()) else { break };
            let trial = &exam.plan.trials[index];
            // What cannot be taken over is run.
            if let Some(Ok((record, new))) = taken_over(&exam, index) {
                tally.add(&record);
                if new {
                    tell(&mut sinks, &RunEvent::TrialFinished { record: Box::new(record) });
                }
                continue;
            }
            if !ready {
                continue;
            }
            // What was already begun has cost something, which only its record can tell.
            if exam.stop_early && !queue.was_tried(index) && is_decided(&exam, trial, &mut tally) {
                continue;
            }
            tell(&mut sinks, &started_event(&exam.plan, trial));
            let exam = Arc::clone(&exam);
            let handle = running.spawn(async move { take(&exam, index, seat).await });
            in_flight.insert(handle.id(), index);
        }
        let wakes_at = queue
            .wakes_at()
            .filter(|_| seats.is_free() && may_begin(&exam, failed) && sinks.lost_record().is_none());
        if running.is_empty() && wakes_at.is_none() {
            break;
        }
        let joined = tokio::select! {
            Some(joined) = running.join_next_with_id() => joined,
            () = sleep(wakes_at) => continue,
            () = seats.freed() => continue,
        };
        let (index, record) = match joined {
            Ok((id, record)) => match in_flight.remove(&id) {
                Some(index) => (index, record),
                None => continue,
            },
            // One panicking trial must not end the run.
            Err(error) => match in_flight.remove(&error.id()) {
                Some(index) => {
                    let trial = &exam.plan.trials[index];
                    (index, unfinished(&exam.plan, trial, Ended::Crashed, &error.to_string()))
                }
                None => continue,
            },
        };
        let retry = retry_of(&exam, &exam.plan.trials[index]);
        let record = match queue.settle(index, record, retry, Instant::now()) {
            Next::Done { record, retried } => {
                if retried && let Err(error) = exam.run_dir.write_record(&record, &exam.scrubber) {
                    tell(&mut sinks, &RunEvent::Notice { text: error.to_string() });
                }
                *record
            }
            Next::Again { wait, everyone, why } => {
                // What cannot be set aside is written over.
                let trial = &exam.plan.trials[index];
                let _ = exam.run_dir.set_aside(&exam.run_dir.trial(&trial.id));
                tell(&mut sinks, &waiting_event(&exam.plan, trial, wait, everyone, &why));
                continue;
            }
        };
        tally.add(&record);
        failed |= record.verdict == Verdict::Fail;
        if let Some(cache) = exam.prior.cache.as_ref().filter(|_| record.is_conclusive()) {
            // A cache that cannot be written to only costs the next run.
            let _ = cache.keep(exam.run_dir.id(), &record);
        }
        tell(&mut sinks, &RunEvent::TrialFinished { record: Box::new(record) });
    }
    sweep_orphans();
    tally.allow_unscored(exam.allow_unscored);
    if let Some(noise) = &exam.noise {
        tally.know(noise);
    }
    let left = queue.left();
    if let Some(why) = sinks.lost_record() {
        // Without a summary the run counts as broken off, and can be gone on with.
        let why = format!("{why}; {} not begun, practicum run --resume goes on", counted(left, "trial"));
        return Err(StoreError::at(exam.run_dir.path())(std::io::Error::other(why)));
    }
    let broke = exam.ledger.cut() || (left > 0 && exam.ledger.used_up().is_some());
    let outcome = match exam.stop.is_stopping() {
        true => Outcome::Interrupted,
        false if broke => Outcome::OverBudget,
        false if !ready => Outcome::NotReady,
        false => Outcome::Completed,
    };
    if let (Outcome::OverBudget, Some(why)) = (outcome, exam.ledger.used_up()) {
        let text = format!("the budget is used up: {why}; {} not begun", counted(left, "trial"));
        tell(&mut sinks, &RunEvent::Notice { text });
    }
    if exam.ledger.is_blind() {
        let text =
            "not everything that was spent has a known price; the limit in money holds only for the rest";
        tell(&mut sinks, &RunEvent::Notice { text: text.to_owned() });
    }
    let summary =
        tally.summary(exam.run_dir.id(), &gates(&exam.plan), started.elapsed().as_secs_f64(), outcome);
    exam.run_dir.write_summary(&summary)?;
    tell(&mut sinks, &RunEvent::RunFinished { summary: Box::new(summary.clone()) });
    Ok(summary)
}

/// Whether a trial is not needed any more, because those before it decide its case.
fn is_decided(exam: &Exam, trial: &Trial, tally: &mut Tally) -> bool {
    let (planned, case) = exam.plan.case(trial);
    tally.leave_out_if_decided(&planned.suite.name, &case.id, &trial.condition)
}

/// A trial that need not run, and whether it is new to this run's record.
fn taken_over(exam: &Exam, index: usize) -> Option<std::io::Result<(TrialRecord, bool)>> {
    match exam.prior.known.get(&index)? {
        Known::Kept(record) => Some(Ok(((**record).clone(), false))),
        Known::Reused { record, folder } => {
            let trial = exam.plan.trials[index].id.clone();
            let record = TrialRecord { trial, ..(**record).clone() };
            Some(reuse::reuse(&record, folder, &exam.run_dir).map(|record| (record, true)))
        }
    }
}

fn may_begin(exam: &Exam, failed: bool) -> bool {
    let ending = exam.stop.is_stopping() || (failed && exam.fail_fast);
    !ending && exam.ledger.used_up().is_none()
}

/// One trial: stage, run, observe, mark, judge, keep.
async fn take(exam: &Arc<Exam>, index: usize, mut seat: Seat) -> TrialRecord {
    let trial = &exam.plan.trials[index];
    let prepared = match room::prepare(exam, Part::Trials, trial).await {
        Ok(prepared) => prepared,
        Err(record) => return *record,
    };
    let Watched { seen, turns, mut notes, held } = watch(exam, &prepared).await;
    let given = prepared.workspace.given();
    if prepared.needs_judge(exam, &seen) {
        seat.wait_for_judge();
    }
    let marked = prepared.mark(exam, &seen, &given).await;

    notes.extend(given.iter().filter_map(Given::complaint));
    let facts = prepared.facts(&seen, turns, given);
    let key = exam.prior.keys.get(index).cloned();
    let record = TrialRecord { key, ..recorded(&exam.plan, trial, &seen, marked, notes) };
    let record = prepared.keep(exam, record, seen, facts).await;
    drop(held);
    record
}

/// What was seen of an agent in its room.
struct Watched {
    seen: Observation,
    turns: Vec<TurnFacts>,
    notes: Vec<String>,
    /// Its part of the memory that all share, until its record is kept.
    held: Held,
}

/// Runs the agent, clears up after it, and observes.
async fn watch(exam: &Exam, prepared: &Prepared<'_>) -> Watched {
    let Conversed { raw, mut notes, held } = prepared.run(exam).await;
    let turns =
        raw.turns.iter().map(|turn| TurnFacts { prompt: turn.prompt.clone(), bytes: turn.bytes }).collect();
    notes.extend(prepared.tear_down(exam).await);
    let mut seen = observe(raw, prepared.workspace.changes(), prepared.detect_questions());
    prepared.settle(exam, &mut seen);
    seen.hear(&prepared.workspace.canaries);
    let strangers = prepared.strangers(exam, &seen);
    notes.extend(strangers.note());
    seen.leaked = strangers.leaked;
    Watched { seen, turns, notes, held }
}

/// Puts together what the stages found.
fn recorded(
    plan: &Plan,
    trial: &Trial,
    seen: &Observation,
    marked: Marked,
    mut notes: Vec<String>,
) -> TrialRecord {
    notes.extend(marked.notes);
    TrialRecord {
        ended_because: seen.ended_because.clone(),
        verdict: marked.verdict,
        checks: marked.checks,
        fired: marked.fired,
        skills: marked.skills,
        remarks: marked.remarks,
        judging: marked.judging,
        usage: seen.usage,
        cost_usd: seen.cost_usd,
        model: seen.model.clone(),
        seconds: seen.seconds,
        notes,
        ..unfinished(plan, trial, seen.ended, "")
    }
}

/// Where answers are scripted, the same question gets the same one, and trying again is in vain.
fn retry_of(exam: &Exam, trial: &Trial) -> Option<Retry> {
    let stand = exam.suites[trial.suite].gateway.as_ref().map(|(_, stand)| *stand);
    let in_vain = matches!(stand, Some(Stand::Script | Stand::Replay)) || exam.stop.is_stopping();
    (!in_vain).then_some(exam.retry)
}

/// Until then, or for good; but never so long that nobody hears that the run is to stop.
async fn sleep(until: Option<Instant>) {
    const SHORT: Duration = Duration::from_millis(100);
    match until {
        Some(until) => tokio::time::sleep_until(until.min(Instant::now() + SHORT).into()).await,
        None => std::future::pending().await,
    }
}

fn waiting_event(plan: &Plan, trial: &Trial, wait: Duration, everyone: bool, why: &str) -> RunEvent {
    let case = &plan.case(trial).1.id;
    let who = if everyone { "all trials wait" } else { "it waits" };
    let text = format!("{case}: {why}; {who} {:.1} s and then it is tried again", wait.as_secs_f64());
    RunEvent::Notice { text }
}

/// The rate that decides a case, if one does.
fn fire_rate(planned: &Planned, case: &Case) -> Option<FireRule> {
    let PassRule::FireRate(own) = case.pass_when else { return None };
    let threshold = own.unwrap_or(planned.settings.trigger_threshold.value);
    expectation(case).map(|expect| FireRule { expect, threshold })
}

/// The tally of a plan before anything is done.
fn tally_of(plan: &Plan) -> Tally {
    let mut tally = Tally::default();
    for trial in &plan.trials {
        let (planned, case) = plan.case(trial);
        tally.expect(&planned.suite.name, &case.id, &trial.condition, fire_rate(planned, case));
    }
    for suite in asked(plan).filter(|suite| !suite.rivals.is_empty()) {
        let skills = suite.rivals.iter().map(|rival| rival.name.clone()).collect();
        tally.beside(Rivals { suite: suite.name.clone(), skills });
    }
    tally
}

/// The suites of which anything is to be run.
fn asked(plan: &Plan) -> impl Iterator<Item = &Suite> {
    let asked: BTreeSet<usize> = plan.trials.iter().map(|trial| trial.suite).collect();
    asked.into_iter().map(|index| &plan.suites[index].suite)
}

/// Their gates.
fn gates(plan: &Plan) -> Vec<SuiteGate> {
    asked(plan)
        .flat_map(|suite| suite.gates.iter().map(|gate| SuiteGate { suite: suite.name.clone(), gate: *gate }))
        .collect()
}

fn started_event(plan: &Plan, trial: &Trial) -> RunEvent {
    let (planned, case) = plan.case(trial);
    RunEvent::TrialStarted {
        trial: trial.id.clone(),
        suite: planned.suite.name.clone(),
        case: case.id.clone(),
        condition: trial.condition.clone(),
        attempt: trial.attempt,
    }
}

/// The record of a trial that never got to be marked.
fn unfinished(plan: &Plan, trial: &Trial, ended: Ended, why: &str) -> TrialRecord {
    let (planned, case) = plan.case(trial);
    TrialRecord {
        trial: trial.id.clone(),
        key: None,
        reused_from: None,
        suite: planned.suite.name.clone(),
        case: case.id.clone(),
        condition: trial.condition.clone(),
        attempt: trial.attempt,
        ended,
        ended_because: Some(why.to_owned()),
        verdict: Verdict::NotScored(Why::Ended(ended)),
        checks: Vec::new(),
        expect: expectation(case),
        fired: None,
        skills: SkillUse::default(),
        usage: Usage::default(),
        cost_usd: Some(0.0),
        model: None,
        seconds: 0.0,
        notes: Vec::new(),
        remarks: Remarks::default(),
        judging: None,
    }
}

fn tell(sinks: &mut Sinks, event: &RunEvent) {
    for (name, error) in sinks.tell(event) {
        let text = format!("{name} can no longer be told what happens: {error}");
        // Whoever is left should know; that they fail too is nothing anyone could hear of.
        let _ = sinks.tell(&RunEvent::Notice { text });
    }
}
