//! The command `practicum badge`: makes a badge of a run.

use std::path::PathBuf;

use anyhow::{Context, anyhow};

use super::{open_index, print, report_error};
use crate::model::Outcome;
use crate::own_files;
use crate::plan::settings::project_root;
use crate::report::terminal_safe_json;
use crate::store::history::Badge;
use crate::store::{RunDir, RunRow};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum badge > badge.svg
  practicum badge --format shields -o badge.json   for shields.io")]
pub struct BadgeArgs {
    /// The run: its id, a part of it, or latest, which is the latest that came to its end. A
    /// skill that was only called, and a run graded by some criteria alone, are not the latest
    #[arg(default_value = "latest")]
    run: String,
    /// The text on the left side of the badge
    #[arg(long, value_name = "TEXT", default_value = "practicum")]
    label: String,
    /// A picture, or what shields.io makes one from
    #[arg(long, value_name = "svg|shields", default_value = "svg", value_parser = ["svg", "shields"], hide_possible_values = true)]
    format: String,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

pub fn main(args: &BadgeArgs) -> Outcome {
    badge(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn badge(args: &BadgeArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let index = open_index(&project)?;
    let run: Option<RunRow> = match args.run.as_str() {
        "latest" => {
            index.runs(None, usize::MAX)?.into_iter().find(|run| run.exit.is_some() && run.in_history)
        }
        wanted => {
            let found = RunDir::find(&project, wanted).map_err(|why| anyhow!(why))?;
            index.run(found.id())?
        }
    };
    let badge = Badge::from_run(&args.label, run.as_ref());
    let text = match args.format.as_str() {
        "shields" => format!("{}\n", terminal_safe_json(&serde_json::to_string_pretty(&badge.shields())?)),
        _ => badge.svg(),
    };
    match &args.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            own_files::record_written_files(std::slice::from_ref(path));
            Ok(())
        }
        None => print(&text),
    }
}
