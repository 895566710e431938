//! The command `practicum view`: shows runs, cases and transcripts in a browser.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Context;

use super::{interrupts, print, report_error, runtime};
use crate::model::Outcome;
use crate::plan::settings::project_root;
use crate::serve::Viewer;

#[derive(clap::Args)]
#[command(after_help = "\
Serves a page of this project's runs on this machine, for whoever has the address, until interrupted. \
Nobody on other machines can reach it, and it asks for nothing from elsewhere.

Examples:
  practicum view                prints the address
  practicum view --open         and opens it
  practicum view --port 8080    behind a tunnel: ssh -L 8080:localhost:8080")]
pub struct ViewArgs {
    /// The project, or anything in it
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// The port to serve on; any free one if not given
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
}

pub fn main(args: &ViewArgs) -> Outcome {
    view(args).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn view(args: &ViewArgs) -> anyhow::Result<()> {
    let project = project_root(&std::path::absolute(&args.path)?);
    runtime().context("cannot start")?.block_on(async {
        let viewer = Viewer::open(&project, args.port).await.context("cannot serve")?;
        print(&format!("{}\n", viewer.url()))?;
        if args.open {
            open_browser(viewer.url());
        }
        tokio::select! {
            served = viewer.serve() => served.context("cannot serve"),
            _ = interrupts::wait_for_stop_request() => Ok(()),
        }
    })
}

/// Asks the desktop to open a browser. A user without a desktop has the printed address.
pub fn open_browser(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        say!("note: no browser could be opened; the address is above");
    }
}
