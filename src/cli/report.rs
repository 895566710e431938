use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::SystemTime;

use anyhow::{Context, anyhow, bail};

use super::headings::SHOWN;
use super::{complain, environment};
use crate::own_files;
use crate::report::{Form, REPORTS, Report, Results, Writer, fold, names, report, safe};
use crate::settings::project_root;
use crate::store::RunDir;

#[derive(clap::Args)]
#[command(after_help = after_help())]
pub struct Args {
    /// The run: its id, a part of it, its folder, or latest
    #[arg(default_value = "latest")]
    run: String,
    /// Which report
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parse_format)]
    format: &'static Report,
    /// Where to write it: a file, a folder for a report of several files, or - for standard output
    #[arg(short, long, value_name = "PATH", default_value = "-")]
    output: String,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

fn after_help() -> String {
    let formats: Vec<String> =
        REPORTS.iter().map(|report| format!("  {:<15} {}", report.name, report.about)).collect();
    format!(
        "Formats:\n{}\n\nExamples:\n  practicum report latest --format html -o report.html\n  practicum report 20261115-21 --format junit -o junit.xml",
        formats.join("\n")
    )
}

fn parse_format(name: &str) -> Result<&'static Report, String> {
    report(name).ok_or_else(|| format!("it may be {}", names().join(", ")))
}

pub fn main(args: &Args) -> u8 {
    match write(args) {
        Ok(()) => 0,
        Err(error) => complain(&error),
    }
}

fn write(args: &Args) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let run = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let order = Order { report: args.format, to: Destination::of(args.format, &args.output)? };
    let results = Results::open(run).map_err(|why| anyhow!(why))?;
    order.carry_out(&results, &environment())?;
    if let Destination::Path(path) = &order.to {
        say!("wrote {}", safe(&path.display().to_string()));
    }
    Ok(())
}

/// The reports that a run is to write at its end.
#[derive(Clone, Default, clap::Args)]
pub struct Reports {
    /// Write a report of the run: md, html, junit and others (practicum report --help has all; repeatable;
    /// - is standard output)
    #[arg(long = "report", value_name = "FORMAT=PATH", help_heading = SHOWN)]
    orders: Vec<Order>,
}

impl Reports {
    /// The reports as they are written on a command line, `FORMAT=PATH` each.
    pub fn as_text(&self) -> Vec<String> {
        let text = |order: &Order| match &order.to {
            Destination::StandardOutput => format!("{}=-", order.report.name),
            Destination::Path(path) => format!("{}={}", order.report.name, path.display()),
        };
        self.orders.iter().map(text).collect()
    }

    /// Reads reports as they are written on a command line.
    pub fn from_text<'t>(texts: impl Iterator<Item = &'t String>) -> anyhow::Result<Self> {
        let orders = texts.map(|text| text.parse().map_err(|why: String| anyhow!(why)));
        Ok(Self { orders: orders.collect::<anyhow::Result<_>>()? })
    }

    /// Before anything is spent: standard output has room for one.
    pub fn check(&self, json: bool) -> anyhow::Result<()> {
        match (self.orders.iter().filter(|order| order.is_for_standard_output()).count(), json) {
            (0, _) | (1, false) => Ok(()),
            (_, true) => bail!("--json takes standard output; give the report a path"),
            (_, false) => bail!("only one report can go to standard output; give the others paths"),
        }
    }

    /// Writes them. What cannot be written is told of, and the others are.
    pub fn write(&self, results: &mut Results, environment: &BTreeMap<String, String>) -> bool {
        let mut all = true;
        for order in &self.orders {
            match (order.carry_out(results, environment), &order.to) {
                (Ok(()), Destination::Path(path)) => results.written.push(path.clone()),
                (Ok(()), Destination::StandardOutput) => {}
                (Err(error), _) => {
                    complain(&error);
                    all = false;
                }
            }
        }
        all
    }

    /// The closing summary, where standard output is free for it; else beside the progress.
    pub fn show(&self, results: &Results, json: bool) -> anyhow::Result<()> {
        let name = if json { "json" } else { "text" };
        let Some(Form::File(write)) = report(name).map(|report| &report.form) else {
            bail!("there is no report {name}");
        };
        if self.orders.iter().any(Order::is_for_standard_output) {
            let mut out = anstream::stderr();
            return write(results, &mut out).map_err(Into::into);
        }
        match terminal_width().filter(|_| !json) {
            Some(width) => to_terminal(results, *write, width),
            None => to_standard_output(results, *write),
        }
    }
}

/// A report that is wanted, and where.
#[derive(Clone)]
pub struct Order {
    report: &'static Report,
    to: Destination,
}

#[derive(Clone)]
enum Destination {
    StandardOutput,
    Path(PathBuf),
}

impl Destination {
    fn of(report: &Report, said: &str) -> anyhow::Result<Self> {
        match (said, &report.form) {
            ("", _) => bail!("{} needs a path", report.name),
            ("-", Form::Folder(_)) => bail!("{} is several files; name a folder for them", report.name),
            ("-", Form::File(_)) => Ok(Self::StandardOutput),
            (path, Form::File(_) | Form::Folder(_)) => Ok(Self::Path(PathBuf::from(path))),
        }
    }
}

/// As `--report` has it: `FORMAT=PATH`.
impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').ok_or("it must be like junit=results.xml")?;
        let report = parse_format(name)?;
        let to = Destination::of(report, path).map_err(|error| error.to_string())?;
        Ok(Self { report, to })
    }
}

impl Order {
    fn is_for_standard_output(&self) -> bool {
        matches!(self.to, Destination::StandardOutput)
    }

    /// Writes the report, and adds to what the environment names.
    fn carry_out(&self, results: &Results, environment: &BTreeMap<String, String>) -> anyhow::Result<()> {
        let name = self.report.name;
        match (&self.report.form, &self.to) {
            (Form::File(write), Destination::StandardOutput) => to_standard_output(results, *write)?,
            (Form::File(write), Destination::Path(path)) => {
                to_file(results, path, *write).with_context(|| cannot(name, path))?;
                own_files::remember(std::slice::from_ref(path));
            }
            (Form::Folder(write), Destination::Path(path)) => {
                let before = documents(path);
                let notes = std::fs::create_dir_all(path)
                    .and_then(|()| write(results, path))
                    .with_context(|| cannot(name, path))?;
                let is_new =
                    |(path, stamp): (PathBuf, _)| (before.get(&path) != Some(&stamp)).then_some(path);
                let written: Vec<PathBuf> = documents(path).into_iter().filter_map(is_new).collect();
                own_files::remember(&written);
                notes.iter().for_each(|note| say!("note: {name}: {}", safe(note)));
            }
            (Form::Folder(_), Destination::StandardOutput) => {}
        }
        let Some(addition) = &self.report.adds else { return Ok(()) };
        let Some(path) = environment.get(addition.variable).filter(|path| !path.is_empty()) else {
            return Ok(());
        };
        let path = Path::new(path);
        add_to(results, path, addition.write).with_context(|| cannot(name, path))?;
        own_files::remember(&[path.to_owned()]);
        Ok(())
    }
}

/// The files below a folder that reports of several files write, with when each was written. What agents
/// made, and versions of a skill, are copies of what others wrote.
fn documents(folder: &Path) -> BTreeMap<PathBuf, Option<SystemTime>> {
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

fn cannot(name: &str, path: &Path) -> String {
    format!("cannot write the report {name} to {}", path.display())
}

fn to_file(results: &Results, path: &Path, write: Writer) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    finish(results, File::create(path)?, write)
}

fn add_to(results: &Results, path: &Path, write: Writer) -> std::io::Result<()> {
    finish(results, File::options().create(true).append(true).open(path)?, write)
}

fn finish(results: &Results, file: File, write: Writer) -> std::io::Result<()> {
    // Colours are for terminals.
    let mut out = BufWriter::new(anstream::StripStream::new(file));
    write(results, &mut out)?;
    out.flush()
}

/// A reader who went away has seen enough.
/// The columns of standard output, if it is a terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

fn to_terminal(results: &Results, write: Writer, width: usize) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(results, &mut text)?;
    let folded = fold(&String::from_utf8_lossy(&text), width);
    sent(|out| out.write_all(folded.as_bytes()))
}

fn to_standard_output(results: &Results, write: Writer) -> anyhow::Result<()> {
    sent(|out| write(results, out))
}

/// Writes to standard output. That nobody reads on is no error.
fn sent(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(anstream::AutoStream::auto(std::io::stdout()).lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}
