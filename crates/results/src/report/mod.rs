//! Reports of results for people and machines.
//!
//! In: `RunResults`. Out: bytes; each format has its file. Never: calls a stage.

mod activation;
mod agent_files;
pub mod comparison;
mod csv;
mod diagnostics;
mod documents;
mod escaping;
pub mod figures;
mod folder_record;
mod github;
mod grading;
mod html;
mod json;
mod junit;
mod line_wrap;
mod live;
mod markdown;
mod progress;
mod run_results;
mod skill_creator;
mod styles;
mod terminal_safe;
mod text;
mod text_grading;
mod timestamps;
mod verdict_changes;
mod writing_skills;

use std::io::Write;
use std::path::Path;

pub use diagnostics::{display_path, render as render_diagnostics};
pub use documents::{
    CheckDocument, CheckFlip, CheckedFile, FileProblem, GradedCheck, GradedGate, GradedVerdict, ListedCase,
    ListedFile, ListedRun, ListedSuite, ListedTrials, PlanListing, PowerDocument, RegradeDocument,
    RunListing, SkillCallDocument, TextComparisonDocument, TextGradingDocument,
};
pub use grading::GradingDocument;
pub use line_wrap::wrap_lines;
pub use live::LiveView;
pub use progress::{PlainProgress, SuiteNaming};
pub use run_results::RunResults;
pub use terminal_safe::{printable_text, terminal_safe};
pub use text_grading::render as render_graded;
pub use verdict_changes::render as render_changes;
pub use writing_skills::unused_name;

/// An output format. A new one is a file and a line in `REPORTS`.
pub struct ReportFormat {
    pub name: &'static str,
    /// A description in a few words.
    pub description: &'static str,
    pub output: ReportOutput,
    /// The part that goes to a file named by an environment variable, if there is one.
    pub environment_file: Option<EnvironmentFileReport>,
}

/// A function that writes a report of a run.
pub type ReportWriter = fn(&RunResults, &mut dyn Write) -> std::io::Result<()>;

/// The destination of a report.
pub enum ReportOutput {
    /// One file, or standard output.
    File(ReportWriter),
    /// Several files in a folder of their own. The function returns notes on what the files do not contain.
    Folder(fn(&RunResults, &Path) -> std::io::Result<Vec<String>>),
}

/// A report that is appended to a file named by an environment variable.
pub struct EnvironmentFileReport {
    /// The variable that names the file.
    pub variable: &'static str,
    pub write: ReportWriter,
}

pub static REPORTS: &[&ReportFormat] = &[
    &text::REPORT,
    &json::REPORT,
    &markdown::REPORT,
    &html::REPORT,
    &junit::REPORT,
    &csv::REPORT,
    &activation::REPORT,
    &github::REPORT,
    &github::COMMENT_REPORT,
    &skill_creator::REPORT,
    &skill_creator::AGENTSKILLS_REPORT,
    &writing_skills::REPORT,
];

pub fn find_report(name: &str) -> Option<&'static ReportFormat> {
    REPORTS.iter().copied().find(|report| report.name == name)
}

pub fn report_names() -> Vec<&'static str> {
    REPORTS.iter().map(|report| report.name).collect()
}
