use std::path::PathBuf;

use serde_json::{Value, json};

use super::{complain, print};
use crate::settings::project_root;
use crate::store::{Live, RunDir};

#[derive(clap::Args)]
pub struct Args {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    json: bool,
}

pub fn main(args: Args) -> u8 {
    match runs(&args) {
        Ok(()) => 0,
        Err(error) => complain(&error),
    }
}

fn runs(args: &Args) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.path)?);
    let runs = RunDir::all(&project);
    if args.json {
        let rows: Vec<Value> = runs.iter().map(row).collect();
        return print(&format!("{:#}\n", json!({"schema_version": 1, "runs": rows})));
    }
    if runs.is_empty() {
        return print("no runs yet; practicum run makes one\n");
    }
    runs.iter().rev().try_for_each(|run| print(&format!("{}\n", line(run))))
}

/// How a run stands: its exit code, still going on, or broken off.
fn state(run: &RunDir) -> String {
    match run.summary() {
        Some(summary) if summary.exit == 0 => "passed".to_owned(),
        Some(summary) if summary.exit == 1 => "failed".to_owned(),
        Some(summary) => format!("incomplete (exit {})", summary.exit),
        None if Live::read(run.path()).is_some_and(|live| live.is_running()) => "running".to_owned(),
        None => "broken off; practicum run --resume goes on".to_owned(),
    }
}

fn row(run: &RunDir) -> Value {
    let summary = run.summary();
    json!({
        "run": run.id(),
        "path": run.path(),
        "state": state(run),
        "exit": summary.as_ref().map(|summary| summary.exit),
        "totals": summary.as_ref().map(|summary| summary.totals),
        "cost_usd": summary.as_ref().and_then(|summary| summary.cost_usd),
    })
}

fn line(run: &RunDir) -> String {
    let counts = run.summary().map_or_else(String::new, |summary| {
        let totals = summary.totals;
        format!("  {}/{} passed", totals.passed, totals.trials)
            + &if totals.not_scored > 0 {
                format!(", {} not scored", totals.not_scored)
            } else {
                String::new()
            }
    });
    format!("{}  {}{counts}", run.id(), state(run))
}
