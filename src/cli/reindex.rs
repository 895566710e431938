//! The command `practicum reindex`: rebuilds the index of runs.

use std::path::PathBuf;

use super::{count_with_noun, print, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::store::Index;

#[derive(clap::Args)]
#[command(after_help = "\
The index, .practicum/index.db, only repeats what the run directories say, and keeps up with them by \
itself. It may be deleted at any time.")]
pub struct ReindexArgs {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
}

pub fn main(args: &ReindexArgs) -> Outcome {
    reindex(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn reindex(args: &ReindexArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.path)?);
    let found = Index::rebuild(&project)?;
    print(&format!(
        "{} with {}\n",
        count_with_noun(found.runs, "run"),
        count_with_noun(found.trials, "trial")
    ))
}
