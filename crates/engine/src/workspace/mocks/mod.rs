//! The mocks of one trial: MCP servers and commands that answer an agent in place of the real ones.
//!
//! In: the mocks of a case and the folder of a trial. Out: what the agent has to start, and the calls that it made.
//! Never: puts an answer where the agent can read it before it calls. The answers stay in this process; what the
//! agent starts only relays its calls, through a socket in the folder of the trial.

mod mcp_server;
mod model;
mod recording;
mod relay;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

pub use model::{ServerCall, ServerModel, ServerReply};
pub use recording::MockRecorder;
pub use relay::{RELAY_SUBCOMMAND, relay_command, relay_server};

use crate::workspace::secrets::Scrubber;
use practicum_agents::agents::McpServerCommand;
use practicum_core::model::{Case, MockCall, MockOutcome, MockedTool, Mocks};
use practicum_evals::mocks::answer_command;
use recording::TrialRecorder;
use relay::{CommandAnswer, RelayRequest};

/// The folder in the root of a trial that has the socket and the commands.
const FOLDER: &str = "tools";

/// The folder below it that is first on the agent's `PATH`.
const COMMANDS_FOLDER: &str = "bin";

/// The name of the socket.
const SOCKET: &str = "s";

/// The most connections at a time. No agent needs more.
const MOST_CONNECTIONS: usize = 128;

/// The longest first line of a connection, and the most bytes that one connection may send.
const LONGEST_REQUEST: u64 = 4 * 1024 * 1024;
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The most calls of one trial that are answered and kept. An agent with more calls is in an endless loop.
const MOST_CALLS: usize = 10_000;

/// The mocks of one trial, ready to be called. Dropping them ends them.
pub struct TrialMocks {
    folder: PathBuf,
    program: PathBuf,
    state: Arc<MockState>,
    server: JoinHandle<()>,
}

/// The mocks and the calls that they got.
pub(crate) struct MockState {
    mocks: Mocks,
    calls: Mutex<Vec<MockCall>>,
    /// The model that plays servers, if one does. It answers one call after the other, because each answer may depend on
    /// those before it.
    model: Option<tokio::sync::Mutex<Box<dyn ServerModel>>>,
    /// What real servers said, if they are recorded.
    recorder: Option<TrialRecorder>,
}

/// What the mocks of a trial need beside the mocks themselves.
#[derive(Default)]
pub struct MockHelpers {
    /// The model that plays servers.
    pub model: Option<Box<dyn ServerModel>>,
    /// Where answers of real servers are recorded, if they are.
    pub recorder: Option<Arc<MockRecorder>>,
}

impl MockState {
    /// Counts the calls of a tool with the same arguments so far.
    fn earlier_calls(&self, server: &str, tool: &str, input: &serde_json::Value) -> usize {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |call: &&MockCall| match &call.of {
            MockedTool::Mcp { server: called, tool: called_tool, input: given } => {
                called == server && called_tool == tool && given == input
            }
            MockedTool::Command { .. } => false,
        };
        calls.iter().filter(is_same).count()
    }

    /// Records a call, unless there are too many. Says whether it was recorded.
    fn record(&self, call: MockCall) -> bool {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = calls.len() < MOST_CALLS;
        if has_room {
            calls.push(call);
        }
        has_room
    }
}

impl TrialMocks {
    /// Starts the mocks of a case; `None` if it has none. The error says why they cannot be started.
    pub(crate) fn for_case(case: &Case, root: &Path, helpers: MockHelpers) -> Result<Option<Self>, String> {
        if case.mocks.is_empty() {
            return Ok(None);
        }
        let started = Self::start(&case.mocks, root, helpers);
        started.map(Some).map_err(|error| format!("the mocks cannot be started: {error}"))
    }

    /// Makes the socket and the commands in the root folder of a trial, and answers calls from then on. The caller
    /// must be inside a tokio runtime.
    fn start(mocks: &Mocks, root: &Path, helpers: MockHelpers) -> io::Result<Self> {
        let folder = root.join(FOLDER);
        std::fs::create_dir(&folder)?;
        let program = std::env::current_exe()?;
        let listener = UnixListener::bind(folder.join(SOCKET))?;
        if !mocks.commands.is_empty() {
            let commands = folder.join(COMMANDS_FOLDER);
            std::fs::create_dir(&commands)?;
            for command in &mocks.commands {
                let path = commands.join(&command.name);
                std::fs::write(&path, relay::command_script(&program, &folder.join(SOCKET), &command.name))?;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
            }
        }
        let model = helpers.model.map(tokio::sync::Mutex::new);
        let recorder = helpers.recorder.map(TrialRecorder::new);
        let state = Arc::new(MockState { mocks: mocks.clone(), calls: Mutex::default(), model, recorder });
        let server = tokio::spawn(serve(listener, Arc::clone(&state)));
        Ok(Self { folder, program, state, server })
    }

    /// Gives the MCP servers that the agent has to start.
    pub(crate) fn mcp_servers(&self) -> Vec<McpServerCommand> {
        let socket = self.folder.join(SOCKET);
        let servers = self.state.mocks.servers.iter().map(|server| McpServerCommand {
            name: server.name.clone(),
            program: self.program.clone(),
            args: relay::server_args(&socket, &server.name),
        });
        servers.collect()
    }

    /// Gives the folder with the mocked commands; `None` if there are none.
    pub(crate) fn commands_folder(&self) -> Option<PathBuf> {
        (!self.state.mocks.commands.is_empty()).then(|| self.folder.join(COMMANDS_FOLDER))
    }

    /// Gives the calls so far, in order and without secrets.
    pub(crate) fn calls(&self, scrubber: &Scrubber) -> Vec<MockCall> {
        let mut calls = self.state.calls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        calls.iter_mut().for_each(|call| scrub_call(call, scrubber));
        calls
    }
}

impl TrialMocks {
    /// Writes what real servers said to the files of their recordings. Gives notes for the user.
    pub(crate) fn write_recordings(&self, scrubber: &Scrubber) -> Vec<String> {
        self.state.recorder.iter().flat_map(|recorder| recorder.write(&self.state.mocks, scrubber)).collect()
    }
}

impl Drop for TrialMocks {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Gives the reason why a model that plays a server did not answer, of the first call for which that is so.
pub(crate) fn first_model_failure(calls: &[MockCall]) -> Option<&str> {
    calls.iter().find_map(|call| match &call.outcome {
        MockOutcome::ModelFailed(why) => Some(why.as_str()),
        MockOutcome::Answered | MockOutcome::Unmocked | MockOutcome::Unexpected(_) => None,
    })
}

/// Describes the calls that no rule answers, for the reader of the results.
pub(crate) fn unmocked_notes(calls: &[MockCall]) -> Vec<String> {
    const MOST_SHOWN: usize = 5;
    let unmocked: Vec<&MockCall> =
        calls.iter().filter(|call| call.outcome == MockOutcome::Unmocked).collect();
    let shown = unmocked.iter().take(MOST_SHOWN).map(|call| format!("unmocked call: {}", call.describe()));
    let more = unmocked.len().saturating_sub(MOST_SHOWN);
    shown.chain((more > 0).then(|| format!("{more} more unmocked calls"))).collect()
}

async fn serve(listener: UnixListener, state: Arc<MockState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                // An error of a connection is noticed by the process at its other end.
                Ok((stream, _)) => {
                    let state = Arc::clone(&state);
                    connections.spawn(async move { drop(serve_connection(stream, state).await) });
                }
                // Most likely no file descriptor is free; some will be soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            _ = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

async fn serve_connection(stream: UnixStream, state: Arc<MockState>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read.take(MOST_BYTES));
    let mut line = String::new();
    (&mut read).take(LONGEST_REQUEST).read_line(&mut line).await?;
    let request: RelayRequest = serde_json::from_str(&line)?;
    match request {
        RelayRequest::Command { command, args } => {
            let answer = command_answer(&state, command, args)?;
            write.write_all(&serde_json::to_vec(&answer)?).await?;
            write.shutdown().await
        }
        RelayRequest::Server { server } => match state.real_server(&server) {
            Some(recording) => recording::serve_recorded(state, server, recording, read, write).await,
            None => mcp_server::serve_mcp(state, server, read, write).await,
        },
    }
}

fn command_answer(state: &MockState, command: String, args: Vec<String>) -> io::Result<CommandAnswer> {
    let mock = state.mocks.command(&command);
    let reply = answer_command(mock.ok_or_else(|| io::Error::other("no such command"))?, &args);
    if !state.record(reply.record(&command, args)) {
        return Err(io::Error::other("too many calls"));
    }
    let files = reply.files.into_iter().map(|file| (file.path, file.content)).collect();
    Ok(CommandAnswer { stdout: reply.stdout, stderr: reply.stderr, exit_code: reply.exit_code, files })
}

/// Gives the first call that no rule answers, for the reason why a trial is not scored.
pub(crate) fn first_unmocked(calls: &[MockCall]) -> Option<String> {
    const LONGEST: usize = 200;
    let call = calls.iter().find(|call| call.outcome == MockOutcome::Unmocked)?;
    let text = call.describe();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Some(format!("{}…", &text[..end])),
        None => Some(text),
    }
}

/// Removes secrets from a call.
fn scrub_call(call: &mut MockCall, scrubber: &Scrubber) {
    call.answer = scrubber.scrub_text(&call.answer);
    match &mut call.of {
        MockedTool::Command { args, .. } => {
            args.iter_mut().for_each(|arg| *arg = scrubber.scrub_text(arg));
        }
        MockedTool::Mcp { input, .. } => {
            let text = scrubber.scrub_text(&input.to_string());
            *input = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
        }
    }
}
