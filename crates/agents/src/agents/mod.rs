//! The agent CLIs: how each is called, and how its stream is read.
//!
//! In: what a turn needs. Out: a `Launch`; from a stream, a `Transcript`. Never: spawns a process.

mod builtin;
mod claude;
mod codex;
mod gemini;
mod launch;
mod opencode;
mod oracle;
mod own_commands;
mod shell_reads;
mod skill_paths;
mod stream;
#[cfg(test)]
mod testing;
mod text;
mod tool_names;

pub use builtin::SUBCOMMAND as BUILTIN_SUBCOMMAND;
pub use launch::{
    Agent, Credentials, HomeFiles, Launch, LaunchError, Login, LoginFile, ModelAddress, Program, Route, Turn,
    find_program,
};
pub use oracle::{Inquiry, Oracle, claude_oracle, codex_oracle};
pub use own_commands::is_own_command;
use shell_reads::skills_read_by;
pub use skill_paths::skill_read_in;
use stream::refused_by_tool;
pub use stream::{Decoder, DecoderKind, Said, Transcript};
pub use tool_names::{is_tool_name, tool_names};

/// The agents that need no configuration. A new one is a file and a line here.
pub static AGENTS: &[fn() -> Agent] =
    &[claude::agent, codex::agent, gemini::agent, opencode::agent, builtin::agent];

/// How a stream can be read. A new one is a file and a line here.
pub static DECODERS: &[&DecoderKind] =
    &[&claude::STREAM, &codex::STREAM, &gemini::STREAM, &opencode::STREAM, &builtin::STREAM, &text::STREAM];

pub fn agent(name: &str) -> Option<Agent> {
    AGENTS.iter().map(|make| make()).find(|agent| agent.name == name)
}

pub fn agent_names() -> Vec<String> {
    AGENTS.iter().map(|make| make().name).collect()
}

pub fn decoder(name: &str) -> Option<&'static DecoderKind> {
    DECODERS.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_chooses_among_these_in_this_order() {
        assert_eq!(agent_names(), ["claude", "codex", "gemini", "opencode", "builtin"]);
        let auto = AGENTS.iter().map(|make| make()).filter(|agent| agent.auto);
        assert_eq!(auto.map(|agent| agent.name).collect::<Vec<String>>(), ["claude", "codex", "builtin"]);
    }
}
