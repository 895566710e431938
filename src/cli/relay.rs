//! The hidden command that an agent starts in place of a mocked server or command: it relays the calls to the run.

use std::path::PathBuf;

use crate::workspace::mocks::{relay_command, relay_server};

/// The arguments of the process that relays calls.
#[derive(clap::Args)]
pub struct RelayArgs {
    /// The socket of the trial
    #[arg(long)]
    socket: PathBuf,
    /// The mocked MCP server
    #[arg(long, conflicts_with = "command", required_unless_present = "command")]
    server: Option<String>,
    /// The mocked command
    #[arg(long)]
    command: Option<String>,
    /// The arguments of the command
    #[arg(last = true)]
    args: Vec<String>,
}

/// The exit code if the run cannot be reached.
const UNREACHED: u8 = 98;

pub fn main(args: RelayArgs) -> u8 {
    let relayed = match (args.command, args.server) {
        (Some(command), _) => relay_command(&args.socket, command, args.args),
        (None, Some(server)) => relay_server(&args.socket, server).map(|()| 0),
        (None, None) => return UNREACHED,
    };
    relayed.unwrap_or_else(|error| {
        say!("error: this call cannot be answered: {error}");
        UNREACHED
    })
}
