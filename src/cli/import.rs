//! The command `practicum import`: takes over the record of a run that another installation made.

use std::path::PathBuf;

use anyhow::anyhow;

use super::{count_with_noun, print, record_key, report_error};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::report::terminal_safe;
use crate::store::{RunDir, import_noise, import_run};

#[derive(clap::Args)]
#[command(after_help = "\
Results are reused only if this installation made them: a record that came with a repository could say anything. \
This command takes over a record that you know, such as one of another machine of yours or of a CI job. Jobs that \
share the variable PRACTICUM_RECORD_KEY reuse each other's results without it.

Examples:
  practicum import 20260102-030405678-abcdef   a run in .practicum/runs
  practicum import ../shard-2/.practicum/runs/20260102-030405678-abcdef")]
pub struct ImportArgs {
    /// The run: its id, a part of it, its folder, or latest; or noise, for what practicum noise measured elsewhere
    run: String,
    /// The project, or anything in it
    #[arg(long, value_name = "PATH", default_value = ".")]
    project: PathBuf,
}

pub fn main(args: &ImportArgs) -> Outcome {
    import(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn import(args: &ImportArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.project)?);
    if args.run == "noise" {
        import_noise(&project, &record_key()).map_err(|why| anyhow!(why))?;
        return print("the noise of this project counts from now on\n");
    }
    let from = RunDir::find(&project, &args.run).map_err(|why| anyhow!(why))?;
    let imported = import_run(&project, &from, &record_key())?;
    for trial in &imported.damaged {
        say!("not taken over: {}, whose files are not as they were written", terminal_safe(trial));
    }
    print(&format!("run {}: {} can be reused\n", imported.id, count_with_noun(imported.trials, "result")))
}
