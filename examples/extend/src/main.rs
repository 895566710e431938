//! Adds an eval format, a check, an agent and a report from outside, runs the evals of a skill and writes the report.

mod agent;
mod check;
mod format;
mod report;

use std::error::Error;
use std::path::{Path, PathBuf};

use practicum::Registry;
use practicum::session::{Session, SilentObserver};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let registry = Registry::default()
        .with_format(&format::Questions)
        .with_check(&check::LINE_COUNT)
        .with_agent(agent::shell_agent())
        .with_report(&report::LINES);
    let skill = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("answers"),
    };
    let finished = Session::new(&skill)
        .with_registry(&registry)
        .suite(&skill)
        .agent("shell")
        // The agent of this example only prints text.
        .with_setting("sandbox", "off")
        .run(&mut SilentObserver)
        .await?;
    let path = finished.run_dir.path().join("lines.txt");
    let lines = registry.reports.report("lines").ok_or("the report was added above")?;
    lines.write_to_path(&registry.open_results(finished.run_dir)?, &path)?;
    println!("{}", std::fs::read_to_string(&path)?);
    Ok(())
}
