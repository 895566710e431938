//! The stored records of runs.
//!
//! In: events and the files of a trial. Out: a run directory that is consistent at any moment. Never: stores a
//! secret; reports a trial before it is on disk.

mod baseline;
mod calibration_input;
mod documents;
#[doc(hidden)]
mod facts;
mod find_trials;
mod group_sync;
#[doc(hidden)]
pub mod history;
mod import_run;
#[doc(hidden)]
mod index;
mod judged_run;
mod label_file;
#[doc(hidden)]
mod labels;
mod log;
mod log_line;
mod noise;
mod record_key;
mod records;
#[doc(hidden)]
pub mod reload_trial;
mod run_dir;
#[doc(hidden)]
mod run_lock;
pub mod transcript;
#[doc(hidden)]
mod trial_cache;
mod trial_digest;
mod trials;

pub use crate::workspace::secrets::Scrubber;
pub use baseline::{BASELINE_FILE, baseline_of_run, read_baseline, write_baseline};
pub use calibration_input::CalibrationInput;
pub use documents::{PlannedTrial, RunInfo, RunSetting, RunSkill, RunSuite, RunSuites, TrialChecks};
pub use facts::{FolderListing, StagedSkill, TrialFacts, TurnFacts};
pub use find_trials::find_trials;
pub use import_run::{ImportedRun, import_run};
pub use index::{
    CaseCell, CaseRow, CheckCounts, CheckRow, ConditionColumn, Index, IndexCounts, IndexError, IndexSink,
    Metric, MetricPoint, MetricScope, PastTrialCosts, RunRow, SuiteRow, TrialFilter, TrialFilterValues,
    TrialOrder, TrialRow,
};
pub use judged_run::{JudgedItem, JudgedRun};
pub use label_file::{LabelRow, LabelToFill, read_label_file};
pub use labels::{HumanLabel, LabelKey, PersonLabels, StoredLabels};
pub use log::EventLog;
pub use log_line::{LineMarker, is_damaged};
pub use noise::{has_foreign_noise, import_noise, read_noise, save_noise};
pub use record_key::{MarkKind, RECORD_KEY_VARIABLE, RecordKey};
pub use records::{
    read_own_probes, read_own_records, read_own_skill_judgements, read_probes, read_records,
    read_skill_judgements,
};
pub use run_dir::{RunDir, SKILLS_FOLDER, StoreError, refuse_linked_records};
pub use run_lock::RunLock;
pub use trial_cache::TrialCache;
pub use trial_digest::{TrialDigest, TrialOrigin};
pub use trials::StoredTrials;
