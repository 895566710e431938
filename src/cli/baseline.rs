//! The command `practicum baseline`: stores the results of a run, for the gate `no_regression` of later runs.

use std::path::PathBuf;

use anyhow::anyhow;

use super::{print, print_json, report_error};
use crate::model::{Outcome, count_with_noun};
use crate::own_files;
use crate::plan::settings::project_root;
use crate::report::display_path;
use crate::store::{RunDir, baseline_of_run, write_baseline};

#[derive(clap::Args)]
#[command(after_help = "\
Writes how often each case passed. Later runs with --gate no_regression must not fall behind that: a case that is clearly \
worse fails the gate, and a case that fell while its runs are too few to tell leaves it open. Commit the file, and write \
it again when a change of the results is wanted. The more runs a baseline has of each case, the fewer a later run needs.

Examples:
  practicum run skills/release-notes --repeat 10
  practicum baseline latest
  practicum run skills/release-notes --repeat 5 --gate no_regression")]
pub struct BaselineArgs {
    /// The run: its id, a part of it, its folder, or latest
    #[arg(default_value = "latest")]
    run: String,
    /// The file to write [default: practicum-baseline.json in the project]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
    /// Print what is stored as JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &BaselineArgs) -> Outcome {
    store_baseline(args).unwrap_or_else(|error| report_error(&error))
}

fn store_baseline(args: &BaselineArgs) -> anyhow::Result<Outcome> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let run = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let mut baseline = baseline_of_run(&run).map_err(|why| anyhow!(why))?;
    let all = baseline.cases.len();
    baseline.cases.retain(|case| case.runs > 0);
    if baseline.cases.is_empty() {
        say!("error: no case of run {} has a verdict, so nothing was stored", run.id());
        return Ok(Outcome::Incomplete);
    }
    let path = write_baseline(&project, args.output.as_deref(), &baseline).map_err(|why| anyhow!(why))?;
    own_files::record_written_files(std::slice::from_ref(&path));
    if args.json {
        print_json(&baseline)?;
        return Ok(Outcome::Passed);
    }
    let without = match all - baseline.cases.len() {
        0 => String::new(),
        cases => format!("; {} without a verdict left out", count_with_noun(cases, "case")),
    };
    let cases = count_with_noun(baseline.cases.len(), "case");
    print(&format!("{}: {cases} of run {}{without}\n", display_path(&path), run.id()))?;
    Ok(Outcome::Passed)
}
