use std::path::PathBuf;

use anyhow::anyhow;

use super::report::Reports;
use super::{complain, print};
use crate::model::{Condition, CriteriaThresholds, Ended, Mode, TrialRecord, Verdict, Vote, counted};
use crate::report::{Results, safe, shown_path};
use crate::settings::project_root;
use crate::store::{RunDir, find_trials, records};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum show                  the latest run
  practicum show 20261115-21      a run by a part of its id
  practicum show latest my-case   the trials of that case, in full
  practicum show latest 3f9a      one trial, by the beginning of its hash")]
pub struct Args {
    /// The run: its id, a part of it, or latest
    #[arg(default_value = "latest")]
    run: String,
    /// A case, or a part of its id that no other case has; or a trial: its id, its hash, or the first
    /// characters of its hash (at least 4)
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
            let found = find_trials(&records, wanted);
            let found = found.map_err(|why| anyhow!("run {}: {}", run.id(), safe(&why)))?;
            found.into_iter().try_for_each(|record| print(&trial(record, &run)))
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
        Verdict::NotScored(_) => {
            let why = record.why_not_scored().unwrap_or_default();
            format!("not scored: {}", safe(&why).replace('\n', "\n    "))
        }
    };
    let because = record.ended_because.as_deref().filter(|why| !why.trim().is_empty());
    let because = because.map(|why| format!(": {}", safe(why))).unwrap_or_default();
    let ended = match record.ended {
        Ended::Finished => String::new(),
        ended => format!("  ended: {}{because}\n", ended.in_words()),
    };
    let Condition { agent, model, arm, mode } = &record.condition;
    let condition: Vec<String> = [Some(safe(agent)), model.as_deref().map(safe), Some(arm.name())]
        .into_iter()
        .flatten()
        .chain((*mode != Mode::Baseline).then(|| safe(mode.name())))
        .collect();
    let mut out = format!(
        "{}: {verdict}\n  case {} of {}, {}, {:.1} s\n{ended}",
        record.trial,
        safe(&record.case),
        safe(&record.suite),
        condition.join(" "),
        record.seconds
    );
    if let Some(fired) = record.fired {
        out.push_str(&format!("  the skill was {}activated\n", if fired { "" } else { "not " }));
    }
    if let Some(from) = &record.reused_from {
        out.push_str(&format!("  taken over from run {from}\n"));
    }
    if let Some(criteria) = CriteriaThresholds::in_words(&record.checks) {
        out.push_str(&format!("  criteria: {criteria}\n"));
    }
    for check in &record.checks {
        let mark = match check.verdict {
            Verdict::Pass => "✓",
            Verdict::Fail => "✗",
            Verdict::NotScored(_) => "?",
        };
        let (title, weight) = (safe(&check.title()), check.weight());
        out.push_str(&format!("  {mark} {title}{weight}: {}\n", safe(&check.rationale)));
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
