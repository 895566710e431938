//! The form in which `check` and `lint` print their findings.

use super::{print, print_json};
use crate::report::{FileFindings, render_github_annotations, render_sarif};

/// The arguments that choose the form.
#[derive(clap::Args)]
pub struct FindingsArgs {
    /// Print the findings as JSON, and nothing else, on standard output
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The form of the findings on standard output
    #[arg(long, value_name = "FORM", value_enum)]
    format: Option<FindingsForm>,
}

/// A form of findings.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FindingsForm {
    /// For people
    Text,
    /// As --json
    Json,
    /// SARIF 2.1.0, for code scanning and editors
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

impl FindingsArgs {
    /// Gives the form that the user chose.
    pub fn form(&self) -> FindingsForm {
        self.format.unwrap_or(if self.json { FindingsForm::Json } else { FindingsForm::Text })
    }
}

impl FindingsForm {
    /// Prints findings for other programs. Says whether this form is one of those; the other two are the command's own.
    pub fn print_for_programs(self, files: &[FileFindings]) -> anyhow::Result<bool> {
        match self {
            FindingsForm::Text | FindingsForm::Json => return Ok(false),
            FindingsForm::Sarif => print_json(&render_sarif(files))?,
            FindingsForm::Github => print(&render_github_annotations(files))?,
        }
        Ok(true)
    }
}
