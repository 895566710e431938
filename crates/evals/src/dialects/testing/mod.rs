//! What the tests of dialects share.

mod corpus;
mod fixtures;
mod mutate;
mod properties;
mod schema_rows;
mod schemas;
pub mod suites;

use std::path::{Path, PathBuf};

use super::{Dialect, Place};
use practicum_core::model::{Diagnostic, Diagnostics, Severity, Suite};
use practicum_core::tree::{Source, Syntax};

pub fn parse(path: PathBuf, text: &str) -> Source {
    let mut diagnostics = Diagnostics::default();
    let source = Source::parse(&path, text.to_owned(), Syntax::of(&path, text), &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{text}\n{diagnostics:?}");
    source.expect("a tree")
}

pub fn place(folder: &Path) -> Place {
    Place { root: folder.to_owned(), project: folder.to_owned(), plugins: None, skill: None }
}

/// A suite read from a text that stands at `path`, and what was said about it.
pub fn lower(dialect: &dyn Dialect, source: &Source, place: &Place) -> (Option<Suite>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let suite = dialect.lower(source, place, &mut diagnostics);
    (suite, diagnostics)
}

/// `error missing-key 3:5` for each thing said, those of `quieter` severity left out.
pub fn said(diagnostics: &Diagnostics, source: &Source, least: Severity) -> Vec<String> {
    let heard = |diagnostic: &&Diagnostic| diagnostic.severity <= least;
    diagnostics.iter().filter(heard).map(|diagnostic| short(diagnostic, source)).collect()
}

fn short(diagnostic: &Diagnostic, source: &Source) -> String {
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

/// Reads a text as a file that stands nowhere, and compares what is said about it. That nowhere has
/// no skill goes without saying.
pub fn check(dialect: &dyn Dialect, file: &str, text: &str, expected: &[&str]) -> Option<Suite> {
    let folder = Path::new("/nowhere/evals");
    let source = parse(folder.join(file), text);
    let (suite, diagnostics) = lower(dialect, &source, &place(folder));
    let mut said = said(&diagnostics, &source, Severity::Notice);
    said.retain(|said| !said.starts_with("warning skill-not-found"));
    assert_eq!(said, expected, "{text}\n{diagnostics:#?}");
    suite
}
