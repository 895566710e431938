use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::anyhow;

use super::evals::Choices;
use super::exam::{Carrying, Errand};
use super::report::Reports;
use super::{complain, environment};
use crate::intake::{self, Ask, IntakeError};
use crate::model::Expect;
use crate::plan::{Filter, plan};
use crate::report::safe;
use crate::settings::{Layers, project_root};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum try \"Write the release notes for 2.0\" --skill skills/release-notes
  practicum try \"Is 4 odd?\" --skill skills/x --expect must-not --runs 5
  practicum try \"Which crate parses arguments?\" --skill rust-1337   beside the others of ../plugins")]
pub struct Args {
    /// What the user says
    prompt: String,
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
    match text {
        "must" | "must_activate" => Ok(Expect::Must),
        "must-not" | "must_not" | "should_not" | "should_not_activate" => Ok(Expect::MustNot),
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
    let reading = intake::one_prompt(&args.prompt, &args.skill, args.expect, args.runs, &environment)?;
    let agents = intake::all_agents(&layers).map_err(IntakeError::from)?;
    let (planned, notices) = intake::settle(reading, &ask, &layers, &agents)?;
    for notice in &notices {
        say!("note: {}", safe(notice));
    }
    let plan = plan(planned, &Filter::default());
    if plan.trials.is_empty() {
        return Err(anyhow!("there is nothing to run"));
    }
    let errand = Errand { plan, agents, ask, layers, project, environment, notices, resumed: None };
    args.carrying.carry_out(errand, &args.reports)
}
