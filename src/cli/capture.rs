//! The command `practicum capture`: keeps trials of a run as examples for new eval cases.

use std::path::PathBuf;

use anyhow::{anyhow, bail};

use super::{print, report_error};
use crate::improve::{CapturedTrial, StoredRun};
use crate::model::Outcome;
use crate::plan::CaseGlob;
use crate::plan::settings::project_root;
use crate::store::RunDir;
use crate::versions::SkillContents;

#[derive(clap::Args)]
#[command(after_help = "\
Captures are kept with the skill's evals, in evals/captured, and practicum propose shows them to the model as \
examples of what users ask and agents give.

Examples:
  practicum capture skills/release-notes                        the latest run
  practicum capture skills/release-notes --run 20261114-09 --case \"breaking-*\"")]
pub struct CaptureArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// The run: its id, a part of it, or latest
    #[arg(long, default_value = "latest")]
    run: String,
    /// Only cases whose id matches (* and ? are wildcards)
    #[arg(long, value_name = "GLOB", default_value = "*")]
    case: String,
}

pub fn main(args: &CaptureArgs) -> Outcome {
    capture(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn capture(args: &CaptureArgs) -> anyhow::Result<()> {
    let contents = SkillContents::scan(&args.skill)?;
    let project = project_root(contents.folder());
    let run = StoredRun::read(&RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?)?;
    let glob = CaseGlob::new(&args.case).ok_or_else(|| anyhow!("{} is not a valid pattern", args.case))?;
    let own = run.suites_about(&contents.skill_path());
    if own.is_empty() {
        bail!("run {} is not about {}; name another with --run", run.id, args.skill.display());
    }
    let fitting = run.trials_with_skill().filter(|record| {
        let is_own = own.iter().any(|suite| suite.name == record.suite);
        is_own && record.ended.can_be_graded() && glob.matches(&record.case)
    });
    let mut kept = 0;
    for record in fitting {
        let Some(capture) = CapturedTrial::from_record(&run, record) else { continue };
        print(&format!("{}\n", capture.write(&contents.skill_path(), record)?.display()))?;
        kept += 1;
    }
    if kept == 0 {
        bail!("run {} has no finished trial of such a case", run.id);
    }
    Ok(())
}
