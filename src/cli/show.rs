use std::path::PathBuf;

use anyhow::anyhow;

use super::report::Reports;
use super::{complain, print};
use crate::model::{Scale, TrialRecord, Verdict, Vote, counted};
use crate::report::{Results, safe, shown_path};
use crate::settings::project_root;
use crate::store::{RunDir, records};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum show                  the latest run
  practicum show 20261115-21      a run by a part of its id
  practicum show latest my-case   its trials of cases like my-case, in full")]
pub struct Args {
    /// The run: its id, a part of it, or latest
    #[arg(default_value = "latest")]
    run: String,
    /// A trial, or all of a case: an id or a part of one
    trial: Option<String>,
    /// The project, or anything in it
    #[arg(long, default_value = ".")]
    project: PathBuf,
}

pub fn main(args: Args) -> u8 {
    match show(&args) {
        Ok(()) => 0,
        Err(error) => complain(&error),
    }
}

fn show(args: &Args) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let run = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let records = records(run.path())?;
    match &args.trial {
        Some(wanted) => {
            let fits = |record: &&TrialRecord| {
                [record.trial.as_str(), &record.case].iter().any(|id| id.contains(wanted.as_str()))
            };
            let fitting: Vec<&TrialRecord> = records.values().filter(fits).collect();
            if fitting.is_empty() {
                let known = records.values().map(|record| record.trial.as_str()).next();
                let known = known.map(|id| format!("; its trials have ids like {id}")).unwrap_or_default();
                return Err(anyhow!("run {} has no trial {wanted}{known}", run.id()));
            }
            fitting.into_iter().try_for_each(|record| print(&trial(record, &run)))
        }
        None if run.summary().is_none() => {
            print(&format!("run {} has no summary yet; {} done\n", run.id(), counted(records.len(), "trial")))
        }
        None => Reports::default().show(&Results::open(run).map_err(|why| anyhow!(why))?, false),
    }
}

/// A trial with every check, what the agent said last, and where the rest is.
fn trial(record: &TrialRecord, run: &RunDir) -> String {
    let folder = run.path().join("trials").join(record.trial.as_str());
    let verdict = match &record.verdict {
        Verdict::Pass => "passed".to_owned(),
        Verdict::Fail => "failed".to_owned(),
        Verdict::NotScored(why) => format!("not scored: {}", why.in_words()),
    };
    let mut out = format!(
        "{}: {verdict}\n  case {} of {}, {} {}, {:.1} s\n",
        record.trial,
        safe(&record.case),
        safe(&record.suite),
        safe(&record.condition.agent),
        record.condition.arm.name(),
        record.seconds
    );
    if let Some(from) = &record.reused_from {
        out.push_str(&format!("  taken over from run {from}\n"));
    }
    for check in &record.checks {
        let mark = match check.verdict {
            Verdict::Pass => "✓",
            Verdict::Fail => "✗",
            Verdict::NotScored(_) => "?",
        };
        let score = check.score.filter(|_| check.scale == Some(Scale::OneToFive));
        let score = score.map(|score| format!(" {score} of 5")).unwrap_or_default();
        out.push_str(&format!("  {mark} {}{score}: {}\n", safe(&check.check), safe(&check.rationale)));
        let weak = check.weak.as_ref().map(|why| format!("weak check: {why}"));
        let votes = Vote::agreement(&check.votes);
        let lines = check.evidence.iter().chain(&check.flags).chain(&weak).chain(&votes);
        for line in lines.filter(|line| !line.trim().is_empty()) {
            out.push_str(&format!("      {}\n", safe(line)));
        }
    }
    for uncovered in &record.remarks.uncovered {
        out.push_str(&format!("  not covered: {}\n", safe(uncovered)));
    }
    for claim in &record.remarks.claims {
        let word = if claim.verified { "claim borne out" } else { "claim not borne out" };
        out.push_str(&format!("  {word}: {}\n      {}\n", safe(&claim.claim), safe(&claim.evidence)));
    }
    for note in &record.notes {
        out.push_str(&format!("  note: {}\n", safe(note)));
    }
    let said = std::fs::read_to_string(folder.join("output.txt")).unwrap_or_default();
    if !said.is_empty() {
        out.push_str("  the agent's last words:\n");
        for line in safe(&said).lines().take(40) {
            out.push_str(&format!("    {line}\n"));
        }
    }
    out.push_str(&format!("  files: {}\n", shown_path(&folder)));
    out
}
