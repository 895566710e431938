//! The command `practicum completions`: prints a shell's completion script.

use clap_complete::Shell;

use super::{command_line, print, report_error};
use crate::model::Outcome;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  source <(practicum completions bash)            in ~/.bashrc
  practicum completions zsh > ~/.zfunc/_practicum  into a folder of your $fpath
  practicum completions fish > ~/.config/fish/completions/practicum.fish")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub fn main(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(), "practicum", &mut script);
    print(&String::from_utf8_lossy(&script)).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

/// Gives the command line without hidden commands, which the scripts would otherwise offer.
fn shown() -> clap::Command {
    let whole = command_line();
    let commands = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("practicum")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .subcommands(commands.collect::<Vec<_>>())
}
