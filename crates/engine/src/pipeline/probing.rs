//! Runs the probes before any trial: each agent is told once to use each skill.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::mpsc::{self, UnboundedSender};

use super::prepared_trial::{self, PreparedTrial};
use super::queue::{TrialEndDecision, TrialQueue};
use super::run_context::{RunContext, RunPhase};
use super::{ObservedRun, build_record, run_and_observe, send_event, sleep_until, waiting_event};
use crate::probe_diagnosis::{ProbedSkill, diagnose_activation};
use practicum_core::aggregate::RunTally;
use practicum_core::event::{EventSinks, RunEvent};
use practicum_core::model::{NotScoredReason, Observation, ProbeFailure, ProbeRecord, Trial, TrialRecord};
use practicum_skills::skill::Skill;

/// Runs all probes, as many at once as there are jobs. Says whether the trials can be run: if a skill is not
/// activated even on request, its activation in a trial means nothing.
pub async fn probe_all(exam: &Arc<RunContext>, tally: &mut RunTally, sinks: &mut EventSinks) -> bool {
    let (say, mut said) = mpsc::unbounded_channel();
    let mut probing = stream::iter(&exam.probes.trials)
        .take_while(|_| std::future::ready(exam.may_continue()))
        .map(|trial| run_probe_with_retries(exam, trial, &say))
        .buffered(exam.jobs);
    let mut fired = 0;
    exam.reusable.probes.iter().for_each(|probe| tally.add_probe(probe));
    loop {
        let probe = tokio::select! {
            Some(event) = said.recv() => {
                send_event(sinks, &event);
                continue;
            }
            done = probing.next() => match done {
                Some(done) => done,
                None => break,
            },
        };
        tally.add_probe(&probe);
        fired += usize::from(probe.fired);
        send_event(sinks, &RunEvent::ProbeFinished { probe: Box::new(probe) });
    }
    fired == exam.probes.trials.len()
}

/// Runs one probe, with retries like those of a trial that failed for an outside reason.
async fn run_probe_with_retries(
    exam: &Arc<RunContext>,
    trial: &Trial,
    say: &UnboundedSender<RunEvent>,
) -> ProbeRecord {
    let mut queue = TrialQueue::new(1);
    loop {
        let (record, trouble) = run_probe(exam, trial).await;
        match queue.decide_trial_end(0, record, exam.retry_policy(trial), Instant::now()) {
            TrialEndDecision::Done { record, .. } => {
                let skill = exam.probes.probed_skill(trial).map_or("", |skill| &skill.name);
                return ProbeRecord::new(skill, &record, trouble);
            }
            TrialEndDecision::Retry { wait, why, .. } => {
                // A folder that cannot be set aside is overwritten.
                let _ = exam.run_dir.set_aside_failed_try(&exam.run_dir.probe_folder(&trial.id));
                // The receiver may be gone; the probe goes on all the same.
                let _ = say.send(waiting_event(&exam.probes, trial, wait, false, &why));
                let until = Instant::now() + wait;
                while Instant::now() < until && !exam.stop.is_stopping() {
                    sleep_until(Some(until)).await;
                }
            }
        }
    }
}

/// Stages, runs, observes, diagnoses and stores a probe.
async fn run_probe(exam: &Arc<RunContext>, trial: &Trial) -> (TrialRecord, Option<ProbeFailure>) {
    let prepared = match prepared_trial::prepare_trial(exam, RunPhase::Probes, trial).await {
        Ok(prepared) => prepared,
        Err(record) => {
            let because = record.ended_because.clone();
            let seen = Observation { ended_because: because, ..Observation::with_ending(record.ended) };
            let unstaged =
                ProbedSkill { name: "", description: None, model_may_use: true, model_input: None };
            return (*record, diagnose_activation(&seen, &unstaged));
        }
    };
    let ObservedRun { observation: seen, started, turns, notes, memory_permit: held } =
        run_and_observe(exam, &prepared).await;
    let trouble = diagnose_probe(exam, trial, &prepared, &seen);
    let nobody = NotScoredReason::NotJudged("a probe has nothing to judge".to_owned());
    let marked = prepared.grader(exam).grade_without_judge(&seen, &prepared.workspace.view(), &nobody);
    let facts = prepared.facts(&seen, started, turns, Vec::new());
    let record = build_record(&exam.probes, trial, &seen, marked, notes);
    let record = prepared.store(exam, record, seen, facts).await;
    drop(held);
    (record, trouble)
}

fn diagnose_probe(
    exam: &RunContext,
    trial: &Trial,
    prepared: &PreparedTrial<'_>,
    seen: &Observation,
) -> Option<ProbeFailure> {
    let path = exam.probes.probed_skill(trial).and_then(|skill| skill.path.as_deref());
    // The skill was read a moment ago for staging, so this rarely fails.
    let skill = path.and_then(|path| Skill::read(path).ok());
    let told = prepared.model_input_text();
    let wanted = ProbedSkill {
        name: prepared.probed_skill_name().unwrap_or_default(),
        description: skill.as_ref().and_then(|skill| skill.description.as_deref()),
        model_may_use: skill.as_ref().is_none_or(Skill::is_model_invocable),
        model_input: told.as_deref(),
    };
    diagnose_activation(seen, &wanted)
}
