//! The command line: one file a command.
//!
//! In: arguments. Out: an exit code. Never: contains logic that a library user would want.

mod builtin_agent;
mod check;
mod convert;
mod evals;
mod formats;
mod gateway;
mod init;
mod lint;
mod list;
mod run;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::intake::IntakeError;
use crate::report::{render_diagnostics, safe};
use crate::store::StoreError;

/// The practical exam for AI-agent skills.
///
/// Reads your eval files, stages the skill in a clean room, lets a real agent work on each case,
/// and marks what it did.
#[derive(Parser)]
#[command(name = "practicum", version, propagate_version = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run evals: find them, stage each case, let the agent work, mark the result
    Run(run::Args),
    /// Check eval files and the skills they name, without running anything
    Check(check::Args),
    /// Show what would run: suites, cases and trials
    List(list::Args),
    /// Write an eval file in another format
    Convert(convert::Args),
    /// Write the first evals of a skill, for its author to go on from
    Init(init::Args),
    /// List the formats that has_format checks and field formats know by name
    Formats(formats::Args),
    /// Read skills as a critic would: the specification, links, scripts, conventions
    Lint(lint::Args),
    /// Serve a model gateway alone: play a script, meter, record or replay
    Gateway(gateway::Args),
    #[command(name = crate::agents::BUILTIN_SUBCOMMAND, hide = true)]
    BuiltinAgent(builtin_agent::Args),
}

const EXIT_CODES: &str = "\
Exit codes:
  0    every gate holds
  1    a gate failed
  2    bad usage, an eval file that cannot be understood, or an invalid skill
  3    the run could not be completed; its results are kept
  4    the budget was used up; the results so far are kept
  130  interrupted";

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let code = match cli.command {
        Command::Run(args) => run::main(args),
        Command::Check(args) => check::main(args),
        Command::List(args) => list::main(args),
        Command::Convert(args) => convert::main(args),
        Command::Init(args) => init::main(args),
        Command::Formats(args) => formats::main(args),
        Command::Lint(args) => lint::main(&args),
        Command::Gateway(args) => gateway::main(&args),
        Command::BuiltinAgent(args) => builtin_agent::main(args),
    };
    ExitCode::from(code)
}

/// The user's environment, as far as it is text.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Whether standard error may have colours.
fn colour() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// An error for people: what happened, and why. Gives the exit code: bad usage and bad files are
/// 2, a machine that cannot do it is 3.
fn complain(error: &anyhow::Error) -> u8 {
    if let Some(IntakeError::Script { path, text, diagnostics }) = error.downcast_ref() {
        eprint!("{}", render_diagnostics(diagnostics, path, text, colour()));
    }
    eprintln!("error: {}", safe(&format!("{error:#}")));
    match error.downcast_ref::<IntakeError>() {
        Some(IntakeError::NotInstalled(_) | IntakeError::Gateway(_)) => 3,
        Some(
            IntakeError::Discover(_)
            | IntakeError::Settings(_)
            | IntakeError::Skill(_)
            | IntakeError::UnknownAgent { .. }
            | IntakeError::NotOfSuite { .. }
            | IntakeError::Script { .. }
            | IntakeError::Cassette(_)
            | IntakeError::Missing(_),
        ) => 2,
        None if error.downcast_ref::<StoreError>().is_some() => 3,
        None => 2,
    }
}

/// Writes to standard output. A reader who went away has seen enough.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The async runtime, as large as the machine.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
