//! Before anything is measured: each agent is told once to use each skill.

use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream;
use tokio::sync::mpsc::{self, UnboundedSender};

use super::exam::{Exam, Part};
use super::queue::{Next, Queue};
use super::room::{self, Prepared};
use super::{Watched, recorded, sleep, tell, waiting_event, watch};
use crate::probe::{Wanted, diagnose};
use practicum_core::aggregate::Tally;
use practicum_core::event::{RunEvent, Sinks};
use practicum_core::model::{Observation, ProbeRecord, Trial, TrialRecord, Trouble, Why};
use practicum_skills::skill::Skill;

/// Carries out the probes, as many at once as there are jobs. Gives whether what is to be measured can
/// be: of a skill that does not fire when it is called for, nothing follows where it is not.
pub async fn probe_all(exam: &Arc<Exam>, tally: &mut Tally, sinks: &mut Sinks) -> bool {
    let (say, mut said) = mpsc::unbounded_channel();
    let mut probing = stream::iter(&exam.probes.trials)
        .take_while(|_| std::future::ready(exam.goes_on()))
        .map(|trial| probe(exam, trial, &say))
        .buffered(exam.jobs);
    let mut fired = 0;
    exam.prior.probes.iter().for_each(|probe| tally.add_probe(probe));
    loop {
        let probe = tokio::select! {
            Some(event) = said.recv() => {
                tell(sinks, &event);
                continue;
            }
            done = probing.next() => match done {
                Some(done) => done,
                None => break,
            },
        };
        tally.add_probe(&probe);
        fired += usize::from(probe.fired);
        tell(sinks, &RunEvent::ProbeFinished { probe: Box::new(probe) });
    }
    fired == exam.probes.trials.len()
}

/// One probe, tried again like a trial that the outside world broke.
async fn probe(exam: &Arc<Exam>, trial: &Trial, say: &UnboundedSender<RunEvent>) -> ProbeRecord {
    let mut queue = Queue::new(1);
    loop {
        let (record, trouble) = take(exam, trial).await;
        match queue.settle(0, record, exam.retry_of(trial), Instant::now()) {
            Next::Done { record, .. } => {
                let skill = exam.probes.probed(trial).map_or("", |skill| &skill.name);
                return ProbeRecord::new(skill, &record, trouble);
            }
            Next::Again { wait, why, .. } => {
                // What cannot be set aside is written over.
                let _ = exam.run_dir.set_aside(&exam.run_dir.probe(&trial.id));
                // That nobody listens any more changes nothing.
                let _ = say.send(waiting_event(&exam.probes, trial, wait, false, &why));
                let until = Instant::now() + wait;
                while Instant::now() < until && !exam.stop.is_stopping() {
                    sleep(Some(until)).await;
                }
            }
        }
    }
}

/// Stages, runs, observes, diagnoses and keeps it.
async fn take(exam: &Arc<Exam>, trial: &Trial) -> (TrialRecord, Option<Trouble>) {
    let prepared = match room::prepare(exam, Part::Probes, trial).await {
        Ok(prepared) => prepared,
        Err(record) => {
            let because = record.ended_because.clone();
            let seen = Observation { ended_because: because, ..Observation::ended(record.ended) };
            let unstaged = Wanted { name: "", description: None, model_may_use: true, told: None };
            return (*record, diagnose(&seen, &unstaged));
        }
    };
    let Watched { seen, started, turns, notes, held } = watch(exam, &prepared).await;
    let trouble = diagnosed(exam, trial, &prepared, &seen);
    let nobody = Why::NotJudged("a probe has nothing to judge".to_owned());
    let marked = prepared.sheet(exam).mark_unjudged(&seen, &prepared.workspace.view(), &nobody);
    let facts = prepared.facts(&seen, started, turns, Vec::new());
    let record = recorded(&exam.probes, trial, &seen, marked, notes);
    let record = prepared.keep(exam, record, seen, facts).await;
    drop(held);
    (record, trouble)
}

fn diagnosed(exam: &Exam, trial: &Trial, prepared: &Prepared<'_>, seen: &Observation) -> Option<Trouble> {
    let path = exam.probes.probed(trial).and_then(|skill| skill.path.as_deref());
    // It was read a moment ago, to be staged.
    let skill = path.and_then(|path| Skill::read(path).ok());
    let told = prepared.told();
    let wanted = Wanted {
        name: prepared.probed().unwrap_or_default(),
        description: skill.as_ref().and_then(|skill| skill.description.as_deref()),
        model_may_use: skill.as_ref().is_none_or(Skill::model_may_use),
        told: told.as_deref(),
    };
    diagnose(seen, &wanted)
}
