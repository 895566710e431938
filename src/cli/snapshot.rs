//! The command `practicum snapshot`: stores a skill as a version.

use std::path::PathBuf;

use super::{print, report_error};
use crate::model::Outcome;
use crate::report::terminal_safe;
use crate::versions::SkillVersions;

#[derive(clap::Args)]
#[command(after_help = "\
Versions are kept beside the skill, in <skill>-workspace/vN/skill, with a history.json that lists them. \
The evals of the skill are no part of a version.

Examples:
  practicum snapshot skills/release-notes -m \"before the rewrite\"
  practicum versions skills/release-notes
  practicum restore skills/release-notes v0")]
pub struct SnapshotArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// A description of this version
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

pub fn main(args: &SnapshotArgs) -> Outcome {
    snapshot(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn snapshot(args: &SnapshotArgs) -> anyhow::Result<()> {
    let versions = SkillVersions::for_skill(&args.skill)?;
    versions.unknown_keys_notice().iter().for_each(|notice| say!("{}", terminal_safe(notice)));
    let first = versions.history()?.versions.is_empty();
    let usual = if first { "baseline" } else { "" };
    let taken = versions.snapshot(args.message.as_deref().unwrap_or(usual))?;
    let place = versions.folder().join(format!("v{}", taken.version));
    match taken.is_new {
        true => {
            print(&format!("v{} kept in {}\n", taken.version, terminal_safe(&place.display().to_string())))
        }
        false => print(&format!("nothing to keep: the skill is as in v{}\n", taken.version)),
    }
}
