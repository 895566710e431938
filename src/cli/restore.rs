use std::path::PathBuf;

use super::{complain, print};
use crate::report::safe;
use crate::versions::Versions;

#[derive(clap::Args)]
#[command(after_help = "\
What is there is kept as a version first, the evals stay as they are, and the skill is exchanged at once.

Examples:
  practicum restore skills/release-notes v0")]
pub struct Args {
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

pub fn main(args: &Args) -> u8 {
    restore(args).map_or_else(|error| complain(&error), |()| 0)
}

fn restore(args: &Args) -> anyhow::Result<()> {
    let versions = Versions::of(&args.skill)?;
    versions.notice().iter().for_each(|notice| say!("{}", safe(notice)));
    let restored = versions.restore(args.wanted)?;
    if restored.kept_now {
        print(&format!("what was there is kept as v{}\n", restored.kept_as))?;
    }
    let skill = versions.skill().display();
    match restored.changed {
        true => print(&format!("{skill} is v{} again\n", args.wanted)),
        false => print(&format!("{skill} is v{} already\n", args.wanted)),
    }
}
