//! The command `practicum try`: tries one prompt on a skill, without an eval file.

use std::path::PathBuf;

use anyhow::{Context, anyhow};

use super::report::ReportOptions;
use super::run_flags::RunFlags;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{command_words, environment, print, print_json, report_error};
use crate::model::{ActivationExpectation, Outcome};
use crate::report::{SkillCallDocument, display_path, terminal_safe};
use crate::session::run_setup;
use crate::session::{RunOptions, Session};
use crate::store::read_records;
use crate::tree::read_regular_text;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum try \"Write the release notes for 2.0\" --skill skills/release-notes
  practicum try \"Is 4 odd?\" --skill skills/x --expect must-not --runs 5
  practicum try \"Which crate parses arguments?\" --skill rust-1337
  practicum try --skill .claude/commands/clean.md --args \"--strict sales.csv\"

With --args the skill is called by its own command, as a user would type it, in a copy of this project. \
What the agent answers is printed on standard output and nothing is graded: exit code 0 when the agent \
finished, 3 when it did not. The record is kept like that of any run.")]
pub struct TryArgs {
    /// The prompt of the user
    #[arg(required_unless_present = "args")]
    prompt: Option<String>,
    /// Call the skill by its own command with these arguments instead, and print what it answers
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, conflicts_with_all = ["prompt", "expect", "runs", "repeat", "orders"])]
    args: Option<String>,
    /// The skill it is about: its folder, or its name (also plugin:name) in the plugins folder or a skills
    /// folder of the project, whose other skills are then staged beside it
    #[arg(long, value_name = "PATH|NAME")]
    skill: PathBuf,
    /// Whether the skill must be activated: must, must-not (should_not), either (acceptable)
    #[arg(long, default_value = "must", value_parser = parse_expect)]
    expect: ActivationExpectation,
    /// How often to run the prompt
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "repeat", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    #[command(flatten)]
    choices: SettingArgs,
    #[command(flatten)]
    flags: RunFlags,
    #[command(flatten)]
    reports: ReportOptions,
}

fn parse_expect(text: &str) -> Result<ActivationExpectation, String> {
    match text.replace('-', "_").as_str() {
        "must" | "must_activate" => Ok(ActivationExpectation::Must),
        "must_not" | "should_not" | "should_not_activate" => Ok(ActivationExpectation::MustNot),
        "either" | "acceptable" => Ok(ActivationExpectation::Either),
        _ => Err("it may be must, must-not (should_not) or either (acceptable)".to_owned()),
    }
}

pub fn main(args: &TryArgs) -> Outcome {
    try_prompt(args).unwrap_or_else(|error| report_error(&error))
}

fn try_prompt(args: &TryArgs) -> anyhow::Result<Outcome> {
    let reading = match (&args.prompt, &args.args) {
        (_, Some(words)) => run_setup::single_command_evals(words, &args.skill)?,
        (prompt, None) => {
            let prompt = prompt.as_deref().unwrap_or_default();
            run_setup::single_prompt_evals(prompt, &args.skill, args.expect, args.runs, &environment())?
        }
    };
    let options = args.flags.options(&EvalsArgs::at_paths(Vec::new()), &args.choices);
    let options = match &args.args {
        None if args.expect == ActivationExpectation::Either => {
            RunOptions { not_in_history: Some("either outcome was accepted".to_owned()), ..options }
        }
        None => options,
        Some(_) => RunOptions {
            // The user wants a new answer, not the one of an earlier call.
            no_reuse: true,
            not_in_history: Some("a skill was called, and nothing was checked".to_owned()),
            ..options
        },
    };
    let session = Session::new(std::env::current_dir()?).with_options(options).with_reading(reading);
    let session = session.with_limits(args.flags.limits()).with_command(command_words());
    match &args.args {
        Some(words) => print_answer(args, words, session),
        None => args.flags.run_and_report(session.read_suites(&mut args.flags.observer())?, &args.reports),
    }
}

/// Runs the only trial, and prints the agent's answer.
fn print_answer(args: &TryArgs, words: &str, session: Session<'_>) -> anyhow::Result<Outcome> {
    let mut observer = args.flags.observer();
    // The progress would say that the trial is not scored, but nothing is meant to be scored here.
    observer.quiet |= !args.flags.dry_run;
    let suites = session.read_suites(&mut observer)?;
    let skills = suites.suites.iter().flat_map(|planned| &planned.suite.skills);
    let skill = skills.map(|skill| skill.name.clone()).next().unwrap_or_default();
    let Some(finished) = args.flags.run_with(suites, &mut observer)? else { return Ok(Outcome::Passed) };
    let run = &finished.run_dir;
    let records = read_records(run.path()).with_context(|| format!("cannot read run {}", run.id()))?;
    let record = records.into_values().next().ok_or_else(|| anyhow!("nothing was run"))?;
    let output = run.path().join("trials").join(record.trial.as_str()).join("output.txt");
    let output = read_regular_text(output).unwrap_or_default();
    let has_answer = record.ended.can_be_graded();
    if !has_answer {
        let why = record.ended_because.as_deref().unwrap_or_default();
        say!("error: {}: {}", record.ended.describe(), terminal_safe(why));
    } else if !args.flags.json {
        say!(
            "called {} ({}, {:.1} s)",
            terminal_safe(&skill),
            terminal_safe(&record.condition.agent),
            record.seconds
        );
    }
    if args.flags.json {
        print_json(&SkillCallDocument {
            schema_version: 1,
            skill,
            args: words.to_owned(),
            agent: record.condition.agent,
            output,
            ended: record.ended,
            ended_because: record.ended_because,
            seconds: record.seconds,
            usage: record.usage,
            cost_usd: record.cost_usd,
            run: run.id().to_owned(),
        })?;
    } else {
        print(&format!("{}\n", terminal_safe(output.trim_end_matches('\n'))))?;
        say!("record: {}", display_path(run.path()));
    }
    Ok(match finished.summary.exit {
        outcome @ (Outcome::OverBudget | Outcome::Interrupted) => outcome,
        _ if has_answer => Outcome::Passed,
        _ => Outcome::Incomplete,
    })
}
