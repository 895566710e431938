//! Results for people and machines.
//!
//! In: `Results`. Out: bytes in one format a file. Never: calls a stage.

mod activation;
mod changes;
pub mod comparison;
mod csv;
mod diagnostics;
mod documents;
pub mod figures;
mod fold;
mod folder_record;
mod github;
mod graded;
mod grading;
mod html;
mod json;
mod junit;
mod left_behind;
mod live;
mod markdown;
mod markup;
mod progress;
mod results;
mod safe;
mod skill_creator;
mod styles;
mod text;
mod when;
mod writing_skills;

use std::io::Write;
use std::path::Path;

pub use changes::render as render_changes;
pub use diagnostics::{render as render_diagnostics, shown_path};
pub use documents::{
    Called, Checked, CheckedFile, ComparedTexts, Flip, Graded, GradedCheck, GradedGate, GradedVerdict,
    Listed, ListedCase, ListedFile, ListedRun, ListedRuns, ListedSuite, ListedTrials, Needed, Problem,
    Regraded,
};
pub use fold::fold;
pub use graded::render as render_graded;
pub use grading::Grading;
pub use live::LiveView;
pub use progress::{Progress, Suites};
pub use results::Results;
pub use safe::{printable, safe};
pub use writing_skills::free;

/// One output format. A new one is a file and a line in `REPORTS`.
pub struct Report {
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    pub form: Form,
    /// What it adds to a file that the environment names, if it does.
    pub adds: Option<Addition>,
}

/// Writes something about a run.
pub type Writer = fn(&Results, &mut dyn Write) -> std::io::Result<()>;

/// What a report is written to.
pub enum Form {
    /// One file, or standard output.
    File(Writer),
    /// Several files in a folder of their own. What is returned are notes on what is not in them.
    Folder(fn(&Results, &Path) -> std::io::Result<Vec<String>>),
}

/// Something for a file that grows from step to step.
pub struct Addition {
    /// The variable that names the file.
    pub variable: &'static str,
    pub write: Writer,
}

pub static REPORTS: &[&Report] = &[
    &text::REPORT,
    &json::REPORT,
    &markdown::REPORT,
    &html::REPORT,
    &junit::REPORT,
    &csv::REPORT,
    &activation::REPORT,
    &github::REPORT,
    &github::COMMENT,
    &skill_creator::REPORT,
    &skill_creator::AGENTSKILLS,
    &writing_skills::REPORT,
];

pub fn report(name: &str) -> Option<&'static Report> {
    REPORTS.iter().copied().find(|report| report.name == name)
}

pub fn names() -> Vec<&'static str> {
    REPORTS.iter().map(|report| report.name).collect()
}
