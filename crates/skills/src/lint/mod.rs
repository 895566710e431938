//! What is wrong with a skill, seen without running it.
//!
//! In: a skill on disk. Out: `Linted`, its problems with where they stand in its SKILL.md.
//! Never: runs anything; opens a file outside the skill's folder.

mod convention;
mod document;
mod draft;
mod find;
mod keys;
mod page;
mod prose;
mod reference;
mod rules;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use convention::{Alignment, ConventionCompliance, Mark, convention_compliance};
pub use document::{Tally, document};
pub use draft::{Draft, Front};
pub use find::{FindError, find};
pub use rules::{FOR_COMMANDS, RULES, rule};

use practicum_core::model::{Diagnostic, Diagnostics, Severity, Span};

/// One thing a skill can have wrong. A new one is a file in `rules` and a line in `RULES`.
pub struct LintRule {
    /// A stable kebab-case name.
    pub code: &'static str,
    pub severity: Severity,
    /// What the rule wants, in one sentence.
    pub summary: &'static str,
    /// Why it wants that.
    pub why: &'static str,
    pub bad: &'static str,
    pub good: &'static str,
    /// The convention of writing-skills that a finding breaks, if it breaks one.
    pub convention: Option<Convention>,
    pub check: fn(&Draft, &mut Findings<'_>),
}

/// The conventions that can be decided by code, at least in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    Frontmatter,
    Description,
    Tokens,
    Disclosure,
    TypeAlignment,
}

impl LintRule {
    /// The whole explanation, for people.
    pub fn explain(&self) -> String {
        format!(
            "{} ({})\n{}\n\n{}\n\nBad:\n\n{}\n\nGood:\n\n{}\n",
            self.code,
            self.severity_word(),
            self.summary,
            wrapped(self.why),
            indented(self.bad),
            indented(self.good)
        )
    }

    pub fn severity_word(&self) -> &'static str {
        match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Notice => "notice",
        }
    }

    fn findings(&self, draft: &Draft) -> Vec<Diagnostic> {
        let mut findings = Findings { rule: self, found: Vec::new() };
        (self.check)(draft, &mut findings);
        findings.found
    }
}

/// Lines that fit a terminal.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 90;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| if line.is_empty() { String::new() } else { format!("    {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// Where a rule says what it found. Code and severity are the rule's own.
pub struct Findings<'r> {
    rule: &'r LintRule,
    found: Vec<Diagnostic>,
}

impl Findings<'_> {
    pub fn add(&mut self, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.push(span.into(), message.into(), None);
    }

    pub fn add_help(
        &mut self,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(span.into(), message.into(), Some(help.into()));
    }

    fn push(&mut self, span: Option<Span>, message: String, help: Option<String>) {
        let LintRule { code, severity, .. } = *self.rule;
        self.found.push(Diagnostic { severity, code, message, span, help });
    }
}

/// A skill and its problems, the worst first.
#[derive(Debug, Clone)]
pub struct Linted {
    pub file: PathBuf,
    pub skill: String,
    /// What the spans of the problems point into.
    pub text: String,
    pub diagnostics: Diagnostics,
}

impl Linted {
    pub fn ok(&self, strict: bool) -> bool {
        !self.diagnostics.iter().any(|problem| match problem.severity {
            Severity::Error => true,
            Severity::Warning => strict,
            Severity::Notice => false,
        })
    }
}

/// Lints one SKILL.md and the folder it stands in.
pub fn lint(file: &Path) -> Linted {
    lint_draft(Draft::read(file))
}

fn lint_draft(draft: Draft) -> Linted {
    let is_command = draft.is_command();
    let fitting = RULES.iter().filter(|rule| !is_command || FOR_COMMANDS.contains(&rule.code));
    let mut found: Vec<Diagnostic> = fitting.flat_map(|rule| rule.findings(&draft)).collect();
    // The worst first, because the number of problems kept is bounded.
    found.sort_by_key(|problem| (problem.severity, problem.span));
    let mut diagnostics = Diagnostics::default();
    for problem in found {
        diagnostics.push(problem);
    }
    Linted { skill: draft.name(), file: draft.file, text: draft.text, diagnostics }
}
