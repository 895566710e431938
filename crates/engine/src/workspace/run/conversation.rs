//! Runs an agent through all turns of a trial.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::{Duration, Instant};

use super::decode::decode;
use super::launch_files::{LoginAccess, remove_login_copy, write_launch_files};
use super::memory::{MemoryPermit, TranscriptMemory};
use super::process::{CancelToken, OutputFiles, ProcessRules, supervise_with_client};
use super::process_tree::wait_for_init_exit;
use crate::workspace::limits::TrialLimits;
use crate::workspace::mocks::TrialMocks;
use crate::workspace::observe::{ProcessEnd, RawRun, RawTurn};
use crate::workspace::sandbox::TrialSandbox;
use crate::workspace::secrets::Scrubber;
use crate::workspace::stage::Workspace;
use practicum_agents::agents::{ASK_USER_TOOLS, AgentCli, AgentTurn, Launch, StreamEnd, StreamTranscript};
use practicum_core::model::{Step, UserRecord};

/// The size below which a transcript is decoded on the current thread: moving it would take longer.
const DECODE_INLINE_BYTES: u64 = 256 * 1024;

/// The inputs of one trial's conversation with an agent: all user messages, in one session, under one time limit.
pub struct Conversation<'c> {
    pub agent: &'c AgentCli,
    pub turns: &'c [String],
    pub model: Option<&'c str>,
    pub append_system: Option<&'c str>,
    /// The only tools that the agent may use, separated by commas.
    pub tools: Option<&'c str>,
    pub gateway: Option<&'c str>,
    /// The mocks of the trial, if there are any.
    pub mocks: Option<&'c TrialMocks>,
    pub user_env: &'c BTreeMap<String, String>,
    /// Variables in addition to those that the agent's descriptor sets.
    pub extra_env: &'c [(String, String)],
    pub time_limit: Duration,
    /// What the agent may use; `None` for as much as it wants.
    pub limits: Option<&'c TrialLimits>,
    pub sandbox: &'c TrialSandbox,
    /// A marker on the trial's processes, so that they can be found.
    pub marker: &'c str,
    /// The folder for transcript and standard error.
    /// Removes secrets from the output before it is written.
    pub scrubber: &'c Scrubber,
    pub record_folder: &'c Path,
    pub memory: &'c TranscriptMemory,
}

/// The output of a conversation.
pub struct ConversationResult {
    pub raw: RawRun,
    pub notes: Vec<String>,
    /// The part of the simulated user, if there is one.
    pub user: Option<UserRecord>,
    /// The memory share of `raw`. Drop it together with everything that was made of `raw`.
    pub memory_permit: MemoryPermit,
}

impl ConversationResult {
    /// Makes the result of a conversation that is not needed: the user's prompts and a normal end.
    pub(crate) fn not_needed(turns: &[String]) -> Self {
        let turn = |prompt: &String| RawTurn {
            prompt: prompt.clone(),
            transcript: StreamTranscript {
                end: StreamEnd::Done,
                cost_usd: Some(0.0),
                ..StreamTranscript::default()
            },
            bytes: 0,
            process: ProcessEnd::Exited(0),
        };
        let raw = RawRun { turns: turns.iter().map(turn).collect(), ..RawRun::default() };
        Self { raw, notes: Vec::new(), user: None, memory_permit: MemoryPermit::empty() }
    }
}

/// A user who answers the agent after the messages of the case.
pub trait ConversationUser: Send {
    /// Decides what is said after a message of the agent.
    fn reply<'r>(&'r mut self, message: AgentMessage) -> Pin<Box<dyn Future<Output = UserMove> + Send + 'r>>;
}

/// The last message of the agent in a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentMessage {
    pub text: String,
    /// Whether the message asks something.
    pub asks: bool,
}

impl AgentMessage {
    /// Makes the message of a turn. A question that the agent put with a tool is part of it.
    fn of_turn(transcript: &StreamTranscript) -> Self {
        let mut text = transcript.output.clone();
        for step in &transcript.steps {
            if let Step::Tool(call) = step
                && ASK_USER_TOOLS.contains(&call.name.as_str())
            {
                text.push_str(&format!("\n{}", call.input));
            }
        }
        let asks = text.contains('?') || transcript.end == StreamEnd::AskedUser;
        Self { text, asks }
    }
}

/// What a simulated user does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserMove {
    /// The user says this to the agent.
    Say(String),
    /// The conversation ends.
    End,
}

/// Runs the conversation. After the messages of the case, the simulated user goes on, if there is one. The conversation
/// ends early if a turn does not end properly.
pub async fn run_conversation(
    talk: &Conversation<'_>,
    workspace: &Workspace,
    cancel: &CancelToken,
    mut user: Option<&mut dyn ConversationUser>,
) -> ConversationResult {
    // This counts only the time of the agents, without the time for reading their output.
    let mut spent = Duration::ZERO;
    let mut raw = RawRun::default();
    let mut notes = Vec::new();
    let mut held = MemoryPermit::empty();
    let mut session = uuid::Uuid::new_v4().to_string();
    let output = OutputFiles {
        stdout: talk.record_folder.join("transcript.jsonl"),
        stderr: talk.record_folder.join("stderr.txt"),
        scrubber: talk.scrubber.clone(),
    };
    // The launch that copied the user's login, if one did.
    let mut login: Option<Launch> = None;
    let mcp_servers = talk.mocks.map(TrialMocks::mcp_servers).unwrap_or_default();
    let commands_folder = talk.mocks.and_then(TrialMocks::commands_folder);
    let mut prompts: VecDeque<String> = talk.turns.iter().cloned().collect();
    while let Some(prompt) = prompts.pop_front() {
        let started = Instant::now();
        let turn = AgentTurn {
            prompt: &prompt,
            workspace: &workspace.folder,
            home: &workspace.home,
            tmp: &workspace.tmp,
            model: talk.model,
            session: Some(&session),
            is_later: !raw.turns.is_empty(),
            append_system_prompt: talk.append_system,
            tools: talk.tools,
            gateway: talk.gateway,
            sandboxed: talk.sandbox.is_active(),
            plugins: &workspace.plugins,
            plugin_servers: workspace.plugin_servers.as_deref(),
            mcp_servers: &mcp_servers,
            commands_folder: commands_folder.as_deref(),
        };
        let mut launch = match prepare_launch(talk, &turn, workspace.root()) {
            Ok(launch) => launch,
            Err(why) => {
                let process = ProcessEnd::NotLaunched(why);
                raw.turns.push(RawTurn {
                    prompt,
                    transcript: StreamTranscript::default(),
                    bytes: 0,
                    process,
                });
                break;
            }
        };
        login = login.or_else(|| launch.login_file.is_some().then(|| launch.clone()));
        launch.env.extend(talk.extra_env.iter().cloned());
        // The folder of a trial is empty before its first turn.
        let said_before = if raw.turns.is_empty() { 0 } else { length(&output.stdout) };
        let limit = talk.time_limit.saturating_sub(spent);
        let folder = &workspace.folder;
        let launch = talk.sandbox.wrap(launch, folder);
        let client = talk.agent.decoder.new_client.map(|new_client| new_client(&turn));
        let rules = ProcessRules {
            folder,
            marker: talk.marker,
            time_limit: limit,
            limits: talk.limits,
            has_init_process: talk.sandbox.has_init_process(),
        };
        let supervised = supervise_with_client(&launch, &rules, &output, cancel, client).await;
        if talk.sandbox.has_init_process() {
            wait_for_init_exit(talk.marker).await;
        }
        spent += started.elapsed();
        notes.extend(supervised.notes);
        // The new share includes that of the earlier turns. It is freed first, because nobody may wait for memory
        // while holding some.
        drop(std::mem::replace(&mut held, MemoryPermit::empty()));
        let said = length(&output.stdout);
        held = talk.memory.reserve(said).await;
        let read = || decode(&output.stdout, said_before..said, talk.agent.decoder);
        let mut transcript = if said < DECODE_INLINE_BYTES { read() } else { super::run_blocking(read) };
        transcript.unread_reason = supervised.cut_reason.or(transcript.unread_reason);
        if let Some(named) = &transcript.session {
            session.clone_from(named);
        }
        let goes_on = supervised.end == ProcessEnd::Exited(0)
            && matches!(transcript.end, StreamEnd::Done | StreamEnd::AskedUser);
        let bytes = said.saturating_sub(said_before);
        let message = AgentMessage::of_turn(&transcript);
        raw.turns.push(RawTurn { prompt, transcript, bytes, process: supervised.end });
        if !goes_on {
            break;
        }
        if let Some(user) = user.as_deref_mut().filter(|_| prompts.is_empty()) {
            match user.reply(message).await {
                UserMove::Say(text) => prompts.push_back(text),
                UserMove::End => break,
            }
        }
    }
    if let Some(launch) = login {
        remove_login_copy(&launch, &workspace.home);
    }
    raw.seconds = spent.as_secs_f64();
    ConversationResult { raw, notes, user: None, memory_permit: held }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Decides what to start, and writes the files that the process needs.
fn prepare_launch(talk: &Conversation<'_>, turn: &AgentTurn<'_>, room: &Path) -> Result<Launch, String> {
    let launch = talk.agent.launch(turn, talk.user_env).map_err(|error| error.to_string())?;
    write_launch_files(&launch, LoginAccess::Copy)?;
    let written =
        launch.files.iter().map(|(path, _)| path).chain(launch.login_file.iter().map(|(path, _)| path));
    for path in written {
        talk.sandbox.hand_over(path, room).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(launch)
}
