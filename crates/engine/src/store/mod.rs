//! The stored records of runs.
//!
//! In: events and the files of a trial. Out: a run directory that is consistent at any moment. Never: stores a
//! secret; reports a trial before it is on disk.

mod baseline;
mod documents;
#[doc(hidden)]
mod facts;
mod find_trials;
#[doc(hidden)]
pub mod history;
#[doc(hidden)]
mod index;
#[doc(hidden)]
mod labels;
mod log;
mod noise;
mod records;
#[doc(hidden)]
pub mod reload_trial;
mod run_dir;
#[doc(hidden)]
mod run_lock;
mod secrets;
pub mod transcript;
#[doc(hidden)]
mod trial_cache;
mod trials;

pub use baseline::{BASELINE_FILE, baseline_of_run, read_baseline, write_baseline};
pub use documents::{PlannedTrial, RunInfo, RunSetting, RunSkill, RunSuite, RunSuites, TrialChecks};
pub use facts::{FolderListing, StagedSkill, TrialFacts, TurnFacts};
pub use find_trials::find_trials;
pub use index::{
    CaseCell, CaseRow, CheckCounts, CheckRow, ConditionColumn, Index, IndexCounts, IndexError, IndexSink,
    Metric, MetricPoint, MetricScope, PastTrialCosts, RunRow, SuiteRow, TrialFilter, TrialFilterValues,
    TrialOrder, TrialRow,
};
pub use labels::HumanLabel;
pub use log::EventLog;
pub use noise::{read_noise, save_noise};
pub use records::{read_probes, read_records, read_skill_judgements};
pub use run_dir::{RunDir, SKILLS_FOLDER, StoreError, refuse_linked_records};
pub use run_lock::RunLock;
pub use secrets::Scrubber;
pub use trial_cache::TrialCache;
pub use trials::StoredTrials;
