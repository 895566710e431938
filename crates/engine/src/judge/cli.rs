//! Asking an agent CLI on this machine: the prompt on standard input, an empty folder and home of
//! its own, no tools, and an end to it and all it started.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Sitting;
use super::transport::Unasked;
use crate::observe::ProcessEnd;
use crate::run::{Output, decode, lay_out, supervise};
use practicum_agents::agents::{Inquiry, Oracle, Said, Transcript};
use practicum_agents::llm::{Block, Failed, Gate, LlmError, Patience, Reply, Request, Retry, Role, Stop};
use practicum_core::model::{Digest, Step, ToolCall};

/// How long one answer may take.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// No answer is that long; a CLI that says more is not listened to.
const MOST_SAID: u64 = 32 * 1024 * 1024;

/// How much of what a CLI says about its failure is worth showing.
const LONGEST_MESSAGE: usize = 500;

#[derive(Clone)]
pub struct Cli {
    oracle: Oracle,
    user_env: Arc<BTreeMap<String, String>>,
    gateway: Option<String>,
    patience: Patience,
    time_limit: Duration,
}

impl Cli {
    pub fn new(oracle: Oracle, user_env: BTreeMap<String, String>) -> Self {
        Self {
            oracle,
            user_env: Arc::new(user_env),
            gateway: None,
            patience: Patience::default(),
            time_limit: TIME_LIMIT,
        }
    }

    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.patience.retry = retry;
        self
    }

    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    pub(super) fn with_gate(mut self, gate: Arc<Gate>) -> Self {
        self.patience.gate = gate;
        self
    }

    pub(super) fn at(&self, gateway: String) -> Self {
        Self { gateway: Some(gateway), ..self.clone() }
    }

    /// The program and where it asks. Another version is not told apart: it is a way to the model,
    /// and the model is what answers.
    pub(super) fn identity(&self) -> String {
        let addresses = self.oracle.agent().model_addresses(&self.user_env);
        format!("{} {}", self.oracle.name(), addresses.join(" "))
    }

    pub(super) async fn send(&self, request: &Request, sitting: &Sitting<'_>) -> Result<Reply, Unasked> {
        let prompt = prompt_of(request);
        let mut tries = self.patience.tries();
        loop {
            tokio::select! {
                () = tries.turn() => {}
                () = sitting.cancel.cancelled() => return Err(Unasked::Cancelled),
            }
            match self.try_once(request, &prompt, sitting).await {
                Ok(reply) => return Ok(reply),
                Err(_) if sitting.cancel.is_cancelled() => return Err(Unasked::Cancelled),
                Err(failed) => tries.failed(failed).map_err(Unasked::Failed)?,
            }
        }
    }

    async fn try_once(
        &self,
        request: &Request,
        prompt: &str,
        sitting: &Sitting<'_>,
    ) -> Result<Reply, Failed> {
        let machine = |error: std::io::Error| Failed::for_good(LlmError::Network(error.to_string()));
        let room = tempfile::Builder::new().prefix("practicum-judge-").tempdir().map_err(machine)?;
        let [folder, home, tmp] = ["work", "home", "tmp"].map(|name| room.path().join(name));
        for path in [&folder, &home, &tmp] {
            std::fs::create_dir(path).map_err(machine)?;
        }
        let schema = request.tools.first().map(|tool| tool.input_schema.clone()).unwrap_or_default();
        let inquiry = Inquiry {
            system: request.system.as_deref().unwrap_or_default(),
            prompt,
            schema: &schema,
            model: &request.model,
            folder: &folder,
            home: &home,
            tmp: &tmp,
            gateway: self.gateway.as_deref(),
        };
        let launch = self.oracle.launch(&inquiry, &self.user_env);
        let launch = launch.map_err(|error| Failed::for_good(LlmError::Network(error.to_string())))?;
        lay_out(&launch).map_err(|why| Failed::for_good(LlmError::Network(why)))?;
        let output = Output { stdout: room.path().join("stdout"), stderr: room.path().join("stderr") };
        // Each call has a marker of its own, because ending one must not end the others.
        let call = Digest::of(room.path().to_string_lossy().as_bytes());
        let marker = format!("{}-{}", call.short(), sitting.marker);
        let limit = self.time_limit;
        let supervised = supervise(&launch, &folder, &marker, limit, &output, sitting.cancel).await;
        if std::fs::metadata(&output.stdout).is_ok_and(|metadata| metadata.len() > MOST_SAID) {
            let flood = format!("{} said more than {MOST_SAID} bytes", self.oracle.name());
            return Err(Failed::for_good(LlmError::Malformed(flood)));
        }
        let transcript = decode(&output.stdout, 0..u64::MAX, self.oracle.agent().decoder);
        self.reply(supervised.end, transcript, &output.stderr, request)
    }

    fn reply(
        &self,
        end: ProcessEnd,
        transcript: Transcript,
        stderr: &Path,
        request: &Request,
    ) -> Result<Reply, Failed> {
        let name = self.oracle.name();
        let network = |what: String| LlmError::Network(format!("{name} {what}"));
        match (end, &transcript.said) {
            (ProcessEnd::NotLaunched(why), _) => {
                return Err(Failed::for_good(network(format!("cannot be started: {why}"))));
            }
            (ProcessEnd::TimedOut, _) => {
                let limit = self.time_limit.as_secs();
                return Err(Failed::for_good(network(format!("gave no answer within {limit} s"))));
            }
            (ProcessEnd::Cancelled, _) => {
                return Err(Failed::for_good(network("was stopped".to_owned())));
            }
            (_, Said::RateLimited(_)) => {
                return Err(Failed::for_now(LlmError::RateLimited { retry_after: None }));
            }
            (_, Said::AuthFailed(why)) => return Err(Failed::for_good(LlmError::Auth(shortened(why)))),
            (_, Said::ApiFailed(why) | Said::Interrupted(why)) => {
                return Err(Failed::for_now(network(format!("failed: {}", shortened(why)))));
            }
            (ProcessEnd::Signalled(signal), Said::Nothing) => {
                return Err(Failed::for_now(network(format!("was killed by signal {signal}"))));
            }
            (ProcessEnd::Exited(code), Said::Nothing) => {
                let said = beginning(stderr);
                let why = format!("exited with code {code} before its last word: {}", shortened(said.trim()));
                return Err(Failed::for_good(network(why)));
            }
            (
                ProcessEnd::Exited(_) | ProcessEnd::Signalled(_),
                Said::Done | Said::Asked | Said::OverBudget(_),
            ) => {}
        }
        Ok(Reply {
            id: transcript.session.clone().unwrap_or_default(),
            model: transcript.model.clone().unwrap_or_else(|| request.model.clone()),
            usage: transcript.usage,
            stop: Stop::EndTurn,
            blocks: self.blocks(transcript),
        })
    }

    /// The answer as the CLI took it, else all that was said.
    fn blocks(&self, transcript: Transcript) -> Vec<Block> {
        let tool = self.oracle.answer_tool();
        let accepted = |call: &ToolCall| tool == Some(call.name.as_str()) && call.ok == Some(true);
        let called = transcript.steps.iter().rev().find_map(|step| match step {
            Step::Tool(call) if accepted(call) => Some(call.input.clone()),
            Step::Tool(_) | Step::Text(_) | Step::User(_) => None,
        });
        if let (Some(input), Some(name)) = (called, tool) {
            return vec![Block::ToolUse { id: "answer".to_owned(), name: name.to_owned(), input }];
        }
        let texts = transcript.steps.into_iter().filter_map(|step| match step {
            Step::Text(text) => Some(Block::Text { text }),
            Step::Tool(_) | Step::User(_) => None,
        });
        texts.collect()
    }
}

/// A CLI is asked once, so a conversation becomes one text. What the judge said before is left out:
/// it holds the agent's words, and what was wrong with it is enough.
fn prompt_of(request: &Request) -> String {
    let said = request.messages.iter().filter(|message| message.role == Role::User);
    let texts = said.flat_map(|message| &message.blocks).filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::ToolResult { content, .. } => Some(content.as_str()),
        Block::Thinking { .. } | Block::ToolUse { .. } => None,
    });
    texts.collect::<Vec<&str>>().join("\n\nYou have answered this before. ")
}

/// As much of a file as could be shown.
fn beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    let most = 4 * LONGEST_MESSAGE as u64;
    // What cannot be read says nothing.
    let _ = std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_MESSAGE {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(LONGEST_MESSAGE).collect::<String>())
}
