use std::path::PathBuf;

use super::{complain, counted, print};
use crate::settings::project_root;
use crate::store::Index;

#[derive(clap::Args)]
#[command(after_help = "\
The index, .practicum/index.db, only repeats what the run directories say, and keeps up with them by \
itself. It may be deleted at any time.")]
pub struct Args {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
}

pub fn main(args: &Args) -> u8 {
    reindex(args).map_or_else(|error| complain(&error), |()| 0)
}

fn reindex(args: &Args) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.path)?);
    let found = Index::rebuild(&project)?;
    print(&format!("{} with {}\n", counted(found.runs, "run"), counted(found.trials, "trial")))
}
