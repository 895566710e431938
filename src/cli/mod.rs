//! The command line: one file a command.
//!
//! In: arguments. Out: an exit code. Never: contains logic that a library user would want.

mod builtin_agent;
mod lint;
mod run;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Read skills as a critic would: the specification, links, scripts, conventions
    Lint(lint::Args),
    #[command(name = crate::agents::BUILTIN_SUBCOMMAND, hide = true)]
    BuiltinAgent(builtin_agent::Args),
}

const EXIT_CODES: &str = "\
Exit codes:
  0    every gate holds
  1    a gate failed
  2    bad usage, an eval file that cannot be understood, or an invalid skill
  3    the run could not be completed; its results are kept
  130  interrupted";

/// Runs the program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let code = match cli.command {
        Command::Run(args) => run::main(args),
        Command::Lint(args) => lint::main(&args),
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

/// An error for people: what happened, and below it why.
fn complain(error: &anyhow::Error) {
    eprintln!("error: {}", crate::report::safe(&format!("{error:#}")));
}

/// The async runtime, as large as the machine.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
