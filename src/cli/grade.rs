use std::path::PathBuf;

use super::complain;
use super::evals::Judging;
use super::exam::parse_ratio;
use super::gates::Gates;
use crate::dialects;
use crate::model::Ratio;

mod output;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum grade --output answer.md --spec find-venues.eval.json
  practicum grade --output - --spec evals.yaml --case sql-* --json < answer.md
  practicum grade --output answer.md --spec evals.json --judge

A captured text is marked against every case of the eval file that a text can answer, in whatever
format the file is; no skill, no agent and no model is needed. Judged checks are asked only with
--judge and are not scored otherwise. Checks of tools, files or activation need a run, and are not
scored either.

Exit codes with --output:
  0  every gate holds; without --judge, judged checks and their gates count neither way
  1  a gate failed
  2  bad usage, an invalid eval file, or nothing in it that a text can answer
  3  a required check that was asked has no answer (see --allow-unscored)")]
pub struct Args {
    /// The captured text, or - for standard input
    #[arg(long, value_name = "FILE", requires = "spec")]
    output: PathBuf,
    /// The eval file whose checks mark it
    #[arg(long, value_name = "SPEC", requires = "output")]
    spec: PathBuf,
    /// Read the eval file as this format instead of recognising it
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::names()))]
    dialect: Option<String>,
    /// Only cases whose id matches (* and ? are wildcards; repeatable)
    #[arg(long, value_name = "GLOB")]
    case: Vec<String>,
    /// Ask the judge about the judged checks
    #[arg(long)]
    judge: bool,
    #[command(flatten)]
    judging: Judging,
    /// A script that answers in place of the judge's model
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    #[command(flatten)]
    gates: Gates,
    /// The share of required checks that may stay unscored
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, default_value = "0")]
    allow_unscored: Ratio,
    /// Print the results as JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &Args) -> u8 {
    output::grade(args).unwrap_or_else(|error| complain(&error))
}
