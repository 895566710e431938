//! The command `practicum grade`: grades a stored run, a captured text or a recorded session without an agent.

use std::path::PathBuf;

use anyhow::anyhow;

use super::gates::GateArgs;
use super::report_error;
use super::run_flags::parse_ratio;
use super::shared_args::JudgeArgs;
use crate::dialects;
use crate::model::{Outcome, Ratio};

mod changed_since;
mod output;
mod stored_run;

pub use output::read_text;

#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("captured").args(["output", "session"])), after_help = "\
Examples:
  practicum grade latest               the latest run, with today's checks
  practicum grade 20261115-21 --no-judge
  practicum grade --output answer.md --spec find-venues.eval.json
  practicum grade --output - --spec evals.yaml --case sql-* --json < answer.md
  practicum grade --output answer.md --spec evals.json --judge
  practicum grade --session session.jsonl --spec evals.yaml
  practicum grade latest --only-criterion distance

A stored run is graded from its record; no agent runs. The new grading is a run of its own \
that says what it was graded from; the old one stays as it was. What is no longer there (a \
workspace to run commands in, files that the agent left alone) is not scored. The exit codes are \
those of run.

A captured text is graded against every case of the eval file that asks more than whether a skill is \
activated, in whatever format the file is; no skill, no agent and no model is needed. Judged checks are \
asked only with --judge; without it they have no answer, and the result is incomplete unless \
--allow-unscored 1 lets code alone decide. Checks of tools, files or activation need a run, and have no \
answer either.

A session is what an agent recorded of real work: a log of Claude Code \
(~/.claude/projects/FOLDER/SESSION.jsonl) or Codex (~/.codex/sessions/YEAR/MONTH/DAY/rollout-*.jsonl), or an ATIF \
trajectory. It is graded by the cases with its prompts, if there are such, or else as a text is. It also answers \
checks of tools, activation, tokens and time; which files were written it does not show.

Exit codes with --output and --session:
  0  every gate holds
  1  a gate failed
  2  bad usage, an invalid eval file, or nothing in it that a text can answer
  3  a required check has no answer (see --judge and --allow-unscored)")]
pub struct GradeArgs {
    /// The run to grade again: its id, a part of it, its path, or latest
    #[arg(conflicts_with = "captured")]
    run: Option<String>,
    /// A captured text to grade instead of a run, or - for standard input
    #[arg(long, value_name = "FILE", requires = "spec")]
    output: Option<PathBuf>,
    /// A session to grade instead of a run: a log of Claude Code or Codex, or an ATIF trajectory
    #[arg(long, value_name = "FILE", requires = "spec")]
    session: Option<PathBuf>,
    /// The eval file whose checks grade the text or the session
    #[arg(long, value_name = "SPEC", requires = "captured")]
    spec: Option<PathBuf>,
    /// Read the eval file as this format instead of recognising it
    #[arg(long, requires = "captured", value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
    /// Only cases whose id matches (* and ? are wildcards; repeatable)
    #[arg(long, value_name = "GLOB", requires = "captured")]
    case: Vec<String>,
    /// Ask the judge about the judged checks of a captured text or session
    #[arg(long, requires = "captured")]
    judge: bool,
    /// Leave the judged checks of a run unscored
    #[arg(long, conflicts_with = "captured")]
    no_judge: bool,
    #[command(flatten)]
    judging: JudgeArgs,
    /// Judge only the criteria whose id, name or text has this word (repeatable); the others are left out
    #[arg(long, value_name = "WORD", conflicts_with = "no_judge")]
    only_criterion: Vec<String>,
    /// Ask every judge, even if nothing that decides the answer has changed
    #[arg(long)]
    no_cache: bool,
    /// Let checks ask whether links answer (urls_reachable)
    #[arg(long)]
    allow_network: bool,
    /// A script that answers in place of the judge's model
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    #[command(flatten)]
    gates: GateArgs,
    /// The share that may stay unscored: of a run's trials, or of a captured text's required checks
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, default_value = "0")]
    allow_unscored: Ratio,
    /// Print the results as JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
    /// The project whose runs are meant, or anything in it
    #[arg(long, default_value = ".", conflicts_with = "captured")]
    project: PathBuf,
}

pub fn main(args: &GradeArgs) -> Outcome {
    let graded = match (&args.run, &args.spec) {
        (Some(run), _) => stored_run::regrade_stored_run(args, run),
        (None, Some(spec)) => output::grade_output(args, spec),
        (None, None) => Err(anyhow!(
            "name a run, such as latest, or a text or session with --output or --session and --spec"
        )),
    };
    graded.unwrap_or_else(|error| report_error(&error))
}
