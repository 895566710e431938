//! The command `practicum lint`: checks skills against the specification and conventions.

use std::path::PathBuf;

use anyhow::anyhow;

use super::{print, report_error};
use crate::lint::{
    LintTally, LintedSkill, RULES, find_rule, find_skill_files, lint_document, lint_skill_file,
};
use crate::model::Outcome;
use crate::report::render_diagnostics;
use crate::tree::closest_word;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum lint                         every skill in and below this folder
  practicum lint skills/release-notes    one skill
  practicum lint --strict --json .       for CI: warnings count as well
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
    /// Print the findings as JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// Explain one rule, and check nothing
    #[arg(long, value_name = "CODE", conflicts_with_all = ["json", "strict", "rules"])]
    explain: Option<String>,
    /// List all rules, and check nothing
    #[arg(long, conflicts_with_all = ["json", "strict"])]
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
    if args.json {
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
