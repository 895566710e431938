//! The reports that are known: the built-in table, and what a program adds to it.

use super::{REPORTS, ReportFormat};

/// The kinds of reports that are known.
///
/// Starts with the built-in ones. A program adds its own; one with the name of an earlier one replaces it.
///
/// ```
/// use practicum_results::report::{ReportFormat, ReportOutput, ReportRegistry};
///
/// static PASSED: ReportFormat = ReportFormat {
///     name: "passed",
///     description: "the number of trials that passed",
///     output: ReportOutput::File(|results, out| writeln!(out, "{}", results.summary.totals.passed)),
///     environment_file: None,
/// };
/// let registry = ReportRegistry::default().with_report(&PASSED);
/// assert!(registry.report("passed").is_some() && registry.report("junit").is_some());
/// ```
#[derive(Clone)]
pub struct ReportRegistry {
    reports: Vec<&'static ReportFormat>,
}

impl Default for ReportRegistry {
    fn default() -> Self {
        Self { reports: REPORTS.to_vec() }
    }
}

impl ReportRegistry {
    /// Adds a kind of report.
    #[must_use]
    pub fn with_report(mut self, report: &'static ReportFormat) -> Self {
        self.reports.retain(|known| known.name != report.name);
        self.reports.push(report);
        self
    }

    /// Gives all reports, the built-in ones first.
    pub fn reports(&self) -> &[&'static ReportFormat] {
        &self.reports
    }

    /// Gives the report of this name.
    pub fn report(&self, name: &str) -> Option<&'static ReportFormat> {
        self.reports.iter().copied().find(|report| report.name == name)
    }
}
