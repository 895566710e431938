use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, anyhow};

use super::evals::Choices;
use super::exam::{Carrying, Errand};
use super::report::Reports;
use super::{complain, environment, print, print_json};
use crate::intake::{self, Ask, IntakeError};
use crate::model::Expect;
use crate::plan::{Filter, plan};
use crate::report::{Called, safe, shown_path};
use crate::settings::{Layers, project_root};
use crate::store::records;

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
pub struct Args {
    /// What the user says
    #[arg(required_unless_present = "args")]
    prompt: Option<String>,
    /// Call the skill by its own command with these arguments instead, and print what it answers
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, conflicts_with_all = ["prompt", "expect", "runs", "repeat", "orders"])]
    args: Option<String>,
    /// The skill it is about: its folder, or its name (also plugin:name) in the plugins folder or a skills
    /// folder of the project, whose other skills are then staged beside it
    #[arg(long, value_name = "PATH|NAME")]
    skill: PathBuf,
    /// Whether the skill must fire: must, must-not (should_not), either (acceptable)
    #[arg(long, default_value = "must", value_parser = parse_expect)]
    expect: Expect,
    /// How often
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "repeat", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    carrying: Carrying,
    #[command(flatten)]
    reports: Reports,
}

fn parse_expect(text: &str) -> Result<Expect, String> {
    match text.replace('-', "_").as_str() {
        "must" | "must_activate" => Ok(Expect::Must),
        "must_not" | "should_not" | "should_not_activate" => Ok(Expect::MustNot),
        "either" | "acceptable" => Ok(Expect::Either),
        _ => Err("it may be must, must-not (should_not) or either (acceptable)".to_owned()),
    }
}

pub fn main(args: &Args) -> u8 {
    attempt(args).unwrap_or_else(|error| complain(&error))
}

fn attempt(args: &Args) -> anyhow::Result<u8> {
    let environment = environment();
    let ask = args.carrying.ask(Ask::default());
    let project = project_root(&std::env::current_dir()?);
    let mut flags: BTreeMap<&'static str, String> = args.choices.flags();
    flags.extend(args.carrying.flags());
    let layers = Layers::read(flags, environment.clone(), &project).map_err(IntakeError::from)?;
    let reading = match (&args.prompt, &args.args) {
        (_, Some(words)) => intake::one_command(words, &args.skill)?,
        (prompt, None) => {
            let prompt = prompt.as_deref().unwrap_or_default();
            intake::one_prompt(prompt, &args.skill, args.expect, args.runs, &environment)?
        }
    };
    let agents = intake::all_agents(&layers).map_err(IntakeError::from)?;
    let (planned, notices) = intake::settle(reading, &ask, &layers, &agents, &Filter::default())?;
    for notice in &notices {
        say!("note: {}", safe(notice));
    }
    let plan = plan(planned, &Filter::default());
    if plan.trials.is_empty() {
        return Err(anyhow!("there is nothing to run"));
    }
    let errand = Errand { plan, agents, ask, layers, project, environment, notices, resumed: None };
    match &args.args {
        Some(words) => print_answer(args, words, errand),
        None => args.carrying.carry_out(errand, &args.reports),
    }
}

/// Runs the one trial of a called skill, and prints what the agent answered.
fn print_answer(args: &Args, words: &str, errand: Errand) -> anyhow::Result<u8> {
    let skills = errand.plan.suites.iter().flat_map(|planned| &planned.suite.skills);
    let skill = skills.map(|skill| skill.name.clone()).next().unwrap_or_default();
    // Who calls a skill wants its answer now, not one of an earlier call.
    let called = args.carrying.clone().anew().not_in_history("a skill was called, and nothing was checked");
    // Progress would say that the trial is not scored, and nothing is to be scored here.
    let called = if args.carrying.dry_run { called } else { called.quietly() };
    let Some(held) = called.hold(errand)? else { return Ok(0) };
    let run = &held.run_dir;
    let records = records(run.path()).with_context(|| format!("cannot read run {}", run.id()))?;
    let record = records.into_values().next().ok_or_else(|| anyhow!("nothing was run"))?;
    let output = run.path().join("trials").join(record.trial.as_str()).join("output.txt");
    let output = std::fs::read_to_string(output).unwrap_or_default();
    let finished = record.ended.can_be_marked();
    if !finished {
        let why = record.ended_because.as_deref().unwrap_or_default();
        say!("error: {}: {}", record.ended.in_words(), safe(why));
    } else if !args.carrying.json {
        say!("called {} ({}, {:.1} s)", safe(&skill), safe(&record.condition.agent), record.seconds);
    }
    if args.carrying.json {
        print_json(&Called {
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
        print(&format!("{}\n", safe(output.trim_end_matches('\n'))))?;
        say!("record: {}", shown_path(run.path()));
    }
    Ok(match held.summary.exit {
        exit @ (4 | 130) => exit,
        _ if finished => 0,
        _ => 3,
    })
}
