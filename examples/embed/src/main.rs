//! Runs a suite with the built-in agent on a script, and prints the verdict of each case.

use std::path::Path;
use std::process::ExitCode;

use practicum::model::Outcome;
use practicum::session::{Session, SessionError, SilentObserver};

fn main() -> ExitCode {
    // The built-in agent and the sandbox start this program again.
    if let Some(code) = practicum::run_helper_command() {
        return code;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime
        .map_err(|error| error.to_string())
        .and_then(|runtime| runtime.block_on(run()).map_err(|error| error.to_string()))
    {
        Ok(outcome) => ExitCode::from(u8::from(outcome)),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<Outcome, SessionError> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("greeter");
    let finished = Session::new(&folder)
        .suite(folder.join("evals/greeter.practicum.yaml"))
        .agent("builtin")
        .repeat(2)
        // The built-in agent works from a script and runs nothing.
        .with_setting("sandbox", "off")
        .run(&mut SilentObserver)
        .await?;
    let summary = &finished.summary;
    for case in &summary.cases {
        println!("{}: {} of {} trials passed", case.id, case.passed, case.trials());
    }
    println!("record: {}", finished.run_dir.path().display());
    Ok(summary.exit)
}
