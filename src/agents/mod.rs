//! The agent CLIs: how each is called, and how its stream is read.
//!
//! In: what a turn needs. Out: a `Launch`; from a stream, a `Transcript`. Never: spawns a process.

mod builtin;
mod claude;
mod launch;
mod skill_paths;
mod stream;
mod text;

pub use builtin::SUBCOMMAND as BUILTIN_SUBCOMMAND;
pub use launch::{Agent, Credentials, Launch, LaunchError, ModelAddress, Program, Route, Turn, find_program};
pub use skill_paths::skill_read_in;
pub use stream::{Decoder, DecoderKind, Said, Transcript};

/// The agents that need no configuration. A new one is a file and a line here.
pub static AGENTS: &[fn() -> Agent] = &[claude::agent, builtin::agent];

/// How a stream can be read. A new one is a file and a line here.
pub static DECODERS: &[&DecoderKind] = &[&claude::STREAM, &builtin::STREAM, &text::STREAM];

pub fn agent(name: &str) -> Option<Agent> {
    AGENTS.iter().map(|make| make()).find(|agent| agent.name == name)
}

pub fn agent_names() -> Vec<String> {
    AGENTS.iter().map(|make| make().name).collect()
}

pub fn decoder(name: &str) -> Option<&'static DecoderKind> {
    DECODERS.iter().copied().find(|kind| kind.name == name)
}
