//! The builtin agent: a small agent program that needs nothing but a model.
//!
//! In: a prompt, a workspace, a skills folder and a model endpoint. Out: practicum-jsonl, line by line, and an
//! exit code.
//! Never: a question to a person, a file tool outside its folders.

pub mod events;

mod agent;
mod allowed_folders;
mod files;
mod session;
mod shell;
mod skills;
#[cfg(test)]
mod tests;
mod tools;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::llm::{Endpoint, LlmError, ModelClient};
use agent::BuiltinAgent;
use events::{JsonlEnding, JsonlEvent};

/// The options of one run of the built-in agent.
#[derive(Debug, Clone)]
pub struct BuiltinOptions {
    /// The prompt. `/name …` invokes the skill of that name, if there is one.
    pub prompt: String,
    pub workspace: PathBuf,
    /// The folder of skills, which need not exist. A folder `commands` beside it contains command files.
    pub skills_dir: PathBuf,
    pub model: Option<String>,
    pub endpoint: Endpoint,
    /// The file that carries a conversation from one run to the next.
    pub session_file: Option<PathBuf>,
    pub append_system: Option<String>,
    /// The only tools that the agent may use; all if this is `None`.
    pub tools: Option<Vec<String>>,
    /// The greatest number of model requests in this run.
    pub max_turns: u32,
}

/// Runs one prompt to its end, writing to standard output. Returns the exit code.
pub async fn run(options: BuiltinOptions) -> i32 {
    let client = ModelClient::new(options.endpoint.clone());
    run_with_client(&options, client, &mut io::stdout()).await
}

/// Writes the stream of a run that has no endpoint, so that its reader sees the error. Returns the exit code.
pub fn run_without_endpoint(error: &LlmError) -> i32 {
    let start = JsonlEvent::Start {
        schema_version: events::SCHEMA_VERSION,
        agent: Some("builtin".to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        model: None,
        skills: None,
        tools: None,
        session: None,
    };
    let end = JsonlEvent::End { ending: ending_for_error(error), message: Some(error.to_string()), turns: 0 };
    for event in [start, end] {
        if write_event(&mut io::stdout(), &event).is_err() {
            break;
        }
    }
    1
}

/// Runs one prompt like `run`, with the caller's client and output.
pub async fn run_with_client<W: Write>(
    options: &BuiltinOptions,
    client: Result<ModelClient, LlmError>,
    out: &mut W,
) -> i32 {
    match run_agent(options, client, out).await {
        Ok(JsonlEnding::Finished) => 0,
        Ok(
            JsonlEnding::RateLimited
            | JsonlEnding::AuthFailed
            | JsonlEnding::ApiFailed
            | JsonlEnding::OverBudget,
        ) => 1,
        // No ending exists for this error: the reader of the stream sees that it broke off.
        Err(error) => {
            let _ = writeln!(io::stderr(), "practicum builtin agent: {error}");
            1
        }
    }
}

async fn run_agent<W: Write>(
    options: &BuiltinOptions,
    client: Result<ModelClient, LlmError>,
    out: &mut W,
) -> io::Result<JsonlEnding> {
    let mut agent = BuiltinAgent::prepare(options, out)?;
    agent.emit_start()?;
    let (ending, message) = match client {
        Ok(client) => agent.run_conversation(&client).await?,
        Err(error) => (ending_for_error(&error), Some(error.to_string())),
    };
    agent.emit_end(ending, message)?;
    Ok(ending)
}

fn ending_for_error(error: &LlmError) -> JsonlEnding {
    match error {
        LlmError::RateLimited { .. } => JsonlEnding::RateLimited,
        LlmError::Auth(_) => JsonlEnding::AuthFailed,
        LlmError::Api { .. } | LlmError::Network(_) | LlmError::Malformed(_) => JsonlEnding::ApiFailed,
    }
}

/// Writes one line and flushes it, so that a reader sees it even if the process is killed right after.
fn write_event<W: Write>(out: &mut W, event: &JsonlEvent) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}
