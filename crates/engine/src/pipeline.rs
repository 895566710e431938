//! Runs a plan: takes every trial through all stages in their order.
//!
//! In: a `RunContext` with the plan and all it needs. Out: a `Summary`, and everything on disk. Never: knows a
//! format, an agent or a check by name.

mod agent_slots;
mod execution;
mod executor;
mod last_line;
mod played_servers;
mod prepared_trial;
pub mod probes;
mod queue;
mod recorder;
mod regrade;
mod reuse;
mod run_context;
mod scheduler;
mod simulated_user;
mod skill_judging;
mod skill_listing;
mod skill_texts;
#[cfg(test)]
mod testing;
mod trial_runner;
mod unexpected_skills;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

pub use executor::{BoxedFuture, ExecutorEvent, TrialExecutor, TrialOutcome, TrialRequest};
pub use queue::RetryPolicy;
pub(crate) use recorder::{CompletionRules, RunRecorder};
pub use regrade::{Regrade, regrade_run};
pub(crate) use reuse::link_or_copy_files;
pub use reuse::{ReusableResults, ReusableTrial};
pub use run_context::{RunContext, StopSignal};
pub use trial_runner::{TrialOutput, TrialRunner};

use self::agent_slots::SlotPermit;
use self::execution::RunExecution;
use self::prepared_trial::PreparedTrial;
use self::run_context::RunPhase;
use crate::grade::grading::{TrialGrades, expected_activation, requested_prediction};
use crate::plan::{Plan, PlannedSuite};
use crate::store::{StoreError, TurnFacts};
use crate::workspace::mocks::unmocked_notes;
use crate::workspace::observe::observe;
use crate::workspace::run::{ConversationResult, MemoryPermit, adopt_orphans, kill_orphans};
use practicum_core::aggregate::{ActivationRateRule, RunTally, SuiteGate};
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{
    AgentEnding, Case, GivenFile, NotScoredReason, Observation, PassRule, Remarks, RivalSkills,
    SimulatedUser, SkillUse, Suite, Summary, TokenUsage, Trial, TrialRecord, UserRecord, Verdict,
};

/// Executes a plan: every trial goes through every stage, with as many agents at once as there are jobs.
pub(crate) async fn execute_run(context: RunContext, sinks: EventSinks) -> Result<Summary, StoreError> {
    adopt_orphans();
    let mut run = RunExecution::start(context, sinks);
    run.run_probes().await;
    run.run_trials().await;
    kill_orphans();
    run.close_executor().await;
    run.finish()
}

/// Executes one trial: stage, run, observe, grade, store.
async fn run_trial(context: &Arc<RunContext>, index: usize, mut slot: SlotPermit) -> TrialRecord {
    let trial = &context.plan.trials[index];
    if let Some(record) = unstarted_record(context, trial) {
        return record;
    }
    let prepared = match prepared_trial::prepare_trial(context, RunPhase::Trials, trial).await {
        Ok(prepared) => prepared,
        Err(record) => return *record,
    };
    let ObservedRun { observation: seen, started, turns, mut notes, user, memory_permit: held } =
        run_and_observe(context, &prepared).await;
    let given = prepared.workspace.given_files();
    let grades = prepared.grade(context, &seen, &given, &mut slot).await;

    notes.extend(given.iter().filter_map(GivenFile::describe_problem));
    let facts = prepared.facts(&seen, started, turns, given);
    let mock_model = prepared.mock_spending(context);
    let (key, repeats) =
        context.reusable.keys.get(&trial.id).map(|of| (of.key.clone(), of.repeats.clone())).unzip();
    let record = TrialRecord {
        key,
        repeats,
        user,
        mock_model,
        ..build_record(&context.plan, trial, &seen, grades, notes)
    };
    let record = prepared.store(context, record, seen, facts).await;
    drop(held);
    record
}

/// The observation of an agent's run in its workspace.
struct ObservedRun {
    observation: Observation,
    /// The time when the agent started.
    started: jiff::Timestamp,
    turns: Vec<TurnFacts>,
    notes: Vec<String>,
    /// The part of the simulated user, if the case has one.
    user: Option<UserRecord>,
    /// The trial's share of the memory limit. It is returned when the record is stored.
    memory_permit: MemoryPermit,
}

/// Runs the agent and observes it.
async fn run_and_observe(context: &RunContext, prepared: &PreparedTrial<'_>) -> ObservedRun {
    let started = jiff::Timestamp::now();
    let ConversationResult { raw, mut notes, user, memory_permit: held } = prepared.run_agent(context).await;
    let of_case =
        raw.turns.len() - user.as_ref().map_or(0, |user| user.replies as usize).min(raw.turns.len());
    let facts = raw.turns.iter().enumerate().map(|(at, turn)| TurnFacts {
        prompt: turn.prompt.clone(),
        bytes: turn.bytes,
        by_simulated_user: at >= of_case,
    });
    let turns = facts.collect();
    let mut seen = observe(raw, prepared.workspace.changes(), prepared.should_detect_questions());
    if seen.ended == AgentEnding::Crashed
        && let Some(line) = prepared.last_line_of_stderr()
    {
        let why = seen.ended_because.take().unwrap_or_default();
        seen.ended_because = Some(format!("{why}: {line}"));
    }
    if let Some(user) = &user {
        prepared.apply_user_ending(user, &mut seen);
    }
    prepared.apply_gateway_usage(context, &mut seen);
    seen.apply_text_findings(prepared.text_findings(&seen));
    seen.add_canary_evidence(&prepared.workspace.canaries);
    let unexpected = prepared.unexpected_skills(context, &seen);
    seen.mock_calls = prepared.mock_calls(context);
    notes.extend(prepared.write_recordings(context));
    notes.extend(unmocked_notes(seen.mock_calls.as_deref().unwrap_or_default()));
    notes.extend(unexpected.note());
    seen.leaked = unexpected.leaked;
    ObservedRun { observation: seen, started, turns, notes, user, memory_permit: held }
}

/// Builds the record of a trial from the results of all stages.
fn build_record(
    plan: &Plan,
    trial: &Trial,
    seen: &Observation,
    grades: TrialGrades,
    mut notes: Vec<String>,
) -> TrialRecord {
    notes.extend(grades.notes);
    TrialRecord {
        ended_because: seen.ended_because.clone(),
        limit_resets_at: seen.limit_resets_at,
        verdict: grades.verdict,
        score: TrialRecord::score_of(&grades.checks),
        checks: grades.checks,
        fired: grades.activated,
        skills: grades.skills,
        predicted: grades.predicted,
        remarks: grades.remarks,
        shortened_evidence: grades.shortened,
        judging: grades.judge_usage,
        judged_by: grades.judge_info,
        usage: seen.usage,
        cost_usd: seen.cost_usd,
        model: seen.model.clone(),
        seconds: seen.seconds,
        notes,
        ..unfinished_record(plan, trial, seen.ended, "")
    }
}

fn waiting_event(plan: &Plan, trial: &Trial, wait: Duration, everyone: bool, why: &str) -> RunEvent {
    let case = &plan.suite_and_case(trial).1.id;
    let who = if everyone { "all trials wait" } else { "it waits" };
    let text = format!("{case}: {why}; {who} {} and then it is tried again", describe_wait(wait));
    RunEvent::Notice { text }
}

/// Describes a wait: `0.3 s`, or `1 h 29 min` if it is long.
fn describe_wait(wait: Duration) -> String {
    let minutes = wait.as_secs().div_ceil(60);
    match minutes {
        0..=2 => format!("{:.1} s", wait.as_secs_f64()),
        3..=59 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Gives the activation rate that decides a case, if one does.
fn activation_rule(planned: &PlannedSuite, case: &Case) -> Option<ActivationRateRule> {
    let PassRule::ActivationRate(own) = case.pass_rule else { return None };
    let threshold = own.unwrap_or(planned.settings.trigger_threshold.value);
    expected_activation(case).map(|expect| ActivationRateRule { expect, threshold })
}

/// Makes the tally of a plan before any trial has run.
fn new_tally(plan: &Plan) -> RunTally {
    let mut tally = RunTally::default();
    tally.set_sample(plan.sample.clone());
    tally.set_skipped_files(plan.skipped.clone());
    for trial in &plan.trials {
        let (planned, case) = plan.suite_and_case(trial);
        tally.plan_trial(&planned.suite.name, case, &trial.condition, activation_rule(planned, case));
    }
    for suite in active_suites(plan).filter(|suite| !suite.rivals.is_empty()) {
        let skills = suite.rivals.iter().map(|rival| rival.name.clone()).collect();
        tally.add_rival_skills(RivalSkills { suite: suite.name.clone(), skills });
    }
    tally
}

/// Gives the indexes of the suites with at least one planned trial.
fn active_suite_indexes(plan: &Plan) -> BTreeSet<usize> {
    plan.trials.iter().map(|trial| trial.suite).collect()
}

/// Gives the suites with at least one planned trial.
fn active_suites(plan: &Plan) -> impl Iterator<Item = &Suite> {
    active_suite_indexes(plan).into_iter().map(|index| &plan.suites[index].suite)
}

/// Gives the gates of all suites with at least one planned trial.
fn suite_gates(plan: &Plan) -> Vec<SuiteGate> {
    active_suites(plan)
        .flat_map(|suite| suite.gates.iter().map(|gate| SuiteGate { suite: suite.name.clone(), gate: *gate }))
        .collect()
}

fn started_event(plan: &Plan, trial: &Trial, worker: Option<String>) -> RunEvent {
    let (planned, case) = plan.suite_and_case(trial);
    RunEvent::TrialStarted {
        trial: trial.id.clone(),
        suite: planned.suite.name.clone(),
        case: case.id.clone(),
        condition: trial.condition.clone(),
        attempt: trial.attempt,
        worker,
    }
}

/// Makes the record of a trial that cannot start here because something it needs is missing or the user does not
/// trust its scripts. `None` if the trial can start.
fn unstarted_record(context: &RunContext, trial: &Trial) -> Option<TrialRecord> {
    let (planned, case) = context.plan.suite_and_case(trial);
    if let Some(why) = planned.why_not_started(case, &trial.condition.agent) {
        let record = unfinished_record(&context.plan, trial, AgentEnding::NotStarted, &why);
        let reason = match (case.checks.is_empty(), &case.unsupported) {
            (true, _) => NotScoredReason::NoCheck,
            (false, Some(_)) => NotScoredReason::Unsupported,
            (false, None) => return Some(record),
        };
        return Some(TrialRecord { verdict: Verdict::NotScored(reason), ..record });
    }
    let needs_user = case.user.as_ref().is_some_and(SimulatedUser::needs_model);
    let roles = [(needs_user, "user"), (case.mocks.need_model(), "MCP server")];
    let played = roles.into_iter().find_map(|(is_played, role)| is_played.then_some(role));
    if let (Some(role), Err(why)) = (played, &context.suites[trial.suite].judge) {
        let why = format!("a model plays its {role}, and there is none: {why}");
        return Some(unfinished_record(&context.plan, trial, AgentEnding::NotStarted, &why));
    }
    if let (Some(server), None) = (case.mocks.unrecorded_server(), &context.mock_recorder) {
        let why =
            format!("the answers of {} are not recorded yet; run it once with --record-mocks", server.name);
        return Some(unfinished_record(&context.plan, trial, AgentEnding::NotStarted, &why));
    }
    let needs_trust = !context.allow_scripts && case.scripts().next().is_some();
    needs_trust.then(|| TrialRecord {
        verdict: Verdict::NotScored(NotScoredReason::NotTrusted),
        ended_because: None,
        ..unfinished_record(&context.plan, trial, AgentEnding::NotStarted, "")
    })
}

/// Makes the record of a trial that was never graded.
fn unfinished_record(plan: &Plan, trial: &Trial, ended: AgentEnding, why: &str) -> TrialRecord {
    let (planned, case) = plan.suite_and_case(trial);
    TrialRecord {
        trial: trial.id.clone(),
        key: None,
        reused_from: None,
        repeats: None,
        suite: planned.suite.name.clone(),
        case: case.id.clone(),
        condition: trial.condition.clone(),
        attempt: trial.attempt,
        ended,
        ended_because: Some(why.to_owned()),
        limit_resets_at: None,
        verdict: Verdict::NotScored(NotScoredReason::Ended(ended)),
        score: None,
        checks: Vec::new(),
        expect: expected_activation(case),
        fired: None,
        skills: SkillUse::default(),
        usage: TokenUsage::default(),
        cost_usd: Some(0.0),
        model: None,
        seconds: 0.0,
        notes: Vec::new(),
        remarks: Remarks::default(),
        predicted: requested_prediction(case),
        shortened_evidence: None,
        judging: None,
        judged_by: None,
        user: None,
        mock_model: None,
    }
}
