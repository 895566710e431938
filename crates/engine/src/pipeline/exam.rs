//! What an exam is carried out with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::queue::Retry;
use super::reuse::Prior;
use crate::judge::Judge;
use crate::plan::Plan;
use crate::run::{Cancel, Memory};
use crate::sandbox::Sandbox;
use crate::stage::Hidden;
use crate::store::{RunDir, Scrubber};
use practicum_agents::agents::Agent;
use practicum_agents::gateway::{Gateway, Ledger, Prices};
use practicum_core::model::{Ended, Noise, Ratio, Trial};
use practicum_evals::web::Web;

/// Everything a run needs.
pub struct Exam {
    pub plan: Plan,
    /// What is tried before anything is measured, of the same suites.
    pub probes: Plan,
    pub agents: BTreeMap<String, Agent>,
    /// One for each suite of the plan.
    pub suites: Vec<SuiteMeans>,
    pub user_env: BTreeMap<String, String>,
    pub hidden: Hidden,
    pub sandbox: Sandbox,
    /// Where rooms are made; gone at the end.
    pub rooms: PathBuf,
    pub keep_workspaces: bool,
    /// Whether setup and teardown scripts may run.
    pub trusted: bool,
    /// Whether the code of plugins (hooks, servers) may run.
    pub plugin_code: bool,
    /// The network, where checks may ask it.
    pub web: Option<Web>,
    /// How many agents are at work at once.
    pub jobs: usize,
    /// How many judges are asked at once, and how many trials are judged and kept beside the agents at work.
    pub judge_jobs: usize,
    /// What long transcripts share.
    pub memory: Memory,
    pub run_dir: RunDir,
    pub scrubber: Scrubber,
    /// What the run may spend.
    pub ledger: Arc<Ledger>,
    pub stop: Stop,
    /// What need not run.
    pub prior: Prior,
    /// Variables of the user's that agents get by name.
    pub pass_env: Vec<String>,
    pub fail_fast: bool,
    /// How what the outside world broke is tried again.
    pub retry: Retry,
    /// The share of trials that may stay unscored.
    pub allow_unscored: Ratio,
    /// What is known of the cases when nothing is changed.
    pub noise: Option<Noise>,
    /// Whether a case is run no more once its runs tell enough.
    pub stop_early: bool,
}

/// The two parts of an exam.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Probes,
    Trials,
}

impl Exam {
    pub fn plan_of(&self, part: Part) -> &Plan {
        match part {
            Part::Probes => &self.probes,
            Part::Trials => &self.plan,
        }
    }

    /// Whether there is still time and money for what is not begun.
    pub fn goes_on(&self) -> bool {
        !self.stop.is_stopping() && self.ledger.used_up().is_none()
    }

    /// Whether what becomes of a trial can keep the next one from being begun.
    pub fn waits_for(&self, ended: Ended) -> bool {
        self.fail_fast || self.stop_early || ended != Ended::Finished
    }

    /// How a trial is tried again. Where answers are scripted, the same question gets the same one, and
    /// trying again is in vain.
    pub fn retry_of(&self, trial: &Trial) -> Option<Retry> {
        let stand = self.suites[trial.suite].gateway.as_ref().map(|(_, stand)| *stand);
        let in_vain = matches!(stand, Some(Stand::Script | Stand::Replay)) || self.stop.is_stopping();
        (!in_vain).then_some(self.retry)
    }
}

/// What one suite is run and judged with.
pub struct SuiteMeans {
    /// Stands in for the model, or between us and it.
    pub gateway: Option<(Arc<Gateway>, Stand)>,
    /// Why nobody judges, if nobody does.
    pub judge: Result<Arc<Judge>, String>,
}

impl SuiteMeans {
    /// Who speaks where a gateway has something to tell.
    pub fn stand_name(&self) -> &'static str {
        match self.gateway {
            Some((_, Stand::Script)) => "script",
            Some((_, Stand::Replay)) => "replay",
            Some((_, Stand::Record | Stand::Meter)) | None => "gateway",
        }
    }

    /// What a judge's answers cost: those of a script nothing.
    pub fn prices<'p>(&self, prices: &'p Prices) -> Option<&'p Prices> {
        Some(prices).filter(|_| !matches!(self.gateway, Some((_, Stand::Script))))
    }
}

/// What a gateway does for a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stand {
    Script,
    Replay,
    Record,
    Meter,
}

impl Stand {
    /// Whether tokens and money at the gateway are those of a model, now or when it was recorded.
    pub fn is_real(self) -> bool {
        match self {
            Stand::Script => false,
            Stand::Replay | Stand::Record | Stand::Meter => true,
        }
    }

    /// Whether an agent that cannot be pointed at a gateway may go its own way.
    pub fn is_optional(self) -> bool {
        match self {
            Stand::Script | Stand::Replay | Stand::Record => false,
            Stand::Meter => true,
        }
    }
}

/// How a run is ended early: no new trials, or none at all.
#[derive(Clone, Default)]
pub struct Stop {
    no_more: Arc<AtomicBool>,
    pub now: Cancel,
}

impl Stop {
    pub fn after_running(&self) {
        self.no_more.store(true, Ordering::Relaxed);
    }

    pub fn now(&self) {
        self.after_running();
        self.now.cancel();
    }

    pub fn is_stopping(&self) -> bool {
        self.no_more.load(Ordering::Relaxed)
    }
}
