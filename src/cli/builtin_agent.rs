use std::path::PathBuf;

/// The builtin agent: one turn of it, as a process like any other agent.
#[derive(clap::Args)]
pub struct Args {
    #[arg(long)]
    workspace: PathBuf,
    #[arg(long)]
    session_file: Option<PathBuf>,
    #[arg(long)]
    model: Option<String>,
    #[arg(long)]
    append_system: Option<String>,
    #[arg(last = true)]
    prompt: Vec<String>,
}

pub fn main(_args: Args) -> u8 {
    3
}
