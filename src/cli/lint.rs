//! The command `practicum lint`: checks skills against the specification and conventions.

use std::path::PathBuf;

use anyhow::anyhow;

use super::findings_args::{FindingsArgs, FindingsForm};
use super::{print, report_error};
use crate::lint::{
    LintTally, LintedSkill, RULES, find_rule, find_skill_files, lint_document, lint_skill_file,
};
use crate::model::Outcome;
use crate::report::{FileFindings, render_diagnostics};
use crate::tree::closest_word;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum lint                         every skill in and below this folder
  practicum lint skills/release-notes    one skill
  practicum lint --strict --json .       for CI: warnings count as well
  practicum lint --format github         annotations in a workflow of GitHub
  practicum lint --explain link-broken   what a rule wants, and why

Exit codes:
  0  no errors (with --strict: no warnings either)
  2  an invalid skill, no skills found, or bad usage")]
pub struct LintArgs {
    /// Skill folders, SKILL.md files, or folders to search for skills
    #[arg(default_value = ".", value_name = "SKILL")]
    paths: Vec<PathBuf>,
    /// Let warnings count as errors do
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    findings: FindingsArgs,
    /// Explain one rule, and check nothing
    #[arg(long, value_name = "CODE", conflicts_with_all = ["json", "format", "strict", "rules"])]
    explain: Option<String>,
    /// List all rules, and check nothing
    #[arg(long, conflicts_with_all = ["json", "format", "strict"])]
    rules: bool,
}

pub fn main(args: &LintArgs) -> Outcome {
    run(args).unwrap_or_else(|error| report_error(&error))
}

fn run(args: &LintArgs) -> anyhow::Result<Outcome> {
    if let Some(code) = &args.explain {
        let rule = find_rule(code).ok_or_else(|| unknown_rule_error(code))?;
        print(&rule.explain())?;
        return Ok(Outcome::Passed);
    }
    if args.rules {
        print(&list_rules())?;
        return Ok(Outcome::Passed);
    }
    let linted: Vec<LintedSkill> =
        find_skill_files(&args.paths)?.iter().map(|file| lint_skill_file(file)).collect();
    let form = args.findings.form();
    let found: Vec<FileFindings> = linted
        .iter()
        .map(|skill| FileFindings { path: &skill.file, text: &skill.text, diagnostics: &skill.diagnostics })
        .collect();
    if form.print_for_programs(&found)? {
        // Nothing else may be on standard output.
    } else if form == FindingsForm::Json {
        print(&format!("{}\n", lint_document(&linted, args.strict)?))?;
    } else {
        let colour = anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never;
        for skill in &linted {
            print(&render_diagnostics(&skill.diagnostics, &skill.file, &skill.text, colour))?;
        }
        print(&format!("{}\n", LintTally::from_linted(&linted)))?;
    }
    Ok(if linted.iter().all(|skill| skill.passes(args.strict)) { Outcome::Passed } else { Outcome::Invalid })
}

fn unknown_rule_error(code: &str) -> anyhow::Error {
    let known: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
    let meant =
        closest_word(code, &known).map_or_else(String::new, |known| format!("; did you mean \"{known}\"?"));
    anyhow!("there is no rule \"{code}\"{meant}\nthe rules are: {}", known.join(", "))
}

fn list_rules() -> String {
    let widest = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    RULES
        .iter()
        .map(|rule| format!("{:<widest$}  {:<7}  {}\n", rule.code, rule.severity_word(), rule.summary))
        .collect()
}
