//! The hidden command of the built-in agent: runs one turn as a process of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{environment, runtime};
use crate::builtin::{BuiltinOptions, run, run_without_endpoint};
use crate::llm::{Endpoint, ModelApi};

/// The builtin agent: one turn of it, as a process like any other agent.
#[derive(clap::Args)]
pub struct BuiltinAgentArgs {
    #[arg(long)]
    workspace: PathBuf,
    /// Where it looks for skills, inside the workspace
    #[arg(long, default_value = ".claude/skills")]
    skills_dir: PathBuf,
    /// Carries a conversation from one turn to the next
    #[arg(long)]
    session_file: Option<PathBuf>,
    #[arg(long)]
    model: Option<String>,
    #[arg(long)]
    append_system: Option<String>,
    /// The only tools that it may use
    #[arg(long, value_delimiter = ',')]
    tools: Option<Vec<String>>,
    #[arg(long, default_value_t = 100)]
    max_turns: u32,
    #[arg(last = true, required = true)]
    prompt: Vec<String>,
}

pub fn main(args: BuiltinAgentArgs) -> u8 {
    let env = environment();
    let endpoint = match Endpoint::from_env(choose_api(&env), &env) {
        Ok(endpoint) => endpoint,
        Err(error) => return code(run_without_endpoint(&error)),
    };
    let options = BuiltinOptions {
        prompt: args.prompt.join(" "),
        skills_dir: args.workspace.join(&args.skills_dir),
        workspace: args.workspace,
        model: args.model,
        endpoint,
        session_file: args.session_file,
        append_system: args.append_system,
        tools: args.tools,
        max_turns: args.max_turns,
    };
    match runtime() {
        Ok(runtime) => code(runtime.block_on(run(options))),
        Err(error) => {
            say!("error: cannot start: {error}");
            1
        }
    }
}

/// Chooses the API: the one that the user names, otherwise the one that the set variables suggest. A custom base
/// URL most likely belongs to a server that supports only Chat Completions.
fn choose_api(env: &BTreeMap<String, String>) -> ModelApi {
    let set = |name: &str| env.get(name).is_some_and(|value| !value.is_empty());
    match env.get("PRACTICUM_BUILTIN_API").map(String::as_str) {
        Some("anthropic") => ModelApi::AnthropicMessages,
        Some("openai-responses") => ModelApi::OpenAiResponses,
        Some("openai-chat") => ModelApi::OpenAiChat,
        _ if set("ANTHROPIC_API_KEY") || set("ANTHROPIC_AUTH_TOKEN") || set("ANTHROPIC_BASE_URL") => {
            ModelApi::AnthropicMessages
        }
        _ if set("OPENAI_BASE_URL") => ModelApi::OpenAiChat,
        _ if set("OPENAI_API_KEY") => ModelApi::OpenAiResponses,
        _ => ModelApi::AnthropicMessages,
    }
}

fn code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(1)
}
