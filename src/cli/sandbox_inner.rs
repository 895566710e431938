//! The hidden command that runs inside a sandbox: completes the isolation and then starts the agent.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use crate::workspace::sandbox::{InnerSteps, PortForward, confine_this_process, forward_while};

/// The arguments of the process that completes the sandbox from the inside and then starts the agent.
#[derive(clap::Args)]
pub struct SandboxInnerArgs {
    /// Can be read, with everything below
    #[arg(long)]
    ro: Vec<PathBuf>,
    /// Can be listed, with the folders below
    #[arg(long)]
    list: Vec<PathBuf>,
    /// Can be written, with everything below
    #[arg(long)]
    rw: Vec<PathBuf>,
    /// The user and group to become
    #[arg(long)]
    user: Option<u32>,
    /// The most processes and threads
    #[arg(long)]
    processes: Option<u64>,
    /// The most open files of one process
    #[arg(long)]
    open_files: Option<u64>,
    /// The largest file that can be written, in bytes
    #[arg(long)]
    file_size: Option<u64>,
    /// A port inside the sandbox that is forwarded to a socket
    #[arg(long, value_name = "PORT=SOCKET", conflicts_with_all = ["ro", "rw"])]
    forward: Vec<PortForward>,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

pub fn main(args: SandboxInnerArgs) -> u8 {
    // As in shells, 126 means that the program was found and could not be started.
    run(args).unwrap_or_else(|why| {
        say!("error: the sandbox cannot start its agent: {why}");
        126
    })
}

fn run(args: SandboxInnerArgs) -> Result<u8, String> {
    if !args.forward.is_empty() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        return runtime
            .block_on(forward_while(&args.command, &args.forward))
            .map_err(|error| error.to_string());
    }
    confine_this_process(&InnerSteps {
        read_only: args.ro,
        listable: args.list,
        writable: args.rw,
        user: args.user,
        processes: args.processes,
        open_files: args.open_files,
        file_size: args.file_size,
    })?;
    let (program, rest) = args.command.split_first().ok_or("there is no command")?;
    // `exec` returns only if it failed.
    Err(std::process::Command::new(program).args(rest).exec().to_string())
}
