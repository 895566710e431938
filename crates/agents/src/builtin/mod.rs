//! The builtin agent: a small agent program that needs nothing but a model.
//!
//! In: a prompt, a workspace, a skills folder and a model endpoint. Out: practicum-jsonl, line by
//! line, and an exit code. Never: a question to a person, a file tool outside its folders.

pub mod events;

mod agent;
mod fence;
mod files;
mod session;
mod shell;
mod skills;
#[cfg(test)]
mod tests;
mod tools;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::llm::{Client, Endpoint, LlmError};
use agent::Agent;
use events::{Ending, Event};

#[derive(Debug, Clone)]
pub struct Options {
    /// `/name …` invokes the skill of that name, if there is one.
    pub prompt: String,
    pub workspace: PathBuf,
    /// Folders with a SKILL.md; need not exist. A folder `commands` beside it holds command files.
    pub skills_dir: PathBuf,
    pub model: Option<String>,
    pub endpoint: Endpoint,
    /// Carries a conversation from one run to the next.
    pub session_file: Option<PathBuf>,
    pub append_system: Option<String>,
    /// The only tools that it may use; all if nothing is said.
    pub tools: Option<Vec<String>>,
    /// Model requests in this run.
    pub max_turns: u32,
}

/// Runs one prompt to its end, writing to standard output. Returns the exit code.
pub async fn run(options: Options) -> i32 {
    let client = Client::new(options.endpoint.clone());
    run_to(&options, client, &mut io::stdout()).await
}

/// For a caller that could not even make an endpoint: the stream says so, as if it had been tried.
pub fn run_without_endpoint(error: &LlmError) -> i32 {
    let start = Event::Start {
        schema_version: events::SCHEMA_VERSION,
        agent: Some("builtin".to_owned()),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        model: None,
        skills: None,
        tools: None,
        session: None,
    };
    let end = Event::End { ending: ending_of(error), message: Some(error.to_string()), turns: 0 };
    for event in [start, end] {
        if emit(&mut io::stdout(), &event).is_err() {
            break;
        }
    }
    1
}

/// As `run`, with a client and an output of the caller's.
pub async fn run_to<W: Write>(options: &Options, client: Result<Client, LlmError>, out: &mut W) -> i32 {
    match attempt(options, client, out).await {
        Ok(Ending::Finished) => 0,
        Ok(Ending::RateLimited | Ending::AuthFailed | Ending::ApiFailed | Ending::OverBudget) => 1,
        // There is no ending for this: whoever reads the stream sees that it broke off.
        Err(error) => {
            let _ = writeln!(io::stderr(), "practicum builtin agent: {error}");
            1
        }
    }
}

async fn attempt<W: Write>(
    options: &Options,
    client: Result<Client, LlmError>,
    out: &mut W,
) -> io::Result<Ending> {
    let mut agent = Agent::prepare(options, out)?;
    agent.begin()?;
    let (ending, message) = match client {
        Ok(client) => agent.converse(&client).await?,
        Err(error) => (ending_of(&error), Some(error.to_string())),
    };
    agent.finish(ending, message)?;
    Ok(ending)
}

fn ending_of(error: &LlmError) -> Ending {
    match error {
        LlmError::RateLimited { .. } => Ending::RateLimited,
        LlmError::Auth(_) => Ending::AuthFailed,
        LlmError::Api { .. } | LlmError::Network(_) | LlmError::Malformed(_) => Ending::ApiFailed,
    }
}

/// One line, flushed: a reader must see what happened even if the next moment kills us.
fn emit<W: Write>(out: &mut W, event: &Event) -> io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}
