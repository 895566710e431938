//! Records a real MCP server: passes the calls of an agent on to it, and writes its answers as rules of a mock.
//!
//! Only a run with `--record-mocks` and the user's trust gets here, because the server is a program that the eval file
//! names. It runs outside the sandbox of the agent, with the variables that the eval file names.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleClient, RoleServer, RunningService};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use super::MockState;
use crate::workspace::secrets::Scrubber;
use practicum_core::model::{
    Diagnostics, McpAnswer, McpReply, McpToolMock, MockOutcome, Mocks, ServerRecording,
};
use practicum_core::tree::SourceFile;
use practicum_evals::dialects::{decode_recording, encode_recording};
use practicum_evals::mocks::ToolReply;

/// The variables that every real server gets.
const USUAL_VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// The most bytes of answers that one trial records.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Writes the recordings of a run. All its trials share it.
pub struct MockRecorder {
    user_env: BTreeMap<String, String>,
    /// The calls that this run recorded, each by its file, its tool and its arguments.
    written: Mutex<HashSet<(PathBuf, String, String)>>,
}

impl MockRecorder {
    /// Makes a recorder that starts servers with variables of this environment.
    pub fn new(user_env: BTreeMap<String, String>) -> Self {
        Self { user_env, written: Mutex::default() }
    }

    /// Adds the tools and answers of one trial to a file. An answer of an earlier run to the same call is replaced, one of
    /// this run is kept.
    fn add_to_file(&self, file: &Path, said: &RecordedServer, scrubber: &Scrubber) -> Result<(), String> {
        // Held until the file is written, because the next trial reads it.
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tools = if file.exists() { read_recording(file)? } else { Vec::new() };
        for tool in &said.tools {
            match tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => {
                    known.description.clone_from(&tool.description);
                    known.input_schema.clone_from(&tool.input_schema);
                }
                None => tools.push(tool.clone()),
            }
        }
        let mut new_calls = Vec::new();
        for (name, input, reply) in &said.answers {
            let Some(tool) = tools.iter_mut().find(|known| known.name == *name) else { continue };
            let call = (file.to_owned(), name.clone(), input.to_string());
            if written.contains(&call) {
                continue;
            }
            let input = scrub_value(input, scrubber);
            if !new_calls.contains(&call) {
                tool.answers.retain(|answer| answer.input.as_ref() != Some(&input));
                new_calls.push(call);
            }
            let reply = match reply {
                McpReply::Result(text) => McpReply::Result(scrubber.scrub_text(text)),
                McpReply::Error(text) => McpReply::Error(scrubber.scrub_text(text)),
                McpReply::Model(role) => McpReply::Model(role.clone()),
            };
            let same = tool.answers.iter().rev().find(|answer| answer.input.as_ref() == Some(&input));
            // The last answer is given to all calls that follow, so it is written once.
            if same.is_none_or(|same| same.reply != reply) {
                tool.answers.push(McpAnswer { when: Vec::new(), input: Some(input), reply });
            }
        }
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)
            .and_then(|()| {
                practicum_skills::versions::atomic_files::write_bytes(
                    file,
                    encode_recording(&tools).as_bytes(),
                )
            })
            .map_err(|error| error.to_string())?;
        written.extend(new_calls);
        Ok(())
    }
}

fn scrub_value(value: &Value, scrubber: &Scrubber) -> Value {
    let text = scrubber.scrub_text(&value.to_string());
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn read_recording(file: &Path) -> Result<Vec<McpToolMock>, String> {
    let mut problems = Diagnostics::default();
    let (_, source) = SourceFile::read(file, &mut problems);
    let tools = source.map(|source| decode_recording(&source, &mut problems)).unwrap_or_default();
    match problems.iter().find(|_| problems.has_errors()) {
        Some(problem) => Err(format!("it cannot be read: {}", problem.message)),
        None => Ok(tools),
    }
}

/// The recorder of one trial.
pub struct TrialRecorder {
    run: Arc<MockRecorder>,
    servers: Mutex<BTreeMap<String, RecordedServer>>,
}

/// What one real server said in a trial.
#[derive(Default)]
struct RecordedServer {
    tools: Vec<McpToolMock>,
    /// Each call with its tool, its arguments and its answer, in order.
    answers: Vec<(String, Value, McpReply)>,
    bytes: usize,
    /// Why the server could not be started or asked.
    problem: Option<String>,
}

impl TrialRecorder {
    pub fn new(run: Arc<MockRecorder>) -> Self {
        Self { run, servers: Mutex::default() }
    }

    fn change(&self, server: &str, change: impl FnOnce(&mut RecordedServer)) {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        change(servers.entry(server.to_owned()).or_default());
    }

    /// Writes what the servers said. Gives notes for the user.
    pub fn write(&self, mocks: &Mocks, scrubber: &Scrubber) -> Vec<String> {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut notes = Vec::new();
        for (name, said) in servers.iter() {
            let recording = mocks.server(name).and_then(|server| server.recording.as_ref());
            let Some(ServerRecording { file, .. }) = recording else { continue };
            notes.extend(said.problem.as_ref().map(|why| format!("recording of {name}: {why}")));
            if let Err(why) = self.run.add_to_file(file, said, scrubber) {
                notes.push(format!("recording of {name}: {}: {why}", file.display()));
            }
        }
        notes
    }
}

impl MockState {
    /// Gives the recording of a server that is to be asked itself; `None` if its rules answer.
    pub(super) fn real_server(&self, server: &str) -> Option<ServerRecording> {
        self.recorder.as_ref()?;
        let recording = self.mocks.server(server)?.recording.clone()?;
        (!recording.command.is_empty()).then_some(recording)
    }
}

/// Starts the real server, and passes everything on to it until the agent closes the connection.
pub async fn serve_recorded(
    state: Arc<MockState>,
    server: String,
    recording: ServerRecording,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> io::Result<()> {
    let recorder = state.recorder.as_ref().ok_or_else(|| io::Error::other("nothing is recorded"))?;
    let opened = open_server(&recording, &recorder.run.user_env).await;
    let (real, _process) = opened.inspect_err(|error| {
        let why = format!("{} cannot be started: {error}", recording.command.join(" "));
        recorder.change(&server, |said| said.problem = Some(why));
    })?;
    let recorded = RecordedMcp { state: Arc::clone(&state), server, real };
    let serving = recorded.serve((read, write)).await.map_err(io::Error::other)?;
    serving.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

async fn open_server(
    recording: &ServerRecording,
    user_env: &BTreeMap<String, String>,
) -> io::Result<(RunningService<RoleClient, ()>, Child)> {
    let (program, args) = recording.command.split_first().ok_or_else(|| io::Error::other("no command"))?;
    let names = USUAL_VARIABLES.into_iter().chain(recording.pass_env.iter().map(String::as_str));
    let env = names.filter_map(|name| Some((name, user_env.get(name)?)));
    let mut process = Command::new(program)
        .args(args)
        .env_clear()
        .envs(env)
        .current_dir(&recording.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(output), Some(input)) = (process.stdout.take(), process.stdin.take()) else {
        return Err(io::Error::other("it has no standard input and output"));
    };
    let real = ().serve((output, input)).await.map_err(io::Error::other)?;
    Ok((real, process))
}

struct RecordedMcp {
    state: Arc<MockState>,
    server: String,
    real: RunningService<RoleClient, ()>,
}

impl RecordedMcp {
    fn change(&self, change: impl FnOnce(&mut RecordedServer)) {
        if let Some(recorder) = &self.state.recorder {
            recorder.change(&self.server, change);
        }
    }

    /// Records a call and its answer.
    fn record(&self, tool: &str, input: Value, reply: McpReply) -> Result<(), ErrorData> {
        let (text, is_error) = match &reply {
            McpReply::Result(text) => (text.clone(), false),
            McpReply::Error(text) => (text.clone(), true),
            McpReply::Model(_) => (String::new(), true),
        };
        self.change(|said| {
            said.bytes = said.bytes.saturating_add(text.len());
            match said.bytes <= MOST_BYTES {
                true => said.answers.push((tool.to_owned(), input.clone(), reply)),
                false => {
                    said.problem = Some(format!("it said more than {MOST_BYTES} bytes; the rest is missing"))
                }
            }
        });
        let answered = ToolReply { text, is_error, outcome: MockOutcome::Answered };
        match self.state.record(answered.record(&self.server, tool, input)) {
            true => Ok(()),
            false => Err(ErrorData::internal_error("too many calls", None)),
        }
    }
}

impl ServerHandler for RecordedMcp {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new(self.server.clone(), "1.0.0");
        config
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.real.list_all_tools().await.map_err(|error| {
            self.change(|said| said.problem = Some(format!("its tools cannot be listed: {error}")));
            ErrorData::internal_error(error.to_string(), None)
        })?;
        self.change(|said| said.tools = tools.iter().map(describe_tool).collect());
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = request.name.to_string();
        let input = Value::Object(request.arguments.clone().unwrap_or_default());
        match self.real.call_tool(request).await {
            Ok(result) => {
                let text = text_of(&result);
                let is_error = result.is_error == Some(true);
                self.record(
                    &tool,
                    input,
                    if is_error { McpReply::Error(text) } else { McpReply::Result(text) },
                )?;
                Ok(result.into())
            }
            Err(error) => {
                let text = error.to_string();
                self.record(&tool, input, McpReply::Error(text.clone()))?;
                Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into())
            }
        }
    }
}

/// Gives the texts of an answer. Rules of mocks have only text, so pictures and files become a remark.
fn text_of(result: &CallToolResult) -> String {
    let parts = result.content.iter().map(|block| match block.as_text() {
        Some(text) => text.text.clone(),
        None => "[content that is not text]".to_owned(),
    });
    parts.collect::<Vec<String>>().join("\n")
}

fn describe_tool(tool: &Tool) -> McpToolMock {
    McpToolMock {
        name: tool.name.to_string(),
        description: tool.description.as_ref().map(ToString::to_string),
        input_schema: Some(Value::Object(tool.input_schema.as_ref().clone())),
        expect: Vec::new(),
        answers: Vec::new(),
    }
}
