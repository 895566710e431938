//! The one place that calls the stages in order.
//!
//! In: a `Plan` and what it needs to be carried out. Out: `Summary`, and everything on disk.
//! Never: knows a format, an agent or a check by name.

mod about_skills;
mod again;
mod course;
mod exam;
mod probing;
mod queue;
mod reuse;
mod room;
mod seats;
mod strangers;
#[cfg(test)]
mod testing;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use again::{Again, mark_again};
pub use exam::{Exam, Stand, Stop, SuiteMeans};
pub use queue::Retry;
pub use reuse::{Known, Prior};

use self::course::{Course, Happened};
use self::exam::Part;
use self::room::Prepared;
use self::seats::Seat;
use crate::marking::{Marked, expectation, prediction_wanted};
use crate::observe::observe;
use crate::plan::{Plan, Planned};
use crate::run::{Conversed, Held, adopt_orphans, sweep_orphans};
use crate::store::{StoreError, TurnFacts};
use practicum_core::aggregate::{FireRule, SuiteGate, Tally};
use practicum_core::event::{RunEvent, Sinks};
use practicum_core::model::{
    Case, Ended, Given, Observation, PassRule, Remarks, Rivals, SkillUse, Suite, Summary, Trial, TrialRecord,
    Usage, Verdict, Why,
};

/// Carries out a plan: every trial through every stage, as many agents at once as there are jobs.
pub async fn examine(exam: Exam, sinks: Sinks) -> Result<Summary, StoreError> {
    adopt_orphans();
    let mut course = Course::begin(exam, sinks).await;
    loop {
        course.fill_seats();
        match course.wait().await {
            Happened::TrialEnded(index, record) => course.settle(index, *record),
            Happened::SkillJudged(judged) => course.note(judged),
            Happened::MayBegin => {}
            Happened::Over => break,
        }
    }
    sweep_orphans();
    course.conclude()
}

/// One trial: stage, run, observe, mark, judge, keep.
async fn take(exam: &Arc<Exam>, index: usize, mut seat: Seat) -> TrialRecord {
    let trial = &exam.plan.trials[index];
    if let Some(record) = not_started(exam, trial) {
        return record;
    }
    let prepared = match room::prepare(exam, Part::Trials, trial).await {
        Ok(prepared) => prepared,
        Err(record) => return *record,
    };
    let Watched { seen, started, turns, mut notes, held } = watch(exam, &prepared).await;
    let given = prepared.workspace.given();
    let marked = prepared.mark(exam, &seen, &given, &mut seat).await;

    notes.extend(given.iter().filter_map(Given::complaint));
    let facts = prepared.facts(&seen, started, turns, given);
    let key = exam.prior.keys.get(index).cloned();
    let record = TrialRecord { key, ..recorded(&exam.plan, trial, &seen, marked, notes) };
    let record = prepared.keep(exam, record, seen, facts).await;
    drop(held);
    record
}

/// What was seen of an agent in its room.
struct Watched {
    seen: Observation,
    /// When the agent began.
    started: jiff::Timestamp,
    turns: Vec<TurnFacts>,
    notes: Vec<String>,
    /// Its part of the memory that all share, until its record is kept.
    held: Held,
}

/// Runs the agent, and observes.
async fn watch(exam: &Exam, prepared: &Prepared<'_>) -> Watched {
    let started = jiff::Timestamp::now();
    let Conversed { raw, mut notes, held } = prepared.run(exam).await;
    let turns =
        raw.turns.iter().map(|turn| TurnFacts { prompt: turn.prompt.clone(), bytes: turn.bytes }).collect();
    let mut seen = observe(raw, prepared.workspace.changes(), prepared.detect_questions());
    if seen.ended == Ended::Crashed
        && let Some(line) = prepared.last_line_of_stderr()
    {
        let why = seen.ended_because.take().unwrap_or_default();
        seen.ended_because = Some(format!("{why}: {line}"));
    }
    prepared.settle(exam, &mut seen);
    seen.hear(&prepared.workspace.canaries);
    let strangers = prepared.strangers(exam, &seen);
    notes.extend(strangers.note());
    seen.leaked = strangers.leaked;
    Watched { seen, started, turns, notes, held }
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
        predicted: marked.predicted,
        remarks: marked.remarks,
        shortened_evidence: marked.shortened,
        judging: marked.judging,
        judged_by: marked.judged_by,
        usage: seen.usage,
        cost_usd: seen.cost_usd,
        model: seen.model.clone(),
        seconds: seen.seconds,
        notes,
        ..unfinished(plan, trial, seen.ended, "")
    }
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
    tally.set_sample(plan.sample.clone());
    tally.set_skipped(plan.skipped.clone());
    for trial in &plan.trials {
        let (planned, case) = plan.case(trial);
        tally.plan_trial(&planned.suite.name, case, &trial.condition, fire_rate(planned, case));
    }
    for suite in asked(plan).filter(|suite| !suite.rivals.is_empty()) {
        let skills = suite.rivals.iter().map(|rival| rival.name.clone()).collect();
        tally.beside(Rivals { suite: suite.name.clone(), skills });
    }
    tally
}

/// Where the suites stand of which anything is to be run.
fn asked_at(plan: &Plan) -> BTreeSet<usize> {
    plan.trials.iter().map(|trial| trial.suite).collect()
}

/// Those suites.
fn asked(plan: &Plan) -> impl Iterator<Item = &Suite> {
    asked_at(plan).into_iter().map(|index| &plan.suites[index].suite)
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

/// The record of a trial that cannot begin here: something that it needs is missing, or the user does not
/// trust its scripts. `None` where it can.
fn not_started(exam: &Exam, trial: &Trial) -> Option<TrialRecord> {
    let (planned, case) = exam.plan.case(trial);
    if let Some(why) = planned.why_not_started(case) {
        let record = unfinished(&exam.plan, trial, Ended::NotStarted, &why);
        return Some(match case.checks.is_empty() {
            true => TrialRecord { verdict: Verdict::NotScored(Why::NoCheck), ..record },
            false => record,
        });
    }
    let needs_trust = !exam.trusted && case.scripts().next().is_some();
    needs_trust.then(|| TrialRecord {
        verdict: Verdict::NotScored(Why::NotTrusted),
        ended_because: None,
        ..unfinished(&exam.plan, trial, Ended::NotStarted, "")
    })
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
        predicted: prediction_wanted(case),
        shortened_evidence: None,
        judging: None,
        judged_by: None,
    }
}

fn tell(sinks: &mut Sinks, event: &RunEvent) {
    for (name, error) in sinks.tell(event) {
        let text = format!("{name} can no longer be told what happens: {error}");
        // Whoever is left should know; that they fail too is nothing anyone could hear of.
        let _ = sinks.tell(&RunEvent::Notice { text });
    }
}
