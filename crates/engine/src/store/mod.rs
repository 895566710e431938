//! What is kept of a run.
//!
//! In: events and the files of a trial. Out: a run directory that is complete at any moment.
//! Never: keeps a secret; lets anyone hear of a trial before it is on disk.

mod cache;
mod documents;
mod facts;
mod find_trials;
mod index;
mod labels;
mod live;
mod log;
mod noise;
mod records;
mod run_dir;
mod secrets;
mod trials;

pub use cache::Cache;
pub use documents::{PlannedTrial, RunInfo, RunSetting, RunSkill, RunSuite, TrialChecks};
pub use facts::{Left, StagedSkill, TrialFacts, TurnFacts};
pub use find_trials::find_trials;
pub use index::{
    CaseCell, CaseRow, CheckCounts, CheckRow, Choices, Column, Found, Index, IndexError, IndexSink, Metric,
    Order, Point, RunRow, Scope, Spent, SuiteRow, TrialFilter, TrialRow,
};
pub use labels::Label;
pub use live::Live;
pub use log::EventLog;
pub use noise::{keep_noise, read_noise};
pub use records::{probes, records, skills_judged};
pub use run_dir::{RunDir, SKILLS, StoreError};
pub use secrets::Scrubber;
pub use trials::StoredTrials;
