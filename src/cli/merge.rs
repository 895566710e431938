//! The command `practicum merge`: puts the parts of a run together that were run with `--shard`.

use std::path::PathBuf;

use anyhow::anyhow;

use super::report::ReportOptions;
use super::run_flags::RunFlags;
use super::{environment, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::report::RunResults;
use crate::session::RunParts;

#[derive(clap::Args)]
#[command(after_help = "\
The parts become the run that one machine would have made: the same summary, gates, reports and exit code. The \
eval files and skills of this project must be those that the parts were run with. A part that is missing is \
named, and its trials count as not run (exit code 3). No agent is started.

Examples:
  practicum run . --shard 1/3   on the first of three machines, and so on
  practicum merge parts/        where the three .practicum folders were copied
  practicum merge parts/ --report junit=junit.xml --report html=report.html")]
pub struct MergeArgs {
    /// The parts: ids or folders of runs, or a folder that has them somewhere below
    #[arg(required = true, value_name = "RUN|FOLDER")]
    parts: Vec<String>,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
    /// Print the summary as JSON on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reports: ReportOptions,
}

pub fn main(args: &MergeArgs) -> Outcome {
    merge(args).unwrap_or_else(|error| report_error(&error))
}

fn merge(args: &MergeArgs) -> anyhow::Result<Outcome> {
    args.reports.require_one_for_stdout(args.json)?;
    let project = project_root(&std::path::absolute(&args.project)?);
    let parts = RunParts::find(&project, &args.parts)?;
    let mut observer = RunFlags::default().observer();
    let suites = parts.session(&project).read_suites(&mut observer)?;
    let finished = parts.merge(suites, &mut observer)?;
    let outcome = finished.summary.exit;
    let mut results = RunResults::open(finished.run_dir).map_err(|why| anyhow!(why))?;
    let all_written = args.reports.write(&mut results, &environment());
    args.reports.show(&results, args.json)?;
    Ok(if all_written || outcome != Outcome::Passed { outcome } else { Outcome::Incomplete })
}
