//! The agent CLIs: how each is called, and how its stream is read.
//!
//! In: the data of a turn. Out: a `Launch`; from a stream, a `StreamTranscript`. Never: spawns a process.

mod builtin;
mod claude;
mod codex;
mod gemini;
mod launch;
mod model_cli;
mod opencode;
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
    AgentCli, AgentCredentials, AgentLogin, AgentProgram, AgentTurn, GatewayRoute, HomeFiles, Launch,
    LaunchError, LoginFile, ModelAddress, find_program,
};
pub use model_cli::{ModelCli, ModelCliRequest, claude_model_cli, codex_model_cli};
pub use own_commands::is_own_command;
use shell_reads::skills_shown_by_command;
pub use skill_paths::skill_of_path;
use stream::refused_skill_call;
pub use stream::{Decoder, DecoderKind, StreamEnd, StreamTranscript};
pub use tool_names::{is_tool_name, tool_names};

/// The agents that need no configuration. A new one is a file and a line here.
pub static AGENTS: &[fn() -> AgentCli] =
    &[claude::agent, codex::agent, gemini::agent, opencode::agent, builtin::agent];

/// The decoders of streams. A new one is a file and a line here.
pub static DECODERS: &[&DecoderKind] = &[
    &claude::DECODER,
    &codex::DECODER,
    &gemini::DECODER,
    &opencode::DECODER,
    &builtin::DECODER,
    &text::DECODER,
];

pub fn find_agent(name: &str) -> Option<AgentCli> {
    AGENTS.iter().map(|make| make()).find(|agent| agent.name == name)
}

pub fn agent_names() -> Vec<String> {
    AGENTS.iter().map(|make| make().name).collect()
}

pub fn find_decoder(name: &str) -> Option<&'static DecoderKind> {
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
