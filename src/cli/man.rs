//! The command `practicum man`: prints or writes the manual pages.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::{command_line, print, report_error};
use crate::model::Outcome;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  practicum man | man -l -
  practicum man -o ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write the page of the program and one for each command into this folder
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub fn main(args: &ManArgs) -> Outcome {
    let done = match &args.output {
        Some(folder) => write_pages(folder),
        None => print_page(),
    };
    done.map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn print_page() -> anyhow::Result<()> {
    let mut page = Vec::new();
    // `help` has no page to refer to.
    clap_mangen::Man::new(command_line().disable_help_subcommand(true)).render(&mut page)?;
    print(&String::from_utf8_lossy(&page))
}

fn write_pages(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command_line(), folder))
        .with_context(|| format!("cannot write to {}", folder.display()))
}
