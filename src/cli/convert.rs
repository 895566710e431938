//! The command `practicum convert`: writes an eval file in another format.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};

use super::editor_schema::schema_comment;
use super::{environment, has_colour, print, print_to_stderr, report_error, tell_notices};
use crate::dialects::EvalRegistry;
use crate::dialects::{self, Dialect, ExportedFile, ExportedSuite, LocatedSuite};
use crate::model::{Case, Outcome, Suite};
use crate::own_files;
use crate::report::{render_diagnostics, terminal_safe};
use crate::session::RunInputs;
use crate::session::run_setup;
use crate::tree::SourceSyntax;

#[derive(clap::Args)]
#[command(after_help = "\
What the other format cannot express is listed on standard error, one line each. The native format \
can express everything.

Several suites, such as those of a whole repository, are written into one folder, each at the place \
that it has below the given paths. A file that cannot be read is listed; the others are written, and \
the exit code is 2.

Examples:
  practicum convert evals.json --to native -o evals.practicum.yaml
  practicum convert evals.practicum.yaml --to skillet -o evals/
  practicum convert --to native . -o converted/")]
pub struct ConvertArgs {
    /// Eval files, or folders that are searched for them
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    to: String,
    /// The format to read, instead of recognising it
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(dialects::dialect_names()))]
    dialect: Option<String>,
    /// Where to write: a file, or a folder for several files; standard output if absent
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    /// Print the documents and what was lost as JSON, and write no file
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

pub fn main(args: ConvertArgs) -> Outcome {
    convert(&args).unwrap_or_else(|error| report_error(&error))
}

fn convert(args: &ConvertArgs) -> anyhow::Result<Outcome> {
    let ask = RunInputs {
        paths: args.paths.clone(),
        dialect: args
            .dialect
            .as_deref()
            .and_then(dialects::find_dialect)
            .map(|dialect| dialect.name().to_owned()),
        ..RunInputs::default()
    };
    let reading = run_setup::read_eval_files(&ask, &environment(), &EvalRegistry::default())?;
    tell_notices(&reading.notices);
    let refused: Vec<PathBuf> = reading
        .files
        .iter()
        .filter(|file| file.lowered.diagnostics.has_errors())
        .map(|file| file.path.clone())
        .collect();
    for file in reading.files.iter().filter(|file| refused.contains(&file.path)) {
        let problems = &file.lowered.diagnostics;
        print_to_stderr(&render_diagnostics(problems, &file.path, &file.text, has_colour()));
    }
    let suites = reading.into_suites()?;
    if suites.is_empty() {
        let shown: Vec<String> = args.paths.iter().map(|path| path.display().to_string()).collect();
        bail!("{} cannot be understood", shown.join(", "));
    }
    let to = dialects::find_dialect(&args.to).ok_or_else(|| anyhow!("there is no format {}", args.to))?;
    let written = match suites.as_slice() {
        [only] if !args.json => {
            let is_known = refused.is_empty();
            convert_suite(args, to, &only.suite)?;
            is_known
        }
        several => convert_suites(args, to, several)? && refused.is_empty(),
    };
    for path in &refused {
        say!("not converted: {} cannot be understood", path.display());
    }
    Ok(if written { Outcome::Passed } else { Outcome::Invalid })
}

/// Writes one suite to the file or folder that the user names, or to standard output.
fn convert_suite(args: &ConvertArgs, to: &dyn Dialect, suite: &Suite) -> anyhow::Result<()> {
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
            print(&format!("{title}{}", file.text()))
        })?,
        Some(output) if into_folder => {
            for file in &raised.files {
                let place = place_of(file, output)?;
                write(&place, &text_at(file, &place, &folder, to)?, args.force)?;
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
            write(output, &text_at(file, output, &folder, to)?, args.force)?;
        }
    }
    Ok(())
}

/// Writes several suites, each into the folder that it has below the given paths. Says whether all could be written.
fn convert_suites(args: &ConvertArgs, to: &dyn Dialect, suites: &[LocatedSuite]) -> anyhow::Result<bool> {
    if args.output.is_none() && !args.json {
        bail!("there are {} suites; give a folder to write them to, with -o FOLDER/", suites.len());
    }
    let start = common_folder(suites);
    let mut documents = Vec::new();
    let mut all_said = true;
    let mut taken = BTreeSet::new();
    for LocatedSuite { suite, .. } in suites {
        let from = &suite.origin.path;
        let below = folder_of(suite).strip_prefix(&start).unwrap_or(Path::new(""));
        let folder = match &args.output {
            Some(output) => std::path::absolute(output)?.join(below),
            None => folder_of(suite).to_owned(),
        };
        let (folder, raised) = export_beside_others(to, suite, folder, &taken)?;
        let shown = from.display().to_string();
        for loss in raised.losses.iter().filter(|_| !args.json) {
            say!("lost: {}: {}", terminal_safe(&shown), terminal_safe(loss));
        }
        if raised.files.is_empty() {
            say!("not converted: nothing of {} can be said in {}", terminal_safe(&shown), args.to);
            all_said = false;
        }
        for file in &raised.files {
            match args.json {
                true => documents.push(serde_json::json!({
                    "source": shown, "name": file.name, "document": file.document, "losses": raised.losses,
                })),
                false => {
                    let place = unused_path(place_of(file, &folder)?, &mut taken);
                    let top = args.output.as_deref().unwrap_or(&folder);
                    write(&place, &text_at(file, &place, top, to)?, args.force)?;
                }
            }
        }
    }
    if args.json {
        print(&format!("{:#}\n", serde_json::json!({"schema_version": 1, "files": documents})))?;
    }
    Ok(all_said)
}

/// Writes one of several suites. Where its files cannot have other names and another suite has taken their places, or
/// where all that lies below a folder belongs to its suite, it gets a folder of its own. Gives the folder and the files.
fn export_beside_others(
    to: &dyn Dialect,
    suite: &Suite,
    wanted: PathBuf,
    taken: &BTreeSet<PathBuf>,
) -> anyhow::Result<(PathBuf, ExportedSuite)> {
    let stem = suite.origin.path.file_stem().filter(|_| suite.origin.path.is_file());
    let stem = stem.map_or_else(|| suite.origin.dialect.clone(), |stem| stem.to_string_lossy().into_owned());
    let own = format!("{stem}-{}", to.name());
    let owns_folder = to.reads_folders() && !to.folder_is_suite();
    let mut folder = if owns_folder { wanted.join(&own) } else { wanted.clone() };
    for number in 1.. {
        let raised = to.export_suite(suite, &folder);
        let has_fixed_names =
            raised.files.iter().any(|file| file.name.contains('/') || file.name == "eval.yaml");
        let mut clash = false;
        for file in raised.files.iter().filter(|_| has_fixed_names) {
            clash |= taken.contains(&place_of(file, &folder)?);
        }
        if !clash {
            return Ok((folder, raised));
        }
        folder = wanted.join(if number == 1 { own.clone() } else { format!("{own}-{number}") });
    }
    bail!("there is no free folder in {}", wanted.display())
}

/// Gives a path at which no other suite of this conversion was written: with a number if the path is taken.
fn unused_path(path: PathBuf, taken: &mut BTreeSet<PathBuf>) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
    let mut candidate = path.clone();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = path.with_file_name(format!("{stem}-{number}.{ending}"));
        number += 1;
    }
    candidate
}

/// Gives the folder that a suite lies in: that of its file, or the folder itself whose parts are the suite.
fn folder_of(suite: &Suite) -> &Path {
    let path = &suite.origin.path;
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}

/// Gives the deepest folder that all suites lie in.
fn common_folder(suites: &[LocatedSuite]) -> PathBuf {
    let folders = suites.iter().map(|placed| folder_of(&placed.suite));
    let shared = folders.map(Path::to_owned).reduce(|one, other| {
        one.components().zip(other.components()).take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
    });
    shared.unwrap_or_default()
}

/// Gives the path of an exported file below a folder.
fn place_of(file: &ExportedFile, folder: &Path) -> anyhow::Result<PathBuf> {
    let name = crate::model::RelPath::new(&file.name)
        .ok_or_else(|| anyhow!("{:?} cannot be a file's name", file.name))?;
    Ok(name.join_to(folder))
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

/// Gives the text of a file that is written to `place`. A native file names the schema at the top of what is written.
fn text_at(file: &ExportedFile, place: &Path, top: &Path, to: &dyn Dialect) -> anyhow::Result<String> {
    let text = file.text();
    if to.name() != "native" || file.syntax != Some(SourceSyntax::Yaml) {
        return Ok(text);
    }
    let folder = std::path::absolute(place)?.parent().map(Path::to_owned).unwrap_or_default();
    Ok(format!("{}{text}", schema_comment(&folder, &std::path::absolute(top)?)?))
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
