//! Probes: trials before a run, in which each agent is told once to use each skill. If a skill is not activated even
//! on request, its activation in a trial means nothing.

mod diagnosis;
mod planning;

use std::sync::Arc;

pub(crate) use self::diagnosis::probe_prompt;
pub(crate) use self::planning::{choose_probes, probed_skill};

use self::diagnosis::{ProbedSkill, diagnose_activation};
use super::execution::RunExecution;
use super::executor::run_elsewhere;
use super::prepared_trial::{self, PreparedTrial};
use super::run_context::{RunContext, RunPhase};
use super::scheduler::{InOrder, Scheduler};
use super::{ObservedRun, build_record, run_and_observe, unfinished_record};
use practicum_core::event::RunEvent;
use practicum_core::model::{
    AgentEnding, NotScoredReason, Observation, ProbeFailure, ProbeRecord, Trial, TrialRecord,
};
use practicum_skills::skill::Skill;

/// The record of a probe, and why it did not activate its skill, if it did not.
pub(super) type ProbeResult = (TrialRecord, Option<ProbeFailure>);

impl RunExecution {
    /// Runs all probes. The trials can be run only if each probe activated its skill.
    pub async fn run_probes(&mut self) {
        let context = Arc::clone(&self.context);
        context.reusable.probes.iter().for_each(|probe| self.recorder.tally.add_probe(probe));
        let mut probes: Scheduler<Option<ProbeResult>> =
            Scheduler::new(context.probes.trials.len(), context.trials_at_once(), 0);
        let mut results = InOrder::new();
        let mut activated = 0;
        loop {
            while context.may_continue()
                && let Some((index, permit)) = probes.take_next()
            {
                let context = Arc::clone(&context);
                if let Some(executor) = context.executor.clone() {
                    let current_try = probes.current_try(index);
                    probes.spawn(index, async move {
                        let phase = RunPhase::Probes;
                        run_elsewhere(&context, &executor, phase, index, current_try, permit).await
                    });
                    continue;
                }
                probes.spawn(index, async move {
                    let result = run_probe(&context, &context.probes.trials[index]).await;
                    drop(permit);
                    Some(result)
                });
            }
            let may_start = context.may_continue();
            self.stop_executor(may_start).await;
            if probes.is_done(may_start) {
                break;
            }
            let ended = tokio::select! {
                ended = probes.wait(may_start) => ended,
                event = context.next_executor_event() => {
                    self.show_executor_event(event);
                    None
                }
            };
            let Some((index, ended)) = ended else { continue };
            let trial = &context.probes.trials[index];
            let ended = ended.unwrap_or_else(|why| {
                Some(failed_probe(unfinished_record(&context.probes, trial, AgentEnding::Crashed, &why)))
            });
            let Some((record, failure)) = ended.map(with_diagnosis) else { continue };
            if let Some((record, _)) = self.done_or_retry(&mut probes, RunPhase::Probes, index, record) {
                let skill = probed_skill(&context.probes, trial).map_or("", |skill| &skill.name);
                activated += usize::from(failure.is_none());
                let probe = ProbeRecord::new(skill, &record, failure);
                results.add(index, probe).into_iter().for_each(|probe| self.record_probe(probe));
            }
        }
        results.rest().for_each(|probe| self.record_probe(probe));
        self.probes_passed = activated == context.probes.trials.len();
    }

    fn record_probe(&mut self, probe: ProbeRecord) {
        self.recorder.tally.add_probe(&probe);
        self.recorder.send_event(&RunEvent::ProbeFinished { probe: Box::new(probe) });
    }
}

/// Adds the diagnosis of a probe whose agent never ran, because nobody observed it.
fn with_diagnosis((record, failure): ProbeResult) -> ProbeResult {
    let activated_nothing = record.skills.activated.is_empty();
    match failure.is_none() && activated_nothing && record.ended != AgentEnding::Finished {
        true => failed_probe(record),
        false => (record, failure),
    }
}

/// Stages, runs, observes, diagnoses and stores a probe.
pub(super) async fn run_probe(context: &Arc<RunContext>, trial: &Trial) -> ProbeResult {
    let prepared = match prepared_trial::prepare_trial(context, RunPhase::Probes, trial).await {
        Ok(prepared) => prepared,
        Err(record) => return failed_probe(*record),
    };
    let ObservedRun { observation: seen, started, turns, notes, user: _, memory_permit: held } =
        run_and_observe(context, &prepared).await;
    let trouble = diagnose_probe(context, trial, &prepared, &seen);
    let nobody = NotScoredReason::NotJudged("a probe has nothing to judge".to_owned());
    let grades = prepared.grader(context).grade_without_judge(&seen, &prepared.workspace.view(), &nobody);
    let facts = prepared.facts(&seen, started, turns, Vec::new());
    let record = build_record(&context.probes, trial, &seen, grades, notes);
    let record = prepared.store(context, record, seen, facts).await;
    drop(held);
    (record, trouble)
}

/// Diagnoses a probe whose agent was never observed.
fn failed_probe(record: TrialRecord) -> ProbeResult {
    let because = record.ended_because.clone();
    let seen = Observation { ended_because: because, ..Observation::with_ending(record.ended) };
    let unstaged = ProbedSkill { name: "", description: None, model_may_use: true, model_input: None };
    let failure = diagnose_activation(&seen, &unstaged);
    (record, failure)
}

fn diagnose_probe(
    context: &RunContext,
    trial: &Trial,
    prepared: &PreparedTrial<'_>,
    seen: &Observation,
) -> Option<ProbeFailure> {
    let path = probed_skill(&context.probes, trial).and_then(|skill| skill.path.as_deref());
    // The skill was read a moment ago for staging, so this rarely fails.
    let skill = path.and_then(|path| Skill::read(path).ok());
    let model_input_text = prepared.model_input_text();
    let wanted = ProbedSkill {
        name: prepared.probed_skill_name().unwrap_or_default(),
        description: skill.as_ref().and_then(|skill| skill.description.as_deref()),
        model_may_use: skill.as_ref().is_none_or(Skill::is_model_invocable),
        model_input: model_input_text.as_deref(),
    };
    diagnose_activation(seen, &wanted)
}
