//! The command `practicum export`: writes trials or checks as a table, or trials as traces.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde_json::Value;

use super::{environment, open_index, report_error, runtime};
use crate::model::{Outcome, TrialRecord, count_with_noun};
use crate::own_files;
use crate::plan::settings::project_root;
use crate::report::{RunResults, TraceFormat, TraceReceiver, for_each_trace, write_traces};
use crate::store::history::{ExportFormat, ExportTable, export};
use crate::store::{RunDir, TrialFilter};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum export > trials.jsonl
  practicum export latest --table checks --format csv -o checks.csv
  practicum export latest --format atif -o trajectories.jsonl
  practicum export latest --format otlp -o traces.jsonl
  practicum export latest --format otlp --to http://127.0.0.1:4318

The formats atif and otlp write one JSON document for each trial of one run, each in a line: what was said, every tool \
call with its result, and the verdicts. A line of otlp is the body of a request to a receiver of OpenTelemetry traces \
(/v1/traces, Content-Type: application/json).

With --to, the spans are sent to such a receiver, in the binary form that all receivers read. OTEL_EXPORTER_OTLP_HEADERS \
(name=value,name=value) adds headers, such as a key. A trial that is sent again has the same ids.")]
pub struct ExportArgs {
    /// Only this run: its id, a part of it, or latest; all if absent
    run: Option<String>,
    /// One row for each trial, or for each check of each trial
    #[arg(long, value_name = "trials|checks", default_value = "trials", value_parser = ["trials", "checks"], hide_possible_values = true)]
    table: String,
    /// A table as a JSON object in each line or as comma-separated values with a line of names, or traces of one run: ATIF
    /// trajectories, or OpenTelemetry spans
    #[arg(long, value_name = "jsonl|csv|atif|otlp", default_value = "jsonl", value_parser = ["jsonl", "csv", "atif", "otlp"], hide_possible_values = true)]
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
    /// Send the spans to this receiver of OpenTelemetry traces (http or https; /v1/traces is added to an address without
    /// a path)
    #[arg(long, value_name = "URL", conflicts_with = "output")]
    to: Option<String>,
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
    if args.to.is_some() && args.format != "otlp" {
        bail!("--to sends OpenTelemetry spans; it needs --format otlp");
    }
    let traces = match args.format.as_str() {
        "atif" => Some(TraceFormat::Atif),
        "otlp" => Some(TraceFormat::Otlp),
        _ => None,
    };
    if let Some(format) = traces {
        if args.table != "trials" {
            bail!("--format {} writes trials; it has no table of checks", args.format);
        }
        return export_traces(args, format, &project, run.as_deref().unwrap_or("latest"));
    }
    let filter =
        TrialFilter { run, suite: args.suite.clone(), case: args.case.clone(), ..TrialFilter::default() };
    let table = if args.table == "checks" { ExportTable::Checks } else { ExportTable::Trials };
    let format = if args.format == "csv" { ExportFormat::Csv } else { ExportFormat::Jsonl };
    let mut out = open_output(args)?;
    let written = export(&open_index(&project)?, &filter, table, format, &mut out)?;
    finish(args, written.and_then(|()| out.flush()))
}

/// Writes the trials of one run as traces.
fn export_traces(args: &ExportArgs, format: TraceFormat, project: &Path, run: &str) -> anyhow::Result<()> {
    let run = RunDir::find(project, run).map_err(|why| anyhow!(why))?;
    let results = RunResults::open(run).map_err(|why| anyhow!(why))?;
    let is_wanted = |record: &TrialRecord| {
        args.suite.as_ref().is_none_or(|suite| *suite == record.suite)
            && args.case.as_ref().is_none_or(|case| *case == record.case)
    };
    if let Some(address) = &args.to {
        return send_traces(&results, is_wanted, address);
    }
    let mut out = open_output(args)?;
    let written = write_traces(&results, format, is_wanted, &mut out);
    finish(args, written.and_then(|_| out.flush()))
}

/// Sends the trials as spans, one request for each. The first failure ends it.
fn send_traces(
    results: &RunResults,
    is_wanted: impl Fn(&TrialRecord) -> bool,
    address: &str,
) -> anyhow::Result<()> {
    let headers = environment().remove("OTEL_EXPORTER_OTLP_HEADERS");
    let receiver = TraceReceiver::new(address, headers.as_deref())
        .map_err(|why| anyhow!("cannot send traces: {why}"))?;
    let runtime = runtime().context("cannot start")?;
    let mut sent: usize = 0;
    let send = |trace: Value| {
        runtime.block_on(receiver.send(&trace)).map_err(std::io::Error::other)?;
        sent += 1;
        Ok(())
    };
    let all = for_each_trace(results, TraceFormat::Otlp, is_wanted, send).map_err(|why| {
        let done = count_with_noun(sent, "trace");
        anyhow!("cannot send traces to {}: {why} ({done} sent before)", receiver.address())
    })?;
    say!("{} sent to {}", count_with_noun(all, "trace"), receiver.address());
    Ok(())
}

fn open_output(args: &ExportArgs) -> anyhow::Result<Box<dyn Write>> {
    Ok(match &args.output {
        Some(path) => Box::new(BufWriter::new(
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?,
        )),
        None => Box::new(BufWriter::new(std::io::stdout().lock())),
    })
}

fn finish(args: &ExportArgs, written: std::io::Result<()>) -> anyhow::Result<()> {
    match written {
        // It is no error if the reader closes the pipe early.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => {
            own_files::record_written_files(args.output.as_slice());
            Ok(())
        }
    }
}
