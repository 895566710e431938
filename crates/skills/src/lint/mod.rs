//! Finds problems in a skill without running it.
//!
//! In: a skill on disk. Out: `LintedSkill`, its problems with their positions in its SKILL.md. Never: runs
//! anything; opens a file outside the skill's folder.

mod convention;
mod document;
mod draft;
mod find_skills;
mod frontmatter_keys;
mod prose;
mod reference;
mod rules;
mod skill_markdown;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use convention::{ConventionCompliance, ConventionResult, TypeAlignmentResult, convention_compliance};
pub use document::{LintTally, lint_document};
pub use draft::{DraftFrontmatter, SkillFileDraft};
pub use find_skills::{FindError, find_skill_files};
pub use rules::{COMMAND_FILE_RULES, RULES, find_rule};

use practicum_core::model::{Diagnostic, Diagnostics, Severity, Span};

/// A lint rule, which finds one kind of problem. A new one is a file in `rules` and a line in `RULES`.
pub struct LintRule {
    /// A stable kebab-case name.
    pub code: &'static str,
    /// How serious the problem is.
    pub severity: Severity,
    /// The demand of the rule, in one sentence.
    pub summary: &'static str,
    /// The reason for the demand.
    pub rationale: &'static str,
    /// An example of a text with the problem.
    pub bad_example: &'static str,
    /// The example without the problem.
    pub good_example: &'static str,
    /// The convention of writing-skills that a finding breaks, if it breaks one.
    pub convention: Option<Convention>,
    /// The function that looks for the problem in a SKILL.md.
    pub check: fn(&SkillFileDraft, &mut LintFindings<'_>),
}

/// The conventions that code can decide, at least in part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convention {
    /// Problems of the frontmatter.
    Frontmatter,
    /// Problems of the description, by which agents decide when to use the skill.
    Description,
    /// Problems of length, which cost tokens in every use.
    Tokens,
    /// Problems of how details are split into files that are read when needed.
    Disclosure,
    /// Problems of a text that does not fit the type of its skill.
    TypeAlignment,
}

impl LintRule {
    /// Gives the whole explanation of the rule, for people.
    pub fn explain(&self) -> String {
        format!(
            "{} ({})\n{}\n\n{}\n\nBad:\n\n{}\n\nGood:\n\n{}\n",
            self.code,
            self.severity_word(),
            self.summary,
            wrap_lines(self.rationale),
            indent_lines(self.bad_example),
            indent_lines(self.good_example)
        )
    }

    /// Gives the word for the severity: error, warning or notice.
    pub fn severity_word(&self) -> &'static str {
        match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Notice => "notice",
        }
    }

    fn run(&self, draft: &SkillFileDraft) -> Vec<Diagnostic> {
        let mut findings = LintFindings { rule: self, diagnostics: Vec::new() };
        (self.check)(draft, &mut findings);
        findings.diagnostics
    }
}

/// Breaks a text into lines that fit a terminal.
fn wrap_lines(text: &str) -> String {
    const LINE_WIDTH: usize = 90;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= LINE_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

fn indent_lines(text: &str) -> String {
    let lines = text.lines().map(|line| if line.is_empty() { String::new() } else { format!("    {line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// The findings of one rule. Code and severity are those of the rule.
pub struct LintFindings<'r> {
    rule: &'r LintRule,
    diagnostics: Vec<Diagnostic>,
}

impl LintFindings<'_> {
    /// Adds a problem.
    pub fn add(&mut self, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.push(span.into(), message.into(), None);
    }

    /// Adds a problem with a sentence about what to do.
    pub fn add_with_help(
        &mut self,
        span: impl Into<Option<Span>>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.push(span.into(), message.into(), Some(help.into()));
    }

    fn push(&mut self, span: Option<Span>, message: String, help: Option<String>) {
        let LintRule { code, severity, .. } = *self.rule;
        self.diagnostics.push(Diagnostic { severity, code, message, span, help });
    }
}

/// A skill and its problems, the worst first.
#[derive(Debug, Clone)]
pub struct LintedSkill {
    /// The path of the SKILL.md or command file.
    pub file: PathBuf,
    /// The name of the skill.
    pub skill: String,
    /// The text that the spans of the problems point into.
    pub text: String,
    /// The problems that were found.
    pub diagnostics: Diagnostics,
}

impl LintedSkill {
    /// Says whether the skill has no errors, and with `strict` also no warnings.
    pub fn passes(&self, strict: bool) -> bool {
        !self.diagnostics.iter().any(|problem| match problem.severity {
            Severity::Error => true,
            Severity::Warning => strict,
            Severity::Notice => false,
        })
    }
}

/// Lints one SKILL.md and the folder it is in.
///
/// ```
/// use practicum_skills::lint::lint_skill_file;
///
/// # fn main() -> std::io::Result<()> {
/// let folder = std::env::temp_dir().join(format!("lint-example-{}", std::process::id())).join("greeter");
/// std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("SKILL.md"), "---\nname: greeter\n---\n\nGreet people.\n")?;
/// let linted = lint_skill_file(&folder.join("SKILL.md"));
/// assert!(!linted.passes(false), "a skill needs a description");
/// # std::fs::remove_dir_all(&folder)
/// # }
/// ```
pub fn lint_skill_file(file: &Path) -> LintedSkill {
    lint_draft(SkillFileDraft::read(file))
}

fn lint_draft(draft: SkillFileDraft) -> LintedSkill {
    let is_command = draft.is_command();
    let fitting = RULES.iter().filter(|rule| !is_command || COMMAND_FILE_RULES.contains(&rule.code));
    let mut found: Vec<Diagnostic> = fitting.flat_map(|rule| rule.run(&draft)).collect();
    // The worst problems come first, because only a limited number is kept.
    found.sort_by_key(|problem| (problem.severity, problem.span));
    let mut diagnostics = Diagnostics::default();
    for problem in found {
        diagnostics.push(problem);
    }
    LintedSkill { skill: draft.name(), file: draft.file, text: draft.text, diagnostics }
}
