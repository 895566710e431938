//! Code that the tests of dialects share.

mod corpus;
mod fixtures;
mod mutate;
mod properties;
mod schema_rows;
mod schemas;
pub mod suites;

use std::path::{Path, PathBuf};

use super::{Dialect, EvalFileLocation};
use practicum_core::model::{Diagnostic, Diagnostics, Severity, Suite};
use practicum_core::tree::{SourceFile, SourceSyntax};

pub fn parse_source(path: PathBuf, text: &str) -> SourceFile {
    let mut diagnostics = Diagnostics::default();
    let source =
        SourceFile::parse(&path, text.to_owned(), SourceSyntax::detect(&path, text), &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{text}\n{diagnostics:?}");
    source.expect("a tree")
}

pub fn location_in(folder: &Path) -> EvalFileLocation {
    EvalFileLocation::new(folder.to_owned(), folder.to_owned())
}

/// Reads a suite from a text as if it were at `path`, and gives the diagnostics.
pub fn lower_source(
    dialect: &dyn Dialect,
    source: &SourceFile,
    place: &EvalFileLocation,
) -> (Option<Suite>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let suite = dialect.lower(source, place, &mut diagnostics);
    (suite, diagnostics)
}

/// Gives a line like `error missing-key 3:5` for each diagnostic of at least the severity `least`.
pub fn describe_diagnostics(diagnostics: &Diagnostics, source: &SourceFile, least: Severity) -> Vec<String> {
    let is_severe_enough = |diagnostic: &&Diagnostic| diagnostic.severity <= least;
    diagnostics
        .iter()
        .filter(is_severe_enough)
        .map(|diagnostic| describe_diagnostic(diagnostic, source))
        .collect()
}

fn describe_diagnostic(diagnostic: &Diagnostic, source: &SourceFile) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Notice => "notice",
    };
    let at = diagnostic.span.map_or_else(String::new, |span| {
        let position = span.position(&source.text);
        format!(" {}:{}", position.line, position.column)
    });
    format!("{severity} {}{at}", diagnostic.code)
}

/// Reads a text as a file in a folder that does not exist, and compares the diagnostics. The diagnostic about the
/// missing skill is left out.
pub fn check_diagnostics(dialect: &dyn Dialect, file: &str, text: &str, expected: &[&str]) -> Option<Suite> {
    let folder = Path::new("/nowhere/evals");
    let source = parse_source(folder.join(file), text);
    let (suite, diagnostics) = lower_source(dialect, &source, &location_in(folder));
    let mut said = describe_diagnostics(&diagnostics, &source, Severity::Notice);
    said.retain(|said| !said.starts_with("warning skill-not-found"));
    assert_eq!(said, expected, "{text}\n{diagnostics:#?}");
    suite
}
