//! The stored records of runs.
//!
//! In: events and the files of a trial. Out: a run directory that is consistent at any moment. Never: stores a
//! secret; reports a trial before it is on disk.

mod documents;
mod facts;
mod find_trials;
mod index;
mod labels;
mod log;
mod noise;
mod records;
mod run_dir;
mod run_lock;
mod secrets;
mod trial_cache;
mod trials;

pub use documents::{PlannedTrial, RunInfo, RunSetting, RunSkill, RunSuite, TrialChecks};
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
pub use run_dir::{RunDir, SKILLS_FOLDER, StoreError};
pub use run_lock::RunLock;
pub use secrets::Scrubber;
pub use trial_cache::TrialCache;
pub use trials::StoredTrials;
