//! The command `practicum report`: writes a report of a stored run. Also the option `--report` of runs.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use anyhow::{Context, anyhow, bail};

use super::headings::OUTPUT;
use super::{environment, report_error};
use crate::model::Outcome;
use crate::own_files;
use crate::plan::settings::project_root;
use crate::report::{
    REPORTS, ReportFormat, ReportOutput, ReportWriter, RunResults, find_report, report_names, terminal_safe,
    wrap_lines,
};
use crate::store::RunDir;

#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct ReportArgs {
    /// The run: its id, a part of it, its folder, or latest
    #[arg(default_value = "latest")]
    run: String,
    /// The format of the report
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_format)]
    format: &'static ReportFormat,
    /// Where to write it: a file, a folder for a report of several files, or - for standard output
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    output: String,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

fn after_help() -> String {
    let formats: Vec<String> =
        REPORTS.iter().map(|report| format!("  {:<15} {}", report.name, report.description)).collect();
    format!(
        "Formats:\n{}\n\nExamples:\n  practicum report latest --format html -o report.html\n  practicum report 20261115-21 --format junit -o junit.xml",
        formats.join("\n")
    )
}

fn parse_format(name: &str) -> Result<&'static ReportFormat, String> {
    find_report(name).ok_or_else(|| format!("it may be {}", report_names().join(", ")))
}

pub fn main(args: &ReportArgs) -> Outcome {
    match write(args) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

fn write(args: &ReportArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let run = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let order = ReportRequest {
        report: args.format,
        destination: ReportDestination::parse(args.format, &args.output)?,
    };
    let results = RunResults::open(run).map_err(|why| anyhow!(why))?;
    order.write_report(&results, &environment())?;
    if let ReportDestination::Path(path) = &order.destination {
        say!("wrote {}", terminal_safe(&path.display().to_string()));
    }
    Ok(())
}

/// The reports that a run is to write at its end.
#[derive(Clone, Default, clap::Args)]
pub struct ReportOptions {
    /// Write a report of the run: md, html, junit and others (practicum report --help has all; repeatable;
    /// - is standard output)
    #[arg(long = "report", value_name = "FORMAT=PATH", help_heading = OUTPUT)]
    orders: Vec<ReportRequest>,
}

impl ReportOptions {
    /// Gives the reports as on a command line, `FORMAT=PATH` each.
    pub fn as_text(&self) -> Vec<String> {
        let text = |order: &ReportRequest| match &order.destination {
            ReportDestination::StandardOutput => format!("{}=-", order.report.name),
            ReportDestination::Path(path) => format!("{}={}", order.report.name, path.display()),
        };
        self.orders.iter().map(text).collect()
    }

    /// Reads reports as on a command line.
    pub fn from_text<'t>(texts: impl Iterator<Item = &'t String>) -> anyhow::Result<Self> {
        let orders = texts.map(|text| text.parse().map_err(|why: String| anyhow!(why)));
        Ok(Self { orders: orders.collect::<anyhow::Result<_>>()? })
    }

    /// Gives an error if more than one report goes to standard output. This is called before anything is spent.
    pub fn require_one_for_stdout(&self, json: bool) -> anyhow::Result<()> {
        match (self.orders.iter().filter(|order| order.is_for_standard_output()).count(), json) {
            (0, _) | (1, false) => Ok(()),
            (_, true) => bail!("--json takes standard output; give the report a path"),
            (_, false) => bail!("only one report can go to standard output; give the others paths"),
        }
    }

    /// Writes the reports. If one cannot be written, reports the error and writes the others. Says whether all
    /// were written.
    pub fn write(&self, results: &mut RunResults, environment: &BTreeMap<String, String>) -> bool {
        let mut all = true;
        for order in &self.orders {
            match (order.write_report(results, environment), &order.destination) {
                (Ok(()), ReportDestination::Path(path)) => results.written_reports.push(path.clone()),
                (Ok(()), ReportDestination::StandardOutput) => {}
                (Err(error), _) => {
                    report_error(&error);
                    all = false;
                }
            }
        }
        all
    }

    /// Shows the final summary on standard output, or on standard error if a report goes to standard output.
    pub fn show(&self, results: &RunResults, json: bool) -> anyhow::Result<()> {
        let name = if json { "json" } else { "text" };
        let Some(ReportOutput::File(write)) = find_report(name).map(|report| &report.output) else {
            bail!("there is no report {name}");
        };
        if self.orders.iter().any(ReportRequest::is_for_standard_output) {
            let mut out = anstream::stderr();
            return write(results, &mut out).map_err(Into::into);
        }
        match terminal_width().filter(|_| !json) {
            Some(width) => write_to_terminal(results, *write, width),
            None => write_to_standard_output(results, *write),
        }
    }
}

/// A report to write, and its destination.
#[derive(Clone)]
pub struct ReportRequest {
    report: &'static ReportFormat,
    destination: ReportDestination,
}

#[derive(Clone)]
enum ReportDestination {
    StandardOutput,
    Path(PathBuf),
}

impl ReportDestination {
    fn parse(report: &ReportFormat, said: &str) -> anyhow::Result<Self> {
        match (said, &report.output) {
            ("", _) => bail!("{} needs a path", report.name),
            ("-", ReportOutput::Folder(_)) => {
                bail!("{} is several files; name a folder for them", report.name)
            }
            ("-", ReportOutput::File(_)) => Ok(Self::StandardOutput),
            (path, ReportOutput::File(_) | ReportOutput::Folder(_)) => Ok(Self::Path(PathBuf::from(path))),
        }
    }
}

/// Parses the form of `--report`: `FORMAT=PATH`.
impl FromStr for ReportRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').ok_or("it must be like junit=results.xml")?;
        let report = parse_format(name)?;
        let to = ReportDestination::parse(report, path).map_err(|error| error.to_string())?;
        Ok(Self { report, destination: to })
    }
}

impl ReportRequest {
    fn is_for_standard_output(&self) -> bool {
        matches!(self.destination, ReportDestination::StandardOutput)
    }

    /// Writes the report, and appends to the file that an environment variable names.
    fn write_report(
        &self,
        results: &RunResults,
        environment: &BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let name = self.report.name;
        match (&self.report.output, &self.destination) {
            (ReportOutput::File(write), ReportDestination::StandardOutput) => {
                write_to_standard_output(results, *write)?
            }
            (ReportOutput::File(_), ReportDestination::Path(path)) => {
                self.report.write_to_path(results, path).with_context(|| cannot_write_message(name, path))?;
                own_files::record_written_files(std::slice::from_ref(path));
            }
            (ReportOutput::Folder(_), ReportDestination::Path(path)) => {
                let before = report_files(path);
                let notes = self.report.write_to_path(results, path);
                let notes = notes.with_context(|| cannot_write_message(name, path))?;
                let is_new =
                    |(path, stamp): (PathBuf, _)| (before.get(&path) != Some(&stamp)).then_some(path);
                let written: Vec<PathBuf> = report_files(path).into_iter().filter_map(is_new).collect();
                own_files::record_written_files(&written);
                notes.iter().for_each(|note| say!("note: {name}: {}", terminal_safe(note)));
            }
            (ReportOutput::Folder(_), ReportDestination::StandardOutput) => {}
        }
        let Some(addition) = &self.report.environment_file else { return Ok(()) };
        let Some(path) = environment.get(addition.variable).filter(|path| !path.is_empty()) else {
            return Ok(());
        };
        let path = Path::new(path);
        addition.append_to_file(results, path).with_context(|| cannot_write_message(name, path))?;
        own_files::record_written_files(&[path.to_owned()]);
        Ok(())
    }
}

/// Lists the files below a folder that reports of several files write, with their modification times. The folders
/// `outputs` and `skill` are left out, because they hold copies of what others wrote.
fn report_files(folder: &Path) -> BTreeMap<PathBuf, Option<SystemTime>> {
    let copies = |entry: &ignore::DirEntry| entry.file_name() == "outputs" || entry.file_name() == "skill";
    let walk = ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .follow_links(false)
        .filter_entry(move |entry| entry.depth() == 0 || !copies(entry))
        .build();
    let files = walk.flatten().filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let documents = files.filter(|entry| {
        let is_json = entry.path().extension().is_some_and(|ending| ending == "json");
        is_json || entry.file_name() == "digest" || entry.file_name() == ".lock"
    });
    let written = |entry: &ignore::DirEntry| entry.metadata().ok()?.modified().ok();
    documents.map(|entry| (entry.path().to_owned(), written(&entry))).collect()
}

fn cannot_write_message(name: &str, path: &Path) -> String {
    format!("cannot write the report {name} to {}", path.display())
}

/// Gives the columns of standard output, if it is a terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

fn write_to_terminal(results: &RunResults, write: ReportWriter, width: usize) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(results, &mut text)?;
    let folded = wrap_lines(&String::from_utf8_lossy(&text), width);
    with_standard_output(|out| out.write_all(folded.as_bytes()))
}

fn write_to_standard_output(results: &RunResults, write: ReportWriter) -> anyhow::Result<()> {
    with_standard_output(|out| write(results, out))
}

/// Writes to standard output. It is no error if the reader closes the pipe early.
fn with_standard_output(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(anstream::AutoStream::auto(std::io::stdout()).lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
