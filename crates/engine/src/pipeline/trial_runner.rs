//! Runs single trials of a plan when somebody asks for them, as a worker does.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::agent_slots::AgentSlots;
use super::run_context::{RunContext, RunPhase, StopSignal};
use super::{probes, run_trial};
use crate::workspace::run::adopt_orphans;
use crate::workspace::stage::WorkspaceRoot;
use practicum_core::model::{ProbeFailure, TrialId, TrialRecord};

/// The trials of a plan, each of which can be run alone. Dropping it deletes the workspaces.
pub struct TrialRunner {
    context: Arc<RunContext>,
    slots: Arc<AgentSlots>,
    trials: HashMap<TrialId, usize>,
    probes: HashMap<TrialId, usize>,
    _workspaces: WorkspaceRoot,
}

/// A trial that ran, with the folder of its files.
pub struct TrialOutput {
    /// The record of the trial.
    pub record: TrialRecord,
    /// Why a probe did not activate its skill.
    pub failure: Option<ProbeFailure>,
    /// The folder with the files of the trial. It does not exist if the agent could not be started.
    pub folder: PathBuf,
}

impl TrialRunner {
    pub(crate) fn new(context: RunContext, workspaces: WorkspaceRoot) -> Self {
        adopt_orphans();
        let positions = |phase: RunPhase| {
            let trials = &context.plan_of(phase).trials;
            trials.iter().enumerate().map(|(index, trial)| (trial.id.clone(), index)).collect()
        };
        let (trials, probes) = (positions(RunPhase::Trials), positions(RunPhase::Probes));
        // Whoever asks for trials decides how many run at once.
        let slots = AgentSlots::new(usize::MAX, 0);
        Self { trials, probes, context: Arc::new(context), slots, _workspaces: workspaces }
    }

    /// Gives the signal that ends all trials.
    pub fn stop(&self) -> &StopSignal {
        &self.context.stop
    }

    /// Runs a trial, or a probe. `None` if the plan has no such trial.
    pub async fn run(&self, trial: &TrialId, is_probe: bool) -> Option<TrialOutput> {
        let permit = self.slots.try_acquire()?;
        let (phase, positions) = match is_probe {
            false => (RunPhase::Trials, &self.trials),
            true => (RunPhase::Probes, &self.probes),
        };
        let index = *positions.get(trial)?;
        let planned = &self.context.plan_of(phase).trials[index];
        let (record, failure) = match phase {
            RunPhase::Trials => (run_trial(&self.context, index, permit).await, None),
            RunPhase::Probes => probes::run_probe(&self.context, planned).await,
        };
        let folder = self.context.folder_of(phase, planned);
        Some(TrialOutput { record, failure, folder })
    }
}
