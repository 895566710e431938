//! What an exam is carried out with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::queue::RetryPolicy;
use super::reuse::ReusableResults;
use crate::judge::Judge;
use crate::plan::Plan;
use crate::run::{CancelToken, TranscriptMemory};
use crate::sandbox::Sandbox;
use crate::stage::HiddenFiles;
use crate::store::{RunDir, Scrubber};
use practicum_agents::agents::AgentCli;
use practicum_agents::gateway::{Gateway, PriceTable, SpendingLedger};
use practicum_core::model::{AgentEnding, Noise, Ratio, Trial};
use practicum_evals::url_check::HttpUrlChecker;

/// Everything a run needs.
pub struct RunContext {
    pub plan: Plan,
    /// What is tried before anything is measured, of the same suites.
    pub probes: Plan,
    pub agents: BTreeMap<String, AgentCli>,
    /// One for each suite of the plan.
    pub suites: Vec<SuiteServices>,
    pub user_env: BTreeMap<String, String>,
    pub hidden_files: HiddenFiles,
    pub sandbox: Sandbox,
    /// Where rooms are made; gone at the end.
    pub workspace_root: PathBuf,
    pub keep_workspaces: bool,
    /// Whether setup and teardown scripts may run.
    pub allow_scripts: bool,
    /// Whether the code of plugins (hooks, servers) may run.
    pub allow_plugin_code: bool,
    /// The network, where checks may ask it.
    pub web: Option<HttpUrlChecker>,
    /// How many agents are at work at once.
    pub jobs: usize,
    /// How many judges are asked at once, and how many trials are judged and kept beside the agents at work.
    pub judge_jobs: usize,
    /// What long transcripts share.
    pub memory: TranscriptMemory,
    pub run_dir: RunDir,
    pub scrubber: Scrubber,
    /// What the run may spend.
    pub ledger: Arc<SpendingLedger>,
    pub stop: StopSignal,
    /// What need not run.
    pub reusable: ReusableResults,
    /// Variables of the user's that agents get by name.
    pub pass_env: Vec<String>,
    pub fail_fast: bool,
    /// How what the outside world broke is tried again.
    pub retry: RetryPolicy,
    /// The share of trials that may stay unscored.
    pub allow_unscored: Ratio,
    /// What is known of the cases when nothing is changed.
    pub noise: Option<Noise>,
    /// Whether a case is run no more once its runs tell enough.
    pub stop_early: bool,
}

/// The two parts of an exam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    Probes,
    Trials,
}

impl RunContext {
    pub fn plan_of(&self, part: RunPhase) -> &Plan {
        match part {
            RunPhase::Probes => &self.probes,
            RunPhase::Trials => &self.plan,
        }
    }

    /// Whether there is still time and money for what is not begun.
    pub fn may_continue(&self) -> bool {
        !self.stop.is_stopping() && self.ledger.describe_used_up().is_none()
    }

    /// Whether what becomes of a trial can keep the next one from being begun.
    pub fn can_delay_next_trial(&self, ended: AgentEnding) -> bool {
        self.fail_fast || self.stop_early || ended != AgentEnding::Finished
    }

    /// How a trial is tried again. Where answers are scripted, the same question gets the same one, and
    /// trying again is in vain.
    pub fn retry_policy(&self, trial: &Trial) -> Option<RetryPolicy> {
        let stand = self.suites[trial.suite].gateway.as_ref().map(|(_, stand)| *stand);
        let in_vain =
            matches!(stand, Some(GatewayRole::Script | GatewayRole::Replay)) || self.stop.is_stopping();
        (!in_vain).then_some(self.retry)
    }
}

/// What one suite is run and judged with.
pub struct SuiteServices {
    /// Stands in for the model, or between us and it.
    pub gateway: Option<(Arc<Gateway>, GatewayRole)>,
    /// Why nobody judges, if nobody does.
    pub judge: Result<Arc<Judge>, String>,
}

impl SuiteServices {
    /// Who speaks where a gateway has something to tell.
    pub fn gateway_name(&self) -> &'static str {
        match self.gateway {
            Some((_, GatewayRole::Script)) => "script",
            Some((_, GatewayRole::Replay)) => "replay",
            Some((_, GatewayRole::Record | GatewayRole::Meter)) | None => "gateway",
        }
    }

    /// What a judge's answers cost: those of a script nothing.
    pub fn prices<'p>(&self, prices: &'p PriceTable) -> Option<&'p PriceTable> {
        Some(prices).filter(|_| !matches!(self.gateway, Some((_, GatewayRole::Script))))
    }
}

/// What a gateway does for a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayRole {
    Script,
    Replay,
    Record,
    Meter,
}

impl GatewayRole {
    /// Whether tokens and money at the gateway are those of a model, now or when it was recorded.
    pub fn uses_real_model(self) -> bool {
        match self {
            GatewayRole::Script => false,
            GatewayRole::Replay | GatewayRole::Record | GatewayRole::Meter => true,
        }
    }

    /// Whether an agent that cannot be pointed at a gateway may go its own way.
    pub fn is_optional(self) -> bool {
        match self {
            GatewayRole::Script | GatewayRole::Replay | GatewayRole::Record => false,
            GatewayRole::Meter => true,
        }
    }
}

/// How a run is ended early: no new trials, or none at all.
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

    pub fn is_stopping(&self) -> bool {
        self.no_new_trials.load(Ordering::Relaxed)
    }
}
