//! The command `practicum restore`: puts a skill back to one of its versions.

use std::path::PathBuf;

use super::{print, report_error};
use crate::model::Outcome;
use crate::report::terminal_safe;
use crate::versions::SkillVersions;

#[derive(clap::Args)]
#[command(after_help = "\
What is there is kept as a version first, the evals stay as they are, and the skill is exchanged at once.

Examples:
  practicum restore skills/release-notes v0")]
pub struct RestoreArgs {
    /// The skill's folder, or a command file
    skill: PathBuf,
    /// The version: v0, v1, … (see practicum versions)
    #[arg(value_name = "VERSION", value_parser = parse_version)]
    wanted: u32,
}

fn parse_version(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.parse().map_err(|_| "it must be like v0".to_owned())
}

pub fn main(args: &RestoreArgs) -> Outcome {
    restore(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn restore(args: &RestoreArgs) -> anyhow::Result<()> {
    let versions = SkillVersions::for_skill(&args.skill)?;
    versions.unknown_keys_notice().iter().for_each(|notice| say!("{}", terminal_safe(notice)));
    let restored = versions.restore(args.wanted)?;
    if restored.backup_is_new {
        print(&format!("what was there is kept as v{}\n", restored.backup_version))?;
    }
    let skill = versions.skill().display();
    match restored.changed {
        true => print(&format!("{skill} is v{} again\n", args.wanted)),
        false => print(&format!("{skill} is v{} already\n", args.wanted)),
    }
}
