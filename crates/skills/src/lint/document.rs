//! The linter's findings as a JSON document, and their counts.

use std::fmt;

use serde::Serialize;

use super::LintedSkill;
use practicum_core::model::{Severity, count_with_noun};

/// The JSON document with the linter's findings.
#[derive(Serialize)]
struct LintDocument<'l> {
    schema_version: u32,
    files: Vec<LintFileEntry<'l>>,
    ok: bool,
}

#[derive(Serialize)]
struct LintFileEntry<'l> {
    path: String,
    skill: &'l str,
    ok: bool,
    problems: Vec<LintProblem<'l>>,
    /// The number of problems that are not listed because there are too many.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

#[derive(Serialize)]
struct LintProblem<'l> {
    severity: Severity,
    code: &'static str,
    message: &'l str,
    line: Option<usize>,
    column: Option<usize>,
    help: Option<&'l str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde wants")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Writes the document that `lint --json` prints.
pub fn lint_document(linted: &[LintedSkill], strict: bool) -> serde_json::Result<String> {
    let files: Vec<LintFileEntry<'_>> = linted.iter().map(|linted| file_entry(linted, strict)).collect();
    let ok = files.iter().all(|file| file.ok);
    serde_json::to_string_pretty(&LintDocument { schema_version: 1, files, ok })
}

fn file_entry(linted: &LintedSkill, strict: bool) -> LintFileEntry<'_> {
    let problems = linted.diagnostics.iter().map(|problem| {
        let position = problem.span.map(|span| span.position(&linted.text));
        LintProblem {
            severity: problem.severity,
            code: problem.code,
            message: &problem.message,
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            help: problem.help.as_deref(),
        }
    });
    LintFileEntry {
        path: linted.file.display().to_string(),
        skill: &linted.skill,
        ok: linted.passes(strict),
        problems: problems.collect(),
        left_out: linted.diagnostics.dropped(),
    }
}

/// The number of problems of each kind: the last line of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LintTally {
    /// The number of skills.
    pub skills: usize,
    /// The number of errors.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of notices.
    pub notices: usize,
}

impl LintTally {
    /// Counts the problems of linted skills.
    pub fn from_linted(linted: &[LintedSkill]) -> Self {
        let mut tally = Self { skills: linted.len(), ..Self::default() };
        for problem in linted.iter().flat_map(|linted| linted.diagnostics.iter()) {
            match problem.severity {
                Severity::Error => tally.errors += 1,
                Severity::Warning => tally.warnings += 1,
                Severity::Notice => tally.notices += 1,
            }
        }
        tally
    }
}

impl fmt::Display for LintTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |count: usize, word: &str| (count > 0).then(|| count_with_noun(count, word));
        let problems: Vec<String> =
            [some(self.errors, "error"), some(self.warnings, "warning"), some(self.notices, "notice")]
                .into_iter()
                .flatten()
                .collect();
        let problems = if problems.is_empty() { "no problems".to_owned() } else { problems.join(", ") };
        write!(f, "{}: {problems}", some(self.skills, "skill").unwrap_or_else(|| "no skills".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_in_words() {
        for (tally, expected) in [
            ((2, 1, 3, 0), "2 skills: 1 error, 3 warnings"),
            ((1, 0, 0, 1), "1 skill: 1 notice"),
            ((1, 0, 0, 0), "1 skill: no problems"),
        ] {
            let (skills, errors, warnings, notices) = tally;
            assert_eq!(LintTally { skills, errors, warnings, notices }.to_string(), expected);
        }
    }
}
