//! Reports of results for people and machines.
//!
//! In: `RunResults`. Out: bytes; each format has its file. Never: calls a stage.

pub mod ablation;
mod activation;
mod agent_files;
mod agent_matrix;
pub mod comparison;
mod csv;
pub mod diagnosis;
mod diagnostics;
// The shapes of the program's own JSON output, which `practicum schema` describes.
#[doc(hidden)]
mod documents;
mod escaping;
pub mod figures;
mod findings;
mod folder_record;
mod github;
mod grading;
mod html;
mod json;
mod junit;
mod line_wrap;
mod live;
mod markdown;
pub mod paraphrases;
mod progress;
mod registry;
pub(crate) mod rich_text;
pub mod routing;
mod run_results;
mod skill_creator;
mod styles;
mod terminal_safe;
mod text;
mod text_grading;
mod timestamps;
mod traces;
mod verdict_changes;
mod version_gradings;
mod writing_skills;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

pub use diagnostics::{display_path, render as render_diagnostics};
pub use documents::{
    CheckDocument, CheckFlip, CheckedFile, FileProblem, FittingFormat, FormatPoints, GradedCheck, GradedGate,
    GradedSession, GradedVerdict, ListedCase, ListedFile, ListedRun, ListedSuite, ListedTrials, PlanListing,
    PowerDocument, RegradeDocument, RunListing, SkillCallDocument, TextComparisonDocument,
    TextGradingDocument,
};
pub use findings::{FileFindings, render_github_annotations, render_sarif};
pub use grading::GradingDocument;
pub use line_wrap::wrap_lines;
pub use live::LiveView;
pub use progress::{PlainProgress, SuiteNaming};
pub use registry::ReportRegistry;
pub use run_results::RunResults;
pub use terminal_safe::{printable_text, terminal_safe, terminal_safe_json};
pub use text_grading::render as render_graded;
pub use traces::{TraceFormat, TraceReceiver, for_each_trace, write_traces};
pub use verdict_changes::render as render_changes;
pub use version_gradings::write_version_gradings;

/// A kind of report of a run.
///
/// Inside this crate, a new one is a file and a line in `REPORTS`. A program adds its own with
/// [`ReportRegistry::with_report`].
pub struct ReportFormat {
    /// The name of the report, as `--report` takes it.
    pub name: &'static str,
    /// A description in a few words.
    pub description: &'static str,
    /// The function that writes the report, and whether it is one file or several.
    pub output: ReportOutput,
    /// The part that goes to a file named by an environment variable, if there is one.
    pub environment_file: Option<EnvironmentFileReport>,
}

impl ReportFormat {
    /// Writes the report of a run to a file, or to a folder if it is several files. Gives notes on what the files do
    /// not contain.
    ///
    /// ```no_run
    /// use std::path::Path;
    ///
    /// use practicum_engine::store::RunDir;
    /// use practicum_results::report::{ReportRegistry, RunResults};
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let run = RunDir::find(Path::new("path/to/project"), "latest")?;
    /// let results = RunResults::open(run)?;
    /// let junit = ReportRegistry::default().report("junit").expect("a built-in report");
    /// for note in junit.write_to_path(&results, Path::new("junit.xml"))? {
    ///     println!("{note}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_to_path(&self, results: &RunResults, path: &Path) -> std::io::Result<Vec<String>> {
        match self.output {
            ReportOutput::File(write) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                write_to_file(results, File::create(path)?, write)?;
                Ok(Vec::new())
            }
            ReportOutput::Folder(write) => {
                std::fs::create_dir_all(path)?;
                write(results, path)
            }
        }
    }
}

impl EnvironmentFileReport {
    /// Appends the report to a file.
    pub fn append_to_file(&self, results: &RunResults, path: &Path) -> std::io::Result<()> {
        write_to_file(results, File::options().create(true).append(true).open(path)?, self.write)
    }
}

fn write_to_file(results: &RunResults, file: File, write: ReportWriter) -> std::io::Result<()> {
    // A file gets no colours.
    let mut out = BufWriter::new(anstream::StripStream::new(file));
    write(results, &mut out)?;
    out.flush()
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
    /// Writes the part that is appended.
    pub write: ReportWriter,
}

/// The built-in reports. To add one, add a file and a line here.
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

/// Gives the built-in report of this name.
pub fn find_report(name: &str) -> Option<&'static ReportFormat> {
    REPORTS.iter().copied().find(|report| report.name == name)
}

/// Gives the names of the built-in reports.
pub fn report_names() -> Vec<&'static str> {
    REPORTS.iter().map(|report| report.name).collect()
}
