//! Runs trials outside of this process: on workers.
//!
//! In: a trial of the plan and a `TrialExecutor`. Out: its record, stored as if the trial had run here. Never: knows how
//! a trial gets to a worker.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use super::agent_slots::SlotPermit;
use super::run_context::{RunContext, RunPhase};
use super::{reuse, unfinished_record, unstarted_record};
use crate::workspace::run::run_blocking;
use practicum_core::model::{AgentEnding, ProbeFailure, Trial, TrialId, TrialRecord};
use practicum_core::tree::create_private_folder;

/// A future of a trait object.
pub type BoxedFuture<'f, T> = Pin<Box<dyn Future<Output = T> + Send + 'f>>;

/// Something that runs trials outside of this process.
pub trait TrialExecutor: Send + Sync {
    /// Runs a trial and puts its files into the folder that the request names.
    fn execute(&self, request: TrialRequest) -> BoxedFuture<'_, TrialOutcome>;

    /// Gives the greatest number of trials that may wait or run there at once.
    fn capacity(&self) -> usize;

    /// Waits for the next event that the user should see.
    fn next_event(&self) -> BoxedFuture<'_, ExecutorEvent>;

    /// Takes back the trials that did not begin, because no trial of the run may start any more.
    fn recall(&self) -> BoxedFuture<'_, ()>;

    /// Ends the trials that run, because the run was cancelled.
    fn cancel(&self) -> BoxedFuture<'_, ()>;

    /// Ends the work for the run. `completed` says that all results were stored, so that nothing of the run is needed
    /// any more.
    fn close(&self, completed: bool) -> BoxedFuture<'_, ()>;
}

/// A trial that is to be run outside of this process.
#[derive(Debug, Clone)]
pub struct TrialRequest {
    /// The position of the trial in the plan of its phase.
    pub index: usize,
    /// Whether the trial is a probe.
    pub is_probe: bool,
    /// The id of the trial.
    pub trial: TrialId,
    /// The agent that runs the trial.
    pub agent: String,
    /// The digest of everything that the result depends on.
    pub key: String,
    /// The number of this try, from 1: a trial that failed for an outside reason is tried again.
    pub attempt: u32,
    /// An empty folder for the trial's files.
    pub folder: PathBuf,
}

/// What became of a trial that was to be run outside of this process.
#[derive(Debug)]
pub enum TrialOutcome {
    /// The trial ended, and its files are in the folder of the request.
    Finished {
        /// The record of the trial.
        record: Box<TrialRecord>,
        /// Why a probe did not activate its skill.
        failure: Option<ProbeFailure>,
    },
    /// Nobody could run the trial to its end, for a reason that has nothing to do with the trial.
    Lost(String),
    /// The trial was ended because the run was cancelled.
    Cancelled,
    /// The trial did not begin: it was taken back, or the budget was used up.
    NotBegun,
}

/// Something that happened outside of this process.
#[derive(Debug)]
pub enum ExecutorEvent {
    /// A worker began a trial.
    Began {
        /// The position of the trial in the plan of its phase.
        index: usize,
        /// Whether the trial is a probe.
        is_probe: bool,
        /// The name of the worker.
        worker: String,
    },
    /// A message for people.
    Notice(String),
}

/// The result of a trial that ran elsewhere, with the diagnosis of a probe. `None` if the trial did not begin.
pub type ElsewhereResult = Option<(TrialRecord, Option<ProbeFailure>)>;

/// Runs a trial elsewhere and stores its files and its record.
pub async fn run_elsewhere(
    context: &Arc<RunContext>,
    executor: &Arc<dyn TrialExecutor>,
    phase: RunPhase,
    index: usize,
    attempt: u32,
    slot: SlotPermit,
) -> ElsewhereResult {
    let plan = context.plan_of(phase);
    let trial = &plan.trials[index];
    if phase == RunPhase::Trials
        && let Some(record) = unstarted_record(context, trial)
    {
        return Some((record, None));
    }
    let lost = |why: &str| Some((unfinished_record(plan, trial, AgentEnding::Lost, why), None));
    let folder = match make_incoming_folder(context, trial, attempt) {
        Ok(folder) => folder,
        Err(error) => return lost(&format!("its results cannot be stored: {error}")),
    };
    let request = TrialRequest {
        index,
        is_probe: phase == RunPhase::Probes,
        trial: trial.id.clone(),
        agent: trial.condition.agent.clone(),
        key: context.reusable.keys.get(&trial.id).map_or_else(String::new, |of| of.key.to_string()),
        attempt,
        folder: folder.clone(),
    };
    let outcome = executor.execute(request).await;
    drop(slot);
    let result = match outcome {
        TrialOutcome::Finished { record, failure } => {
            let stored = run_blocking(|| store_result(context, phase, trial, &record, &folder));
            match stored {
                Ok(record) => Some((record, failure)),
                Err(why) => lost(&format!("its results cannot be stored: {why}")),
            }
        }
        TrialOutcome::Lost(why) => lost(&why),
        TrialOutcome::Cancelled => {
            let why = "the run was cancelled";
            Some((unfinished_record(plan, trial, AgentEnding::Cancelled, why), None))
        }
        TrialOutcome::NotBegun => None,
    };
    // What was stored has been moved away.
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn make_incoming_folder(context: &RunContext, trial: &Trial, attempt: u32) -> std::io::Result<PathBuf> {
    let folder = context.run_dir.path().join("incoming").join(format!("{}.{attempt}", trial.id.as_str()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    create_private_folder(&folder)?;
    Ok(folder)
}

/// Moves the files of a trial to their place, and writes its record. The plan here says which trial it is, and only the
/// results come from elsewhere.
fn store_result(
    context: &RunContext,
    phase: RunPhase,
    trial: &Trial,
    result: &TrialRecord,
    from: &Path,
) -> Result<TrialRecord, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let has_files = std::fs::read_dir(from).map_err(|error| told(&error))?.next().is_some();
    let (key, repeats) =
        context.reusable.keys.get(&trial.id).map(|of| (of.key.clone(), of.repeats.clone())).unzip();
    let planned = unfinished_record(context.plan_of(phase), trial, result.ended, "");
    let record = TrialRecord { key, repeats, ..reuse::with_results_of(result, planned) };
    for (usage, cost) in record.spending() {
        context.ledger.record_spending(usage, cost);
    }
    // A trial that could not be prepared has no files, as when it is run here.
    if !has_files {
        return Ok(record);
    }
    let folder = match phase {
        RunPhase::Trials => context.run_dir.create_trial_folder(&trial.id),
        RunPhase::Probes => context.run_dir.create_probe_folder(&trial.id),
    };
    let folder = folder.map_err(|error| told(&error))?;
    std::fs::remove_dir(&folder).map_err(|error| told(&error))?;
    std::fs::rename(from, &folder).map_err(|error| told(&error))?;
    context.run_dir.write_record_in(&folder, &record, &context.scrubber).map_err(|error| told(&error))?;
    Ok(record)
}
