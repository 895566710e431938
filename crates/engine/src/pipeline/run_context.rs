//! The plan, services and limits of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::executor::{ExecutorEvent, TrialExecutor};
use super::queue::RetryPolicy;
use super::reuse::ReusableResults;
use crate::grade::{GatewayRole, SuiteServices};
use crate::plan::Plan;
use crate::store::{RunDir, Scrubber};
use crate::workspace::limits::ResourceLimits;
use crate::workspace::mocks::MockRecorder;
use crate::workspace::run::{CancelToken, TranscriptMemory};
use crate::workspace::sandbox::Sandbox;
use crate::workspace::stage::HiddenFiles;
use practicum_agents::agents::AgentCli;
use practicum_agents::gateway::SpendingLedger;
use practicum_core::model::{AgentEnding, Baseline, Noise, Ratio, Trial};
use practicum_evals::url_check::HttpUrlChecker;

/// Everything that a run needs.
pub struct RunContext {
    pub plan: Plan,
    /// The probes of the same suites, which run before the trials.
    pub probes: Plan,
    pub agents: BTreeMap<String, AgentCli>,
    /// The services of each suite of the plan.
    pub suites: Vec<SuiteServices>,
    pub user_env: BTreeMap<String, String>,
    pub hidden_files: HiddenFiles,
    pub sandbox: Sandbox,
    /// What the processes of one trial may use.
    pub limits: ResourceLimits,
    /// The folder in which workspaces are made. It is deleted at the end.
    pub workspace_root: PathBuf,
    pub keep_workspaces: bool,
    /// Whether setup and teardown scripts may run.
    pub allow_scripts: bool,
    /// Records the answers of real MCP servers; `None` if the rules of mocks answer.
    pub mock_recorder: Option<Arc<MockRecorder>>,
    /// Whether the code of plugins (hooks, servers) may run.
    pub allow_plugin_code: bool,
    /// The network, if checks may use it.
    pub web: Option<HttpUrlChecker>,
    /// The number of agents that run at once.
    pub jobs: usize,
    /// The number of judges that are asked at once, and of trials that are judged and stored while agents run.
    pub judge_jobs: usize,
    /// The memory that long transcripts share.
    pub memory: TranscriptMemory,
    pub run_dir: RunDir,
    pub scrubber: Scrubber,
    /// The account of what the run spends, with its limits.
    pub ledger: Arc<SpendingLedger>,
    pub stop: StopSignal,
    /// The results that need not be produced again.
    pub reusable: ReusableResults,
    /// The names of the user's variables that agents get.
    pub pass_env: Vec<String>,
    pub fail_fast: bool,
    /// When the run ends: no trial starts later, and no limit that resets later is waited for. In seconds since 1970.
    pub until: Option<u64>,
    /// The rules for repeating trials that failed for an outside reason.
    pub retry: RetryPolicy,
    /// The share of trials that may stay unscored.
    pub allow_unscored: Ratio,
    /// The known variation of the cases between equal runs.
    pub noise: Option<Noise>,
    /// The stored results that the run must not fall behind.
    pub baseline: Option<Baseline>,
    /// Whether a case is not run any more once its results decide it.
    pub stop_early: bool,
    /// What runs the trials, if it is not this process.
    pub executor: Option<Arc<dyn TrialExecutor>>,
}

/// The two phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    Probes,
    Trials,
}

impl RunContext {
    pub(crate) fn plan_of(&self, part: RunPhase) -> &Plan {
        match part {
            RunPhase::Probes => &self.probes,
            RunPhase::Trials => &self.plan,
        }
    }

    /// Gives the folder of a trial or probe in the record.
    pub fn folder_of(&self, phase: RunPhase, trial: &Trial) -> PathBuf {
        match phase {
            RunPhase::Probes => self.run_dir.probe_folder(&trial.id),
            RunPhase::Trials => self.run_dir.trial_folder(&trial.id),
        }
    }

    /// Says whether there is still time and money to start more trials.
    pub(crate) fn may_continue(&self) -> bool {
        !self.stop.is_stopping() && self.ledger.describe_used_up().is_none()
    }

    /// Says whether the result of a trial can keep the next one from starting.
    pub(crate) fn can_delay_next_trial(&self, ended: AgentEnding) -> bool {
        self.fail_fast || self.stop_early || ended != AgentEnding::Finished
    }

    /// Gives the rules for repeating a trial; `None` if that is useless. A script gives the same answer again to
    /// the same question.
    pub(crate) fn retry_policy(&self, trial: &Trial) -> Option<RetryPolicy> {
        let stand = self.suites[trial.suite].gateway.as_ref().map(|(_, stand)| *stand);
        let in_vain =
            matches!(stand, Some(GatewayRole::Script | GatewayRole::Replay)) || self.stop.is_stopping();
        let longest_pause = match self.until {
            Some(until) => Duration::from_secs(until.saturating_sub(unix_time())),
            None => self.retry.longest_pause,
        };
        (!in_vain).then_some(RetryPolicy { longest_pause, ..self.retry })
    }

    /// Gives the greatest number of trials that run at once, here or elsewhere.
    pub(crate) fn trials_at_once(&self) -> usize {
        match &self.executor {
            // More trials than workers can take at once may wait there, but not those that may turn out to be needless.
            Some(executor) if !self.fail_fast && !self.stop_early => executor.capacity(),
            Some(_) | None => self.jobs,
        }
    }

    /// Waits for the next event of what runs the trials elsewhere; forever if they run here.
    pub(super) async fn next_executor_event(&self) -> ExecutorEvent {
        match &self.executor {
            Some(executor) => executor.next_event().await,
            None => std::future::pending().await,
        }
    }

    /// Says whether the time is over that the user gave the run.
    pub(crate) fn is_past_end(&self) -> bool {
        self.until.is_some_and(|until| unix_time() >= until)
    }
}

/// Gives the seconds since 1970.
pub(super) fn unix_time() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default()
}

/// A signal to end a run early: either no new trials start, or running ones are cancelled too.
#[derive(Clone, Default)]
pub struct StopSignal {
    no_new_trials: Arc<AtomicBool>,
    pub cancel: CancelToken,
}

impl StopSignal {
    pub fn stop_after_running(&self) {
        self.no_new_trials.store(true, Ordering::Relaxed);
    }

    pub fn stop_now(&self) {
        self.stop_after_running();
        self.cancel.cancel();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.no_new_trials.load(Ordering::Relaxed)
    }
}
