//! The command `practicum export`: writes trials or checks as a table.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow};

use super::{open_index, report_error};
use crate::model::Outcome;
use crate::own_files;
use crate::plan::settings::project_root;
use crate::store::history::{ExportFormat, ExportTable, export};
use crate::store::{RunDir, TrialFilter};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum export > trials.jsonl
  practicum export latest --table checks --format csv -o checks.csv")]
pub struct ExportArgs {
    /// Only this run: its id, a part of it, or latest; all if absent
    run: Option<String>,
    /// One row for each trial, or for each check of each trial
    #[arg(long, value_name = "trials|checks", default_value = "trials", value_parser = ["trials", "checks"], hide_possible_values = true)]
    table: String,
    /// A JSON object in each line, or comma-separated values with a line of names
    #[arg(long, value_name = "jsonl|csv", default_value = "jsonl", value_parser = ["jsonl", "csv"], hide_possible_values = true)]
    format: String,
    /// Only this suite
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// Only this case
    #[arg(long, value_name = "ID")]
    case: Option<String>,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

pub fn main(args: &ExportArgs) -> Outcome {
    run(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let run = match &args.run {
        Some(wanted) => Some(RunDir::find(&project, wanted).map_err(|why| anyhow!(why))?.id().to_owned()),
        None => None,
    };
    let filter =
        TrialFilter { run, suite: args.suite.clone(), case: args.case.clone(), ..TrialFilter::default() };
    let table = if args.table == "checks" { ExportTable::Checks } else { ExportTable::Trials };
    let format = if args.format == "csv" { ExportFormat::Csv } else { ExportFormat::Jsonl };
    let mut out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(BufWriter::new(
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?,
        )),
        None => Box::new(BufWriter::new(std::io::stdout().lock())),
    };
    let written = export(&open_index(&project)?, &filter, table, format, &mut out)?;
    match written.and_then(|()| out.flush()) {
        // It is no error if the reader closes the pipe early.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => {
            own_files::record_written_files(args.output.as_slice());
            Ok(())
        }
    }
}
