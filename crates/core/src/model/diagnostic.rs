//! Errors and warnings about source files, with their positions.

use schemars::JsonSchema;
use serde::Serialize;

/// A range of bytes in one source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// Makes a span from its first byte and the byte after its last one.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Gives the span from the beginning of this one to the end of another.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start, other.end.max(self.start))
    }

    /// Gives the line and the column, both from 1, columns in characters.
    pub fn position(self, text: &str) -> TextPosition {
        let mut at = self.start.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        TextPosition {
            line: before.bytes().filter(|&b| b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A line and a column in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The number of the line, from 1.
    pub line: usize,
    /// The number of the column, from 1.
    pub column: usize,
}

/// How serious a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, and its author would want to know.
    Warning,
    /// Something was kept or ignored on purpose.
    Notice,
}

/// An error or a warning: what is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How serious the problem is.
    pub severity: Severity,
    /// A stable kebab-case name for this kind of problem.
    pub code: &'static str,
    /// The message for the author of the file.
    pub message: String,
    /// The position of the problem in the file, if it has one.
    pub span: Option<Span>,
    /// A sentence about what to do.
    pub help: Option<String>,
}

/// Every problem of one source, in the order found. Reading goes on after an error, so that a person sees all
/// problems at once. Their number is limited, because input may be hostile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    entries: Vec<Diagnostic>,
    dropped: usize,
}

const MAX_DIAGNOSTICS: usize = 200;

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.entries.len() < MAX_DIAGNOSTICS
            || diagnostic.severity == Severity::Error && !self.has_errors()
        {
            self.entries.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds an error: the file cannot be used as it is.
    pub fn error(&mut self, code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.add(Severity::Error, code, span.into(), message.into(), None);
    }

    /// Adds an error with a sentence about what to do.
    pub fn error_with_help(
        &mut self,
        code: &'static str,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Error, code, span.into(), message.into(), Some(help.into()));
    }

    /// Adds a warning: the file can be used, but probably not as its author means it.
    pub fn warning(&mut self, code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.add(Severity::Warning, code, span.into(), message.into(), None);
    }

    /// Adds a warning with a sentence about what to do.
    pub fn warning_with_help(
        &mut self,
        code: &'static str,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.add(Severity::Warning, code, span.into(), message.into(), Some(help.into()));
    }

    /// Adds a notice: something that the author may want to know.
    pub fn notice(&mut self, code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.add(Severity::Notice, code, span.into(), message.into(), None);
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        span: Option<Span>,
        message: String,
        help: Option<String>,
    ) {
        self.push(Diagnostic { severity, code, message, span, help });
    }

    /// Turns the warnings with one of these codes into errors. Says whether there were any.
    pub fn raise_to_errors(&mut self, codes: &[&str]) -> bool {
        let mut any = false;
        for warning in self.entries.iter_mut().filter(|found| codes.contains(&found.code)) {
            warning.severity = Severity::Error;
            any = true;
        }
        any
    }

    /// Turns all errors into warnings, for a source that is not going to be run.
    pub fn lower_to_warnings(&mut self) {
        for error in self.entries.iter_mut().filter(|found| found.severity == Severity::Error) {
            error.severity = Severity::Warning;
        }
    }

    /// Sorts the problems as a reader meets them: those of the whole file first, then by position.
    pub fn sort(&mut self) {
        self.entries.sort_by_key(|diagnostic| diagnostic.span.map(|span| span.start));
    }

    /// Gives the problems of one severity.
    pub fn with_severity(&self, severity: Severity) -> Self {
        let found = self.entries.iter().filter(|problem| problem.severity == severity).cloned().collect();
        Self { entries: found, dropped: 0 }
    }

    /// Says whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.entries.iter().any(|d| d.severity == Severity::Error)
    }

    /// Gives the diagnostics in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.entries.iter()
    }

    /// Gives the number of problems that were dropped because there were too many to show.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Adds the diagnostics of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        self.dropped += other.dropped;
        for diagnostic in other.entries {
            self.push(diagnostic);
        }
    }
}
