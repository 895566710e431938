//! The command `practicum view`: shows runs, cases and transcripts in a browser.

use std::io::Write;
use std::path::{Path, PathBuf};
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
        // The file is deleted when the viewer ends.
        let _page = args.open.then(|| open_browser(viewer.url()));
        tokio::select! {
            served = viewer.serve() => served.context("cannot serve"),
            _ = interrupts::wait_for_stop_request() => Ok(()),
        }
    })
}

/// Asks the desktop to open a browser. A user without a desktop has the printed address.
///
/// The address holds the key to the viewer, and every user of the machine can see the arguments of a program. So the
/// browser gets a page that only this user can read, and the page leads to the address.
fn open_browser(url: &str) -> Option<tempfile::TempPath> {
    let page = redirecting_page(url).ok();
    if !page.as_ref().is_some_and(|page| open_page(page)) {
        say!("note: no browser could be opened; the address is above");
    }
    page
}

/// Asks the desktop to open a page in a browser. Says whether that could be asked.
pub fn open_page(page: &Path) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// Writes a page for this user alone that leads to an address.
fn redirecting_page(url: &str) -> std::io::Result<tempfile::TempPath> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("practicum-view-").suffix(".html");
    let mut file = match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => builder.tempfile_in(folder),
        None => builder.tempfile(),
    }?;
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">practicum view</a>\n"
    );
    file.write_all(page.as_bytes())?;
    Ok(file.into_temp_path())
}
