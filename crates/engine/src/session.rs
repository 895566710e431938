//! The entry of the engine: from the options of a run to its results.
//!
//! In: a project, [`RunOptions`], a [`RunObserver`]. Out: a [`FinishedRun`]. Never: prints, reads the command line, or
//! changes the working directory.
//!
//! ```no_run
//! # async fn example() -> Result<(), practicum_engine::session::SessionError> {
//! use practicum_engine::session::{Session, SilentObserver};
//!
//! let finished = Session::new("path/to/project")
//!     .suite("path/to/project/skills/release-notes")
//!     .agent("claude")
//!     .repeat(3)
//!     .run(&mut SilentObserver)
//!     .await?;
//! println!("{} of {} trials passed", finished.summary.totals.passed, finished.summary.totals.trials);
//! # Ok(())
//! # }
//! ```

mod changed_evals;
mod changed_suites;
mod error;
mod hidden_files;
mod merge;
mod observer;
mod planning;
mod prepared;
mod record;
mod registry;
#[doc(hidden)]
pub mod run_setup;
mod shared_budget;
mod shared_run;
mod trust;
mod trusted_code;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use error::SessionError;
pub use observer::{PlannedRun, RunObserver, SilentObserver};
pub use planning::SuitesToRun;
pub use prepared::{FinishedRun, PreparedRun, remove_leftovers};
pub use record::{Digests, run_info, skill_under_test};
pub use registry::RunRegistry;
pub use shared_budget::{SharedBudget, shared_services};
pub(crate) use shared_run::WorkerPolicy;
pub use shared_run::{RunDescription, SharedRun, WorkerPool};
pub use trust::{
    ProjectTrust, TRUST_VARIABLE, TrustAnswer, TrustDecision, TrustItem, TrustKind, TrustRequest, TrustStore,
};
pub use trusted_code::{changed_files, trusted_code};

pub use self::merge::RunParts;
pub use crate::plan::options::{CaseKind, CaseSelection, ChangedSince, RunInputs, RunOptions};

use crate::plan::settings::project_root;
use crate::session::run_setup::EvalFiles;
use crate::store::RunDir;

/// A function that changes what was read from the eval files before it is planned, for example to another version
/// of a skill or to fewer cases.
pub type ChangeReading<'s> = Box<dyn FnOnce(&mut EvalFiles) -> Result<(), SessionError> + 's>;

/// One run of suites in a project, from its options to its results.
///
/// ```no_run
/// # fn example() -> Result<(), practicum_engine::session::SessionError> {
/// use practicum_engine::session::{Session, SilentObserver};
///
/// // Plans a run and starts nothing.
/// let session = Session::new("path/to/project").suite("skills/release-notes").with_setting("timeout", "2m");
/// if let Some(prepared) = session.read_suites(&mut SilentObserver)?.prepare(&mut SilentObserver)? {
///     println!("{} trials", prepared.plan().trials.len());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Session<'s> {
    project: PathBuf,
    environment: BTreeMap<String, String>,
    options: RunOptions,
    limits: RunLimits,
    run_id: Option<String>,
    command: Vec<String>,
    resumed: Option<ResumedRun>,
    reading: Option<EvalFiles>,
    change: Option<ChangeReading<'s>>,
    registry: RunRegistry,
    workers: Option<Arc<dyn WorkerPool>>,
    policy: Option<WorkerPolicy>,
}

/// Spending limits of a run beyond those in the settings.
#[derive(Clone, Default)]
pub struct RunLimits {
    /// The budget that several runs of one command share.
    pub budget: SharedBudget,
    /// The most that may be spent, in USD; wins over the setting `max-cost`.
    pub max_cost_usd: Option<f64>,
    /// The time after which no more trials are started.
    pub deadline: Option<Instant>,
}

/// A run that was interrupted and is continued.
pub(crate) struct ResumedRun {
    pub run_dir: RunDir,
    /// Whether the scripts are trusted only because the command that began the run trusted them.
    pub trusted_at_start: bool,
}

impl<'s> Session<'s> {
    /// Makes a session in the project that a path belongs to, with the environment of this process.
    pub fn new(path: impl AsRef<Path>) -> Self {
        let path = std::path::absolute(path.as_ref()).unwrap_or_else(|_| path.as_ref().to_owned());
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            project: project_root(&path),
            environment,
            options: RunOptions::default(),
            limits: RunLimits::default(),
            run_id: None,
            command: Vec::new(),
            resumed: None,
            reading: None,
            change: None,
            registry: RunRegistry::default(),
            workers: None,
            policy: None,
        }
    }

    /// Replaces the options.
    #[must_use]
    pub fn with_options(self, options: RunOptions) -> Self {
        Self { options, ..self }
    }

    /// Gives the current options.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Sets whether the plan is only to be shown, so that its agents need not be installed.
    #[must_use]
    pub fn showing_only(mut self, only_shown: bool) -> Self {
        self.options.inputs.only_shown = only_shown;
        self
    }

    /// Replaces the environment variables, in which settings, logins and keys are looked up.
    #[must_use]
    pub fn with_environment(self, environment: BTreeMap<String, String>) -> Self {
        Self { environment, ..self }
    }

    /// Replaces the formats, checks and agents that the run may use, to add some from outside.
    #[must_use]
    pub fn with_registry(self, registry: impl Into<RunRegistry>) -> Self {
        Self { registry: registry.into(), ..self }
    }

    /// Lets workers run the trials, in place of this process.
    #[must_use]
    pub fn with_workers(mut self, workers: Arc<dyn WorkerPool>) -> Self {
        self.options.inputs.runs_elsewhere = true;
        Self { workers: Some(workers), ..self }
    }

    /// Adds a skill folder, an eval folder or an eval file to the run.
    #[must_use]
    pub fn suite(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.inputs.paths.push(path.into());
        self
    }

    /// Runs the trials with this agent in place of the one in the settings.
    #[must_use]
    pub fn agent(self, name: &str) -> Self {
        self.with_setting("agent", name)
    }

    /// Runs each case this many times.
    #[must_use]
    pub fn repeat(self, times: u32) -> Self {
        self.with_setting("repeat", &times.to_string())
    }

    /// Uses a script that answers in place of the model.
    #[must_use]
    pub fn script(mut self, path: impl Into<PathBuf>) -> Self {
        self.options.inputs.script = Some(path.into());
        self
    }

    /// Sets a setting as the command line would, by its name (see `docs/settings.md`).
    #[must_use]
    pub fn with_setting(mut self, name: &str, value: &str) -> Self {
        self.options.settings.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Limits what the run may spend.
    #[must_use]
    pub fn with_limits(self, limits: RunLimits) -> Self {
        Self { limits, ..self }
    }

    /// Gives the run an id that was chosen before.
    #[must_use]
    pub fn with_run_id(self, id: &str) -> Self {
        Self { run_id: Some(id.to_owned()), ..self }
    }

    /// Stores the words of the command that starts the run in its record.
    #[must_use]
    pub fn with_command(self, words: Vec<String>) -> Self {
        Self { command: words, ..self }
    }

    /// Continues an interrupted run: only the missing trials are run. `trusted_at_start` says that its scripts are
    /// trusted only because the command that began the run trusted them, so they must not have changed since.
    #[must_use]
    pub fn resuming(self, run_dir: RunDir, trusted_at_start: bool) -> Self {
        Self { resumed: Some(ResumedRun { run_dir, trusted_at_start }), ..self }
    }

    /// Runs cases that were already read, in place of those at the paths.
    #[must_use]
    pub fn with_reading(self, reading: EvalFiles) -> Self {
        Self { reading: Some(reading), ..self }
    }

    /// Changes what was read before it is planned.
    #[must_use]
    pub fn changing_reading(
        self,
        change: impl FnOnce(&mut EvalFiles) -> Result<(), SessionError> + 's,
    ) -> Self {
        Self { change: Some(Box::new(change)), ..self }
    }

    /// Reads, plans and runs the suites, and waits for the results. Fails if nothing is left to run.
    pub async fn run(self, observer: &mut dyn RunObserver) -> Result<FinishedRun, SessionError> {
        let prepared = self.read_suites(observer)?.prepare(observer)?;
        let Some(prepared) = prepared else {
            return Err(SessionError::Refused(
                "there is nothing to run in this part of the cases".to_owned(),
            ));
        };
        prepared.run(observer).await
    }
}
