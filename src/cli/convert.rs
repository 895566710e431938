//! The command `practicum convert`: writes an eval file in another format.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

use super::{environment, has_colour, print, print_to_stderr, report_error, tell_notices};
use crate::dialects::EvalRegistry;
use crate::dialects::{self, Dialect, ExportedFile, LocatedSuite};
use crate::model::{Case, Outcome, Suite};
use crate::own_files;
use crate::report::{render_diagnostics, terminal_safe};
use crate::session::RunInputs;
use crate::session::run_setup;
use crate::tree::{SourceSyntax, to_yaml};

#[derive(clap::Args)]
#[command(after_help = "\
What the other format cannot express is listed on standard error, one line each.

Examples:
  practicum convert evals.json --to native -o evals.practicum.yaml
  practicum convert evals.practicum.yaml --to skillet -o evals/")]
pub struct ConvertArgs {
    /// The eval file, or a folder that is one suite
    file: PathBuf,
    /// The format to write
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    to: String,
    /// The format to read, instead of recognising it
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
    /// Where to write: a file, or a folder for formats that want several; standard output if absent
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
}

pub fn main(args: ConvertArgs) -> Outcome {
    convert(&args).unwrap_or_else(|error| report_error(&error))
}

fn convert(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let ask = RunInputs {
        paths: vec![args.file.clone()],
        dialect: args
            .dialect
            .as_deref()
            .and_then(dialects::find_dialect)
            .map(|dialect| dialect.name().to_owned()),
        ..RunInputs::default()
    };
    let reading = run_setup::read_eval_files(&ask, &environment(), &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    if reading.has_errors() {
        for file in &reading.files {
            print_to_stderr(&render_diagnostics(
                &file.lowered.diagnostics,
                &file.path,
                &file.text,
                has_colour(),
            ));
        }
        bail!("{} cannot be understood", args.file.display());
    }
    let suites = reading.into_suites()?;
    let [LocatedSuite { suite, .. }] = suites.as_slice() else {
        bail!("{} holds {} suites; name one file", args.file.display(), suites.len());
    };
    let to = dialects::find_dialect(&args.to).ok_or_else(|| anyhow!("there is no format {}", args.to))?;
    let into_folder = args.output.as_ref().is_some_and(|output| {
        to.folder_is_suite() || output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/")
    });
    let folder = match &args.output {
        Some(output) if into_folder => std::path::absolute(output)?,
        Some(output) => std::path::absolute(output)?.parent().map(Path::to_owned).unwrap_or_default(),
        None => std::env::current_dir()?,
    };
    let raised = to.export_suite(suite, &folder);
    for loss in &raised.losses {
        say!("lost: {}", terminal_safe(loss));
    }
    if raised.files.is_empty() {
        bail!("nothing of it can be said in {}, so nothing is written", args.to);
    }
    match &args.output {
        None => raised.files.iter().try_for_each(|file| {
            let title = if raised.files.len() > 1 { format!("# {}\n", file.name) } else { String::new() };
            print(&format!("{title}{}", text(file)))
        })?,
        Some(output) if into_folder => {
            for file in &raised.files {
                let name = crate::model::RelPath::new(&file.name)
                    .ok_or_else(|| anyhow!("{:?} cannot be a file's name", file.name))?;
                write(&name.join_to(output), &text(file), args.force)?;
            }
        }
        Some(output) => {
            let [file] = raised.files.as_slice() else {
                bail!(
                    "this makes {} files of {}; give a folder, with / at its end",
                    raised.files.len(),
                    args.to
                )
            };
            write(output, &text(file), args.force)?;
        }
    }
    Ok(Outcome::Passed)
}

/// Writes a suite in a format and reports the losses. Gives the files, and the part of the suite that the format
/// cannot express if it can express another part.
pub fn export_in_parts(
    dialect: &dyn Dialect,
    suite: &Suite,
    folder: &Path,
) -> (Vec<ExportedFile>, Option<Suite>) {
    let mut raised = dialect.export_suite(suite, folder);
    let is_lost = |case: &Case| raised.lost_cases.contains(&case.id);
    let (lost, sayable): (Vec<Case>, Vec<Case>) = suite.cases.iter().cloned().partition(is_lost);
    let mut apart = None;
    if !lost.is_empty() && !sayable.is_empty() {
        let ids: Vec<String> = lost.iter().map(|case| terminal_safe(&case.id)).collect();
        let (cases, are) = if ids.len() == 1 { ("case", "it is") } else { ("cases", "they are") };
        let (format, ids) = (dialect.name(), ids.join(", "));
        say!("note: {format} cannot say what {cases} {ids} expect; {are} written to a native file");
        raised = dialect.export_suite(&Suite { cases: sayable, ..suite.clone() }, folder);
        apart = Some(Suite { cases: lost, ..suite.clone() });
    }
    for loss in &raised.losses {
        say!("lost: {}", terminal_safe(loss));
    }
    (raised.files, apart)
}

/// Gives the text of an exported file.
pub fn text(file: &ExportedFile) -> String {
    match file.syntax {
        SourceSyntax::Yaml => to_yaml(&file.document),
        SourceSyntax::Json => format!("{:#}\n", file.document),
        SourceSyntax::JsonLines => {
            let lines = file.document.as_array().map(Vec::as_slice).unwrap_or_default();
            lines.iter().map(|line| format!("{line}\n")).collect()
        }
    }
}

fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    if path.exists() && !force {
        bail!("{} exists; say --force to replace it", path.display());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, text)?;
    own_files::record_written_files(&[path.to_owned()]);
    say!("wrote {}", path.display());
    Ok(())
}
