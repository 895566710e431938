use std::fmt;

use serde::Serialize;

use super::Linted;
use practicum_core::model::{Severity, counted};

/// The linter's findings for machines.
#[derive(Serialize)]
struct Document<'l> {
    schema_version: u32,
    files: Vec<File<'l>>,
    ok: bool,
}

#[derive(Serialize)]
struct File<'l> {
    path: String,
    skill: &'l str,
    ok: bool,
    problems: Vec<Problem<'l>>,
    /// How many problems were too many to list.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

#[derive(Serialize)]
struct Problem<'l> {
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

/// The document that `lint --json` prints.
pub fn document(linted: &[Linted], strict: bool) -> serde_json::Result<String> {
    let files: Vec<File<'_>> = linted.iter().map(|linted| file(linted, strict)).collect();
    let ok = files.iter().all(|file| file.ok);
    serde_json::to_string_pretty(&Document { schema_version: 1, files, ok })
}

fn file(linted: &Linted, strict: bool) -> File<'_> {
    let problems = linted.diagnostics.iter().map(|problem| {
        let position = problem.span.map(|span| span.position(&linted.text));
        Problem {
            severity: problem.severity,
            code: problem.code,
            message: &problem.message,
            line: position.map(|position| position.line),
            column: position.map(|position| position.column),
            help: problem.help.as_deref(),
        }
    });
    File {
        path: linted.file.display().to_string(),
        skill: &linted.skill,
        ok: linted.ok(strict),
        problems: problems.collect(),
        left_out: linted.diagnostics.dropped(),
    }
}

/// How many problems of which kind: the last line of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub skills: usize,
    pub errors: usize,
    pub warnings: usize,
    pub notices: usize,
}

impl Tally {
    pub fn of(linted: &[Linted]) -> Self {
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

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let some = |count: usize, word: &str| (count > 0).then(|| counted(count, word));
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
            assert_eq!(Tally { skills, errors, warnings, notices }.to_string(), expected);
        }
    }
}
