use std::io::Write;
use std::path::PathBuf;

use anyhow::anyhow;

use super::complain;
use crate::lint::{Linted, RULES, Tally, document, find, lint, rule};
use crate::report::render_diagnostics;
use crate::tree::closest;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum lint                         every skill in and below this folder
  practicum lint skills/release-notes    one skill
  practicum lint --strict --json .       for CI: warnings count, findings as JSON
  practicum lint --explain link-broken   what a rule wants, and why

Exit codes:
  0  no errors (with --strict: no warnings either)
  2  an invalid skill, no skills found, or bad usage")]
pub struct Args {
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

pub fn main(args: &Args) -> u8 {
    match run(args) {
        Ok(code) => code,
        Err(error) => {
            complain(&error);
            2
        }
    }
}

fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(code) = &args.explain {
        let rule = rule(code).ok_or_else(|| unknown(code))?;
        show(&rule.explain())?;
        return Ok(0);
    }
    if args.rules {
        show(&listed())?;
        return Ok(0);
    }
    let linted: Vec<Linted> = find(&args.paths)?.iter().map(|file| lint(file)).collect();
    if args.json {
        show(&format!("{}\n", document(&linted, args.strict)?))?;
    } else {
        for skill in &linted {
            show(&render_diagnostics(&skill.diagnostics, &skill.file, &skill.text, true))?;
        }
        show(&format!("{}\n", Tally::of(&linted)))?;
    }
    Ok(if linted.iter().all(|skill| skill.ok(args.strict)) { 0 } else { 2 })
}

fn unknown(code: &str) -> anyhow::Error {
    let known: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
    let meant =
        closest(code, &known).map_or_else(String::new, |known| format!("; did you mean \"{known}\"?"));
    anyhow!("there is no rule \"{code}\"{meant}\nthe rules are: {}", known.join(", "))
}

fn listed() -> String {
    let widest = RULES.iter().map(|rule| rule.code.len()).max().unwrap_or_default();
    RULES
        .iter()
        .map(|rule| format!("{:<widest$}  {:<7}  {}\n", rule.code, rule.severity_word(), rule.summary))
        .collect()
}

/// Colours stay where they are wanted. A reader who went away has seen enough.
fn show(text: &str) -> std::io::Result<()> {
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
