//! The agent CLIs: how each is called, and how its stream is read.
//!
//! In: the data of a turn. Out: a `Launch`; from a stream, a `StreamTranscript`. Never: spawns a process.

mod acp;
mod builtin;
mod claude;
mod codex;
mod copilot;
mod credentials;
mod gemini;
mod given_tools;
mod goose;
mod launch;
mod listing_measure;
mod model_cli;
mod opencode;
mod own_commands;
mod programs;
mod qwen;
mod recorded_session;
mod registry;
mod session_files;
mod shell_reads;
mod shell_words;
mod skill_paths;
mod skill_reads;
mod skill_text;
mod stream;
#[cfg(test)]
mod testing;
mod text;
mod tool_names;

pub use builtin::SUBCOMMAND as BUILTIN_SUBCOMMAND;
pub use claude::{COMMANDS_FOLDER, FOREGROUND_TASKS_VARIABLE, SKILL_TOOL};
pub use credentials::{AgentCredentials, AgentLogin, LoginFile};
pub use given_tools::McpServerCommand;
pub use launch::{
    AgentCli, AgentProgram, AgentTurn, GatewayRoute, HomeFiles, Launch, LaunchError, ModelAddress,
};
pub use listing_measure::measure_listing;
pub use model_cli::{
    ModelCli, ModelCliRequest, claude_model_cli, codex_model_cli, default_judge_model, model_cli_of,
};
pub use own_commands::is_own_command;
pub use programs::find_program;
pub use recorded_session::{RecordedSession, RecordedTurn, SessionFormat, read_session};
pub use registry::AgentRegistry;
pub use session_files::{SessionRecord, read_session_files};
use skill_reads::{called_skill, hidden_subagent, is_skill_tool, is_subagent_tool};
pub use skill_reads::{skills_read_in, text_findings, unanswered_calls_in};
pub use skill_text::{SkillTextLines, SkillTextWatch, TextSource};
pub use stream::{AgentClient, ClientAnswer, Decoder, DecoderKind, NewClient, StreamEnd, StreamTranscript};
use stream::{classify_api_error, refused_skill_call};
pub use tool_names::{ASK_USER_TOOLS, is_tool_name, tool_names};

use practicum_core::model::RelPath;

/// The agents that need no configuration. A new one is a file and a line here.
pub static AGENTS: &[fn() -> AgentCli] = &[
    claude::agent,
    codex::agent,
    gemini::agent,
    opencode::agent,
    copilot::agent,
    goose::agent,
    qwen::agent,
    builtin::agent,
];

/// The decoders of streams. A new one is a file and a line here.
pub static DECODERS: &[&DecoderKind] = &[
    &claude::DECODER,
    &codex::DECODER,
    &gemini::DECODER,
    &opencode::DECODER,
    &copilot::DECODER,
    &goose::DECODER,
    &qwen::DECODER,
    &acp::DECODER,
    &builtin::DECODER,
    &text::DECODER,
];

/// Gives the built-in agent of this name.
pub fn find_agent(name: &str) -> Option<AgentCli> {
    AGENTS.iter().map(|make| make()).find(|agent| agent.name == name)
}

/// Translates the name that other tools use for an agent.
pub fn translate_agent_name(name: &str) -> &str {
    match name {
        "claude-code" => "claude",
        other => other,
    }
}

/// Gives the folders of a project in which the known agents look for skills and commands.
pub fn skill_and_command_folders() -> Vec<RelPath> {
    let commands = RelPath::new(COMMANDS_FOLDER).expect("a relative path");
    let mut folders: Vec<RelPath> = AGENTS.iter().map(|make| make().skills_dir).chain([commands]).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Gives the names of the built-in agents.
pub fn agent_names() -> Vec<String> {
    AGENTS.iter().map(|make| make().name).collect()
}

/// Gives the built-in decoder of this name.
pub fn find_decoder(name: &str) -> Option<&'static DecoderKind> {
    DECODERS.iter().copied().find(|kind| kind.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_chooses_among_these_in_this_order() {
        assert_eq!(
            agent_names(),
            ["claude", "codex", "gemini", "opencode", "copilot", "goose", "qwen", "builtin"]
        );
        let mut auto: Vec<AgentCli> =
            AGENTS.iter().map(|make| make()).filter(|agent| agent.auto.is_some()).collect();
        auto.sort_by_key(|agent| agent.auto);
        let names = auto.into_iter().map(|agent| agent.name);
        assert_eq!(names.collect::<Vec<String>>(), ["claude", "codex", "builtin"]);
    }
}
