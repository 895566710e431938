//! The command `practicum runs`: lists the runs of a project.

use std::path::{Path, PathBuf};

use super::{open_index, print, print_json, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::report::terminal_safe;
use crate::report::{ListedRun, RunListing, figures};
use crate::store::{RunDir, RunLock, RunRow};

#[derive(clap::Args)]
#[command(after_help = "\
The newest comes first. A part of an id is enough wherever a run is asked for, and latest is the newest.

Examples:
  practicum runs
  practicum runs --json | jq -r '.runs[-1].run'")]
pub struct RunsArgs {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: &RunsArgs) -> Outcome {
    runs(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn runs(args: &RunsArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.path)?);
    let index = open_index(&project)?;
    let rows = index.runs(None, usize::MAX)?;
    let folder = project.join(".practicum/runs");
    if args.json {
        // The oldest run comes first, as in a log.
        let runs = rows.iter().rev().map(|run| listed_run(run, &folder.join(&run.id))).collect();
        return print_json(&RunListing { schema_version: 1, runs });
    }
    if rows.is_empty() {
        return print("no runs yet; practicum run makes one\n");
    }
    for run in &rows {
        let suites = index.suites_of(&run.id, MOST_SUITES + 1)?;
        print(&format!("{}  {}\n", line(run, &folder.join(&run.id)), describe_suites(&suites)))?;
    }
    Ok(())
}

/// The largest number of suites of a run that are named.
const MOST_SUITES: usize = 3;

fn describe_suites(suites: &[String]) -> String {
    let more = if suites.len() > MOST_SUITES { ", …" } else { "" };
    let named: Vec<String> = suites.iter().take(MOST_SUITES).map(|name| terminal_safe(name)).collect();
    format!("{}{more}", named.join(", "))
}

/// Describes the state of a run: its result, still running, or broken off.
fn state(run: &RunRow, folder: &Path) -> String {
    match run.status() {
        Some(standing) => standing.name().to_owned(),
        None if RunLock::read(folder).is_some_and(|live| live.is_running()) => "running".to_owned(),
        None => {
            let info = RunDir::at_path(folder).and_then(|run| run.info().ok());
            info.map_or_else(|| "broken off".to_owned(), |info| format!("broken off; {}", info.resume_hint()))
        }
    }
}

fn listed_run(run: &RunRow, folder: &Path) -> ListedRun {
    ListedRun {
        run: run.id.clone(),
        path: folder.to_owned(),
        state: state(run, folder),
        started: run.started.clone(),
        exit: run.exit,
        planned: run.planned,
        totals: run.totals(),
        scripted: run.scripted,
        replayed: run.replayed,
        cost_usd: run.cost_usd,
        seconds: run.seconds,
    }
}

fn line(run: &RunRow, folder: &Path) -> String {
    let mut counts = match run.examined.trials {
        0 => String::new(),
        trials => format!("  {}/{trials} passed", run.examined.passed),
    };
    if run.examined.not_scored > 0 {
        counts.push_str(&format!(", {} not scored", run.examined.not_scored));
    }
    if let Some(words) = figures::describe_origin(run.reused, run.scripted, run.replayed) {
        counts.push_str(&format!(" ({words})"));
    }
    format!("{}  {}{counts}", terminal_safe(&run.id), state(run, folder))
}
