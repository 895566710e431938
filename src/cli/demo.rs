//! The command `practicum demo`: runs an example that is inside the program, without a network, a key or an agent.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::report::ReportOptions;
use super::run_flags::RunFlags;
use super::shared_args::{EvalsArgs, SettingArgs};
use super::{command_words, report_error};
use crate::model::Outcome;
use crate::plan::settings::PROJECT_FILE;
use crate::report::display_path;
use crate::session::Session;

/// The files of the example: their paths in its folder, and their text.
const FILES: [(&str, &str); 4] = [
    ("SKILL.md", include_str!("../../examples/release-notes/SKILL.md")),
    (
        "evals/release-notes.practicum.yaml",
        include_str!("../../examples/release-notes/evals/release-notes.practicum.yaml"),
    ),
    ("evals/fixtures/commits.txt", include_str!("../../examples/release-notes/evals/fixtures/commits.txt")),
    ("evals/script.yaml", include_str!("../../examples/release-notes/evals/script.yaml")),
];

/// The folder of the example's skill.
const SKILL_FOLDER: &str = "release-notes";

/// The settings file of the example. It makes the folder a project of its own, so that the record of the run is
/// kept there and not in a project around it.
const SETTINGS: &str = "# Settings of this project. `practicum run --explain` prints all of them.\n";

#[derive(clap::Args)]
#[command(after_help = "\
The example is a skill that writes release notes, with three eval cases. The builtin agent works on real files \
with real tools, and the checks are real. Only the model's answers come from a script, so nothing is sent \
anywhere and nothing is paid.

Examples:
  practicum demo            writes the example to a temporary folder and runs it
  practicum demo --open     and opens the report in a browser
  practicum demo my-evals   writes it to a folder of your own, to change it")]
pub struct DemoArgs {
    /// Where to write the example: a folder that does not exist yet, or is empty [default: a new temporary folder]
    folder: Option<PathBuf>,
    /// Open the report in a browser
    #[arg(long)]
    open: bool,
}

pub fn main(args: &DemoArgs) -> Outcome {
    run_demo(args).unwrap_or_else(|error| report_error(&error))
}

fn run_demo(args: &DemoArgs) -> anyhow::Result<Outcome> {
    let folder = match &args.folder {
        Some(folder) => new_folder(folder)?,
        None => tempfile::Builder::new().prefix("practicum-demo-").tempdir()?.keep(),
    };
    write_example(&folder.join(SKILL_FOLDER))
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    fs::write(folder.join(PROJECT_FILE), SETTINGS)?;
    let page = folder.join("report.html");
    let reports = ReportOptions::from_text([format!("html={}", page.display())].iter())?;
    let flags = RunFlags::default();
    let options =
        flags.options(&EvalsArgs::at_paths(vec![folder.join(SKILL_FOLDER)]), &SettingArgs::default());
    let session = Session::new(folder.clone()).with_options(options).with_command(command_words());
    let outcome = flags.run_and_report(session.read_suites(&mut flags.observer())?, &reports)?;
    say!("\nthe skill and its evals: {}", display_path(&folder.join(SKILL_FOLDER)));
    say!("the report:              {}", display_path(&page));
    say!("next: practicum init YOUR-SKILL writes first evals for a skill of yours");
    if args.open && !super::view::open_page(&page) {
        say!("note: no browser could be opened; the report is above");
    }
    Ok(outcome)
}

/// Makes the folder that the user named. A folder with files in it is refused, because they could be overwritten.
fn new_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    if fs::read_dir(folder)?.next().is_some() {
        bail!("{} is not empty; name a new folder for the example", folder.display());
    }
    Ok(std::path::absolute(folder)?)
}

fn write_example(skill: &Path) -> std::io::Result<()> {
    for (path, text) in FILES {
        let path = skill.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
