//! A run whose trials are run by workers: what a worker must know to make the same plan, and the interface to workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::trust::TrustDecision;
use super::{PreparedRun, Session, SessionError, SilentObserver};
use crate::pipeline::{BoxedFuture, TrialExecutor, TrialRunner};
use crate::plan::Plan;
use crate::plan::options::{CaseSelection, RunOptions};
use crate::plan::settings::{PROJECT_FILE, PortableSettings, weakens};
use crate::store::RecordKey;
use practicum_agents::gateway::SpendingBudget;
use practicum_core::model::SandboxMode;

/// Workers that run the trials of a run in place of this process.
pub trait WorkerPool: Send + Sync {
    /// Gives a run to the workers.
    fn open(&self, run: SharedRun) -> BoxedFuture<'_, Result<Arc<dyn TrialExecutor>, String>>;
}

/// A run whose trials are to be run by workers.
pub struct SharedRun {
    /// The id of the run.
    pub id: String,
    /// What a worker must know to make the same plan.
    pub description: RunDescription,
    /// The files and folders that the plan was made from. The first is the folder of the project.
    pub files: Vec<PathBuf>,
    /// The agents that run trials.
    pub agents: BTreeSet<String>,
    /// The key that marks the records of the run.
    pub key: RecordKey,
    /// What all workers together may spend.
    pub budget: SpendingBudget,
}

/// Everything besides the files that a worker must know to make the same plan. All paths are absolute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunDescription {
    project: PathBuf,
    options: RunOptions,
    trust: TrustDecision,
    settings: PortableSettings,
}

/// The decisions that a worker takes over from the machine that plans the run, and its own.
#[derive(Debug, Clone)]
pub(crate) struct WorkerPolicy {
    pub settings: PortableSettings,
    pub trust: TrustDecision,
    /// The weakest sandbox that the worker uses, whatever the run asks for.
    pub weakest_sandbox: SandboxMode,
}

impl WorkerPolicy {
    /// Gives the sandbox of a trial: the one that the run asks for, or the worker's own if that protects more.
    pub fn sandbox(&self, requested: SandboxMode) -> SandboxMode {
        match weakens("sandbox", requested.name(), self.weakest_sandbox.name()) {
            true => self.weakest_sandbox,
            false => requested,
        }
    }
}

impl RunDescription {
    /// Describes a run that is planned here.
    pub(super) fn new(
        plan: &Plan,
        project: &Path,
        options: RunOptions,
        trust: TrustDecision,
        environment: &BTreeMap<String, String>,
    ) -> Self {
        let folder = std::env::current_dir().unwrap_or_else(|_| project.to_owned());
        let mut options = options.made_absolute(&folder);
        let is_auto = |name: &String| name == "auto";
        if plan.suites.iter().any(|planned| planned.settings.agents.value.iter().any(is_auto)) {
            // The agent that was chosen here must not be chosen again there.
            let agents: BTreeSet<&str> =
                plan.suites.iter().flat_map(|of| &of.agents).map(String::as_str).collect();
            options.settings.insert("agent".to_owned(), agents.into_iter().collect::<Vec<&str>>().join(","));
        }
        // A sample, a part and a comparison with git must not be chosen again either.
        let cases: BTreeSet<(String, String)> = plan
            .trials
            .iter()
            .map(|trial| plan.suite_and_case(trial))
            .map(|(planned, case)| (planned.suite.name.clone(), case.id.clone()))
            .collect();
        let selection = CaseSelection { exactly: cases.into_iter().collect(), ..CaseSelection::default() };
        let options = RunOptions {
            selection,
            gates: Vec::new(),
            baseline: None,
            count_flaky: true,
            no_reuse: true,
            reports: Vec::new(),
            keep_workspaces: false,
            until: None,
            ..options
        };
        let settings = PortableSettings::of_user(environment);
        Self { project: project.to_owned(), options, trust, settings }
    }

    /// Gives the description for a machine that has the files below `from` in the folder `to`.
    #[must_use]
    pub fn moved(self, from: &Path, to: &Path) -> Self {
        let moved =
            |path: &Path| path.strip_prefix(from).map_or_else(|_| path.to_owned(), |rest| to.join(rest));
        let hidden = self.trust.hidden.iter().map(|path| moved(path)).collect();
        Self {
            project: moved(&self.project),
            options: self.options.map_paths(moved),
            trust: TrustDecision { hidden, ..self.trust },
            settings: self.settings,
        }
    }

    /// Plans the run on a worker, whose own sandbox is the weakest that is used. The name of a case in the plan then is
    /// enough to run it.
    pub async fn prepare_trials(
        self,
        environment: BTreeMap<String, String>,
        weakest_sandbox: SandboxMode,
    ) -> Result<TrialRunner, SessionError> {
        let policy = WorkerPolicy { settings: self.settings, trust: self.trust, weakest_sandbox };
        let mut session =
            Session::new(&self.project).with_options(self.options).with_environment(environment);
        session.project = self.project;
        session.policy = Some(policy);
        session.options.inputs.runs_elsewhere = true;
        let observer = &mut SilentObserver;
        match session.read_suites(observer)?.prepare(observer)? {
            Some(prepared) => prepared.into_trial_runner().await,
            None => Err(SessionError::Refused("the shared run has no cases".to_owned())),
        }
    }
}

/// Gives the files and folders that a plan was made from, the folder of the project first.
pub(super) fn files_of_plan(plan: &Plan, project: &Path, options: &RunOptions) -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    for planned in &plan.suites {
        let suite = &planned.suite;
        files.extend([planned.project.join(PROJECT_FILE), suite.origin.path.clone()]);
        files.extend(planned.script.iter().chain(&suite.run_policy.script).cloned());
        files.extend(suite.plugins.iter().cloned());
        files.extend(suite.skills.iter().chain(&suite.rivals).filter_map(|skill| skill.path.clone()));
        for case in &suite.cases {
            files.extend(case.workspace.files.iter().map(|file| file.source.clone()));
            files.extend(case.workspace.overlays.iter().cloned());
        }
    }
    let inputs = std::cell::RefCell::new(Vec::new());
    let folder = std::env::current_dir().unwrap_or_else(|_| project.to_owned());
    let _ = RunOptions { reports: Vec::new(), ..options.clone() }.made_absolute(&folder).map_paths(|path| {
        inputs.borrow_mut().push(path.to_owned());
        path.to_owned()
    });
    files.extend(inputs.into_inner());
    files.retain(|path| path.is_absolute() && path.exists());
    std::iter::once(project.to_owned()).chain(files).collect()
}

impl PreparedRun {
    /// Gives the trials of the plan, to be run one by one.
    async fn into_trial_runner(mut self) -> Result<TrialRunner, SessionError> {
        // Gates and what they compare with are decided where the results are put together.
        self.plan.suites.iter_mut().for_each(|planned| planned.suite.gates.clear());
        let opened = self.open(&mut SilentObserver).await?;
        Ok(TrialRunner::new(opened.context, opened.workspaces))
    }
}
