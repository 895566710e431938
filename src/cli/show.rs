//! The command `practicum show`: shows a run or one of its trials.

use std::path::PathBuf;

use anyhow::anyhow;

use super::report::ReportOptions;
use super::{print, report_error};
use crate::model::{
    AgentEnding, Condition, JudgeVote, Outcome, SkillUseMode, TrialRecord, Verdict, count_with_noun,
};
use crate::plan::settings::project_root;
use crate::report::{RunResults, display_path, terminal_safe};
use crate::store::{RunDir, find_trials, read_records};
use crate::tree::read_regular_text;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum show                  the latest run
  practicum show 20261115-21      a run by a part of its id
  practicum show latest my-case   the trials of that case, in full
  practicum show latest 3f9a      one trial, by the beginning of its hash")]
pub struct ShowArgs {
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

pub fn main(args: ShowArgs) -> Outcome {
    match show(&args) {
        Ok(()) => Outcome::Passed,
        Err(error) => report_error(&error),
    }
}

fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    let run = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let records = read_records(run.path())?;
    match &args.trial {
        Some(wanted) => {
            let found = find_trials(&records, wanted);
            let found = found.map_err(|why| anyhow!("run {}: {}", run.id(), terminal_safe(&why)))?;
            found.into_iter().try_for_each(|record| print(&describe_trial(record, &run)))
        }
        None if run.summary().is_none() => print(&format!(
            "run {} has no summary yet; {} done\n",
            run.id(),
            count_with_noun(records.len(), "trial")
        )),
        None => ReportOptions::default().show(&RunResults::open(run).map_err(|why| anyhow!(why))?, false),
    }
}

/// Describes a trial: every check, the agent's last message, and where the other files are.
fn describe_trial(record: &TrialRecord, run: &RunDir) -> String {
    let folder = run.path().join("trials").join(record.trial.as_str());
    let verdict = match &record.verdict {
        Verdict::Pass => "passed".to_owned(),
        Verdict::Fail => "failed".to_owned(),
        Verdict::NotScored(_) => {
            let why = record.not_scored_reason().unwrap_or_default();
            format!("not scored: {}", terminal_safe(&why).replace('\n', "\n    "))
        }
    };
    let because = record.ended_because.as_deref().filter(|why| !why.trim().is_empty());
    let because = because.map(|why| format!(": {}", terminal_safe(why))).unwrap_or_default();
    let ended = match record.ended {
        AgentEnding::Finished => String::new(),
        ended => format!("  ended: {}{because}\n", ended.describe()),
    };
    let Condition { agent, model, arm, mode } = &record.condition;
    let condition: Vec<String> =
        [Some(terminal_safe(agent)), model.as_deref().map(terminal_safe), Some(arm.name())]
            .into_iter()
            .flatten()
            .chain((*mode != SkillUseMode::Baseline).then(|| terminal_safe(mode.name())))
            .collect();
    let mut out = format!(
        "{}: {verdict}\n  case {} of {}, {}, {:.1} s\n{ended}",
        record.trial,
        terminal_safe(&record.case),
        terminal_safe(&record.suite),
        condition.join(" "),
        record.seconds
    );
    if let Some(fired) = record.fired {
        out.push_str(&format!("  the skill was {}activated\n", if fired { "" } else { "not " }));
    }
    if let Some(from) = &record.reused_from {
        out.push_str(&format!("  taken over from run {from}\n"));
    }
    if let Some(criteria) = TrialRecord::describe_total(&record.checks) {
        out.push_str(&format!("  criteria: {criteria}\n"));
    }
    for check in &record.checks {
        let symbol = match check.verdict {
            Verdict::Pass => "✓",
            Verdict::Fail => "✗",
            Verdict::NotScored(_) => "?",
        };
        let (title, weight) = (terminal_safe(&check.title()), check.describe_weight());
        out.push_str(&format!("  {symbol} {title}{weight}: {}\n", terminal_safe(&check.rationale)));
        let weak = check.weak.as_ref().map(|why| format!("weak check: {why}"));
        let votes = JudgeVote::describe_agreement(&check.votes);
        let lines = check.evidence.iter().chain(&check.flags).chain(&weak).chain(&votes);
        for line in lines.filter(|line| !line.trim().is_empty()) {
            out.push_str(&format!("      {}\n", terminal_safe(line)));
        }
    }
    for uncovered in &record.remarks.uncovered {
        out.push_str(&format!("  not covered: {}\n", terminal_safe(uncovered)));
    }
    for claim in &record.remarks.claims {
        let word = if claim.verified { "confirmed claim" } else { "unconfirmed claim" };
        out.push_str(&format!(
            "  {word}: {}\n      {}\n",
            terminal_safe(&claim.claim),
            terminal_safe(&claim.evidence)
        ));
    }
    for note in &record.notes {
        out.push_str(&format!("  note: {}\n", terminal_safe(note)));
    }
    let said = read_regular_text(folder.join("output.txt")).unwrap_or_default();
    if !said.is_empty() {
        out.push_str("  the agent's last words:\n");
        for line in terminal_safe(&said).lines().take(40) {
            out.push_str(&format!("    {line}\n"));
        }
    }
    out.push_str(&format!("  files: {}\n", display_path(&folder)));
    out
}
