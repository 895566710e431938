//! Results for people and machines.
//!
//! In: `Results`. Out: bytes in one format a file. Never: calls a stage.

mod changes;
pub mod comparison;
mod diagnostics;
mod documents;
pub mod figures;
mod graded;
mod json;
mod live;
mod progress;
mod safe;
mod styles;
mod text;

use std::io::Write;
use std::path::Path;

pub use changes::render as render_changes;
pub use diagnostics::render as render_diagnostics;
pub use documents::{
    Checked, CheckedFile, Graded, GradedCheck, GradedGate, GradedVerdict, Listed, ListedCase, ListedFile,
    ListedRun, ListedRuns, ListedSuite, ListedTrials, Needed, Problem, Regraded,
};
pub use graded::render as render_graded;
pub use live::LiveView;
pub use progress::Progress;
pub use safe::safe;

use crate::model::{Summary, TrialRecord};

/// What a report is made from.
pub struct Results<'r> {
    pub summary: &'r Summary,
    /// Trials that did not pass, as many as are worth showing.
    pub troubles: &'r [TrialRecord],
    pub run_dir: &'r Path,
    pub scripted: bool,
    /// Whether they came from a cassette.
    pub replayed: bool,
}

/// One output format. A new one is a file and a line in `REPORTS`.
pub trait Report: Sync {
    fn name(&self) -> &'static str;

    fn write(&self, results: &Results<'_>, out: &mut dyn Write) -> std::io::Result<()>;
}

pub static REPORTS: &[&dyn Report] = &[&text::Text, &json::Json];

pub fn report(name: &str) -> Option<&'static dyn Report> {
    REPORTS.iter().copied().find(|report| report.name() == name)
}
