//! A judge that is an agent CLI on this machine. The CLI reads the prompt from standard input, in an empty folder
//! with its own home and without tools. Afterwards it is ended together with all processes it started.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::JudgeContext;
use super::connection::JudgeCallError;
use crate::workspace::limits::{ResourceLimits, TrialLimits};
use crate::workspace::observe::ProcessEnd;
use crate::workspace::run::{LoginAccess, OutputFiles, ProcessRules, decode, supervise, write_launch_files};
use crate::workspace::secrets::Scrubber;
use practicum_agents::agents::{ModelCli, ModelCliRequest, StreamEnd, StreamTranscript};
use practicum_agents::llm::{
    ApiRetries, ApiRetryPolicy, ContentBlock, FailedAttempt, LlmError, ModelReply, ModelRequest,
    RateLimitGate, Role, StopReason,
};
use practicum_core::model::{Digest, Step, ToolCall};
use practicum_core::tree::open_regular;

/// The longest time that one answer may take.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// The most output, in bytes, that is accepted from a CLI. No honest answer is that long.
const MAX_OUTPUT_BYTES: u64 = 32 * 1024 * 1024;

/// The longest part, in characters, of a CLI's error message that is shown.
const LONGEST_MESSAGE: usize = 500;

/// The reason why an agent CLI cannot judge pictures.
pub const NO_PICTURES: &str = "an agent CLI cannot be shown pictures; --transport api asks a judge that can";

/// An agent CLI that answers as a judge.
#[derive(Clone)]
pub struct CliJudge {
    oracle: ModelCli,
    user_env: Arc<BTreeMap<String, String>>,
    gateway: Option<String>,
    patience: ApiRetries,
    time_limit: Duration,
    /// What the processes of one call may use.
    limits: ResourceLimits,
}

impl CliJudge {
    pub fn new(oracle: ModelCli, user_env: BTreeMap<String, String>) -> Self {
        Self {
            oracle,
            user_env: Arc::new(user_env),
            gateway: None,
            patience: ApiRetries::default(),
            time_limit: TIME_LIMIT,
            limits: ResourceLimits::default(),
        }
    }

    #[must_use]
    pub fn with_retry(mut self, retry: ApiRetryPolicy) -> Self {
        self.patience.policy = retry;
        self
    }

    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    #[must_use]
    pub fn with_limits(mut self, limits: ResourceLimits) -> Self {
        self.limits = limits;
        self
    }

    pub(super) fn with_gate(mut self, gate: Arc<RateLimitGate>) -> Self {
        self.patience.gate = gate;
        self
    }

    pub(super) fn at_gateway(&self, gateway: String) -> Self {
        Self { gateway: Some(gateway), ..self.clone() }
    }

    /// Identifies the program and the addresses that it asks. The version of the CLI is not part of it, because
    /// the model gives the answer and the CLI only passes it on.
    pub(super) fn identity(&self) -> String {
        let addresses = self.oracle.agent().model_addresses(&self.user_env);
        format!("{} {}", self.oracle.name(), addresses.join(" "))
    }

    pub(super) async fn send(
        &self,
        request: &ModelRequest,
        sitting: &JudgeContext<'_>,
    ) -> Result<ModelReply, JudgeCallError> {
        // A judge that sees no picture would decide about nothing.
        let is_picture = |block: &ContentBlock| matches!(block, ContentBlock::Image { .. });
        if request.messages.iter().flat_map(|message| &message.blocks).any(is_picture) {
            return Err(JudgeCallError::Failed(LlmError::Malformed(NO_PICTURES.to_owned())));
        }
        let prompt = prompt_text(request);
        let mut tries = self.patience.start_attempts();
        loop {
            tokio::select! {
                () = tries.wait_for_next() => {}
                () = sitting.cancel.wait_until_cancelled() => return Err(JudgeCallError::Cancelled),
            }
            match self.try_once(request, &prompt, sitting).await {
                Ok(reply) => return Ok(reply),
                Err(_) if sitting.cancel.is_cancelled() => return Err(JudgeCallError::Cancelled),
                Err(failed) => tries.record_failure(failed).map_err(JudgeCallError::Failed)?,
            }
        }
    }

    async fn try_once(
        &self,
        request: &ModelRequest,
        prompt: &str,
        sitting: &JudgeContext<'_>,
    ) -> Result<ModelReply, FailedAttempt> {
        let machine = |error: std::io::Error| FailedAttempt::permanent(LlmError::Network(error.to_string()));
        let room = tempfile::Builder::new().prefix("practicum-judge-").tempdir().map_err(machine)?;
        let [folder, home, tmp] = ["work", "home", "tmp"].map(|name| room.path().join(name));
        for path in [&folder, &home, &tmp] {
            std::fs::create_dir(path).map_err(machine)?;
        }
        let schema = request.tools.first().map(|tool| tool.input_schema.clone()).unwrap_or_default();
        let inquiry = ModelCliRequest {
            system_prompt: request.system.as_deref().unwrap_or_default(),
            prompt,
            schema: &schema,
            model: &request.model,
            folder: &folder,
            home: &home,
            tmp: &tmp,
            gateway: self.gateway.as_deref(),
        };
        let launch = self.oracle.launch(&inquiry, &self.user_env);
        let launch =
            launch.map_err(|error| FailedAttempt::permanent(LlmError::Network(error.to_string())))?;
        write_launch_files(&launch, LoginAccess::Link)
            .map_err(|why| FailedAttempt::permanent(LlmError::Network(why)))?;
        let output = OutputFiles {
            stdout: room.path().join("stdout"),
            stderr: room.path().join("stderr"),
            scrubber: Scrubber::default(),
        };
        // Each call has its own marker, because ending the processes of one call must not end those of another.
        let call = Digest::of_bytes(room.path().to_string_lossy().as_bytes());
        let marker = format!("{}-{}", call.short(), sitting.marker);
        let rules = ProcessRules {
            folder: &folder,
            marker: &marker,
            time_limit: self.time_limit,
            limits: Some(&TrialLimits::new(self.limits, room.path(), false)),
            has_init_process: false,
        };
        let supervised = supervise(&launch, &rules, &output, sitting.cancel).await;
        if std::fs::metadata(&output.stdout).is_ok_and(|metadata| metadata.len() > MAX_OUTPUT_BYTES) {
            let flood = format!("{} said more than {MAX_OUTPUT_BYTES} bytes", self.oracle.name());
            return Err(FailedAttempt::permanent(LlmError::Malformed(flood)));
        }
        let transcript = decode(&output.stdout, 0..u64::MAX, self.oracle.agent().decoder);
        self.read_reply(supervised.end, transcript, &output.stderr, request)
    }

    fn read_reply(
        &self,
        end: ProcessEnd,
        transcript: StreamTranscript,
        stderr: &Path,
        request: &ModelRequest,
    ) -> Result<ModelReply, FailedAttempt> {
        let name = self.oracle.name();
        let network = |what: String| LlmError::Network(format!("{name} {what}"));
        match (end, &transcript.end) {
            (ProcessEnd::NotLaunched(why), _) => {
                return Err(FailedAttempt::permanent(network(format!("cannot be started: {why}"))));
            }
            (ProcessEnd::TimedOut, _) => {
                let limit = self.time_limit.as_secs();
                return Err(FailedAttempt::permanent(network(format!("gave no answer within {limit} s"))));
            }
            (ProcessEnd::OverLimit(why), _) => return Err(FailedAttempt::permanent(network(why))),
            (ProcessEnd::Cancelled, _) => {
                return Err(FailedAttempt::permanent(network("was stopped".to_owned())));
            }
            (_, StreamEnd::RateLimited(_)) => {
                return Err(FailedAttempt::temporary(LlmError::RateLimited { retry_after: None }));
            }
            (_, StreamEnd::AuthFailed(why)) => {
                return Err(FailedAttempt::permanent(LlmError::Auth(shortened(why))));
            }
            (_, StreamEnd::ApiFailed(why) | StreamEnd::Interrupted(why)) => {
                return Err(FailedAttempt::temporary(network(format!("failed: {}", shortened(why)))));
            }
            (ProcessEnd::Signalled(signal), StreamEnd::BrokenOff) => {
                return Err(FailedAttempt::temporary(network(format!("was killed by signal {signal}"))));
            }
            (ProcessEnd::Exited(code), StreamEnd::BrokenOff) => {
                let said = read_beginning(stderr);
                let why = format!("exited with code {code} before its last word: {}", shortened(said.trim()));
                return Err(FailedAttempt::permanent(network(why)));
            }
            (
                ProcessEnd::Exited(_) | ProcessEnd::Signalled(_),
                StreamEnd::Done | StreamEnd::AskedUser | StreamEnd::OverBudget(_),
            ) => {}
        }
        Ok(ModelReply {
            id: transcript.session.clone().unwrap_or_default(),
            model: transcript.model.clone().unwrap_or_else(|| request.model.clone()),
            usage: transcript.usage,
            stop: StopReason::EndTurn,
            blocks: self.answer_blocks(transcript),
        })
    }

    /// Gives the answer that the CLI accepted through its answer tool, or else all text that the model wrote.
    fn answer_blocks(&self, transcript: StreamTranscript) -> Vec<ContentBlock> {
        let tool = self.oracle.answer_tool();
        let accepted = |call: &ToolCall| tool == Some(call.name.as_str()) && call.ok == Some(true);
        let called = transcript.steps.iter().rev().find_map(|step| match step {
            Step::Tool(call) if accepted(call) => Some(call.input.clone()),
            Step::Tool(_) | Step::Text(_) | Step::User(_) => None,
        });
        if let (Some(input), Some(name)) = (called, tool) {
            return vec![ContentBlock::ToolUse { id: "answer".to_owned(), name: name.to_owned(), input }];
        }
        let texts = transcript.steps.into_iter().filter_map(|step| match step {
            Step::Text(text) => Some(ContentBlock::Text { text }),
            Step::Tool(_) | Step::User(_) => None,
        });
        texts.collect()
    }
}

/// Joins a conversation into one prompt, because a CLI is asked only once. The judge's earlier answers are left
/// out: they repeat the agent's words, and the description of what was wrong with them is enough.
fn prompt_text(request: &ModelRequest) -> String {
    let said = request.messages.iter().filter(|message| message.role == Role::User);
    let texts = said.flat_map(|message| &message.blocks).filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text.as_str()),
        ContentBlock::ToolResult { content, .. } => Some(content.as_str()),
        ContentBlock::Image { .. } | ContentBlock::Thinking { .. } | ContentBlock::ToolUse { .. } => None,
    });
    texts.collect::<Vec<&str>>().join("\n\nYou have answered this before. ")
}

/// Reads the beginning of a file, as much as an error message can show.
fn read_beginning(path: &Path) -> String {
    let mut bytes = Vec::new();
    let most = 4 * LONGEST_MESSAGE as u64;
    // Read errors are ignored: a file that cannot be read adds nothing to the message.
    let _ = open_regular(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= LONGEST_MESSAGE {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(LONGEST_MESSAGE).collect::<String>())
}
