//! The command `practicum clean`: removes what killed runs left behind, and old runs.

use std::path::PathBuf;

use super::{count_with_noun, print, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::session::remove_leftovers;
use crate::store::{RunDir, RunLock, TrialCache, refuse_linked_records};
use crate::workspace::stage::remove_folder;

#[derive(clap::Args)]
#[command(after_help = "\
Without options, only the processes and workspaces of killed runs are removed. Records stay.

Examples:
  practicum clean              after a run that was killed
  practicum clean --keep 20    only the newest twenty records")]
pub struct CleanArgs {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Also remove all records but the newest N
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// Also delete the list of trials that could be reused
    #[arg(long)]
    cache: bool,
}

pub fn main(args: CleanArgs) -> Outcome {
    match clean(&args) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

fn clean(args: &CleanArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.path)?);
    refuse_linked_records(&project)?;
    let runs = RunDir::all(&project);
    let mut swept = 0;
    let mut going_on = 0;
    for run in &runs {
        if RunLock::read(run.path()).is_some_and(|live| live.is_running()) {
            going_on += 1;
        } else if remove_leftovers(run) {
            swept += 1;
        }
    }
    let mut removed = 0;
    if let Some(keep) = args.keep {
        for run in runs.iter().rev().skip(keep) {
            if RunLock::read(run.path()).is_none() && RunDir::is_id(run.id()) {
                remove_folder(run.path())?;
                removed += 1;
            }
        }
    }
    if args.cache {
        let cache = project.join(".practicum/cache");
        if cache.exists() {
            remove_folder(&cache)?;
        }
    }
    TrialCache::for_project(&project).compact()?;
    let busy = if going_on > 0 { format!("; {going_on} still going on") } else { String::new() };
    print(&format!(
        "cleaned up after {}, removed {}{busy}\n",
        count_with_noun(swept, "killed run"),
        count_with_noun(removed, "record")
    ))
}
