//! The command `practicum mcp`: a server of the Model Context Protocol, so that an agent can check and run evals.
//!
//! Each tool is a command of this program, run as a process of its own. A tool can do no more than its command: what
//! needs trust is refused, and a run has a budget.

mod command_process;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock,
    CreateTaskResult, GetTaskParams, GetTaskResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ServerCapabilities, ServerConfig, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskExit, TaskManager, TaskOptions};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use tokio::sync::mpsc;

use self::command_process::{CommandOutput, CommandProcess, TrialProgress};
use self::tools::{McpTool, TOOLS};
use super::{interrupts, report_error, runtime};
use crate::model::Outcome;

const INSTRUCTIONS: &str = "\
Practicum tests agent skills (SKILL.md folders) with evals. Write evals beside the skill, in evals/NAME.practicum.yaml; \
`init` writes the first ones. Then: `check` (are the files right?), `estimate` (what would run, at what cost), `run` (with \
a budget in dollars), `show` (why did a case fail?). Results that were not scored are neither a pass nor a fail. What \
needs trust must be trusted by a person, with `practicum trust` in a terminal.";

#[derive(clap::Args)]
#[command(after_help = "\
Speaks the Model Context Protocol on standard input and output. An agent gets the tools check, init, list, estimate, \
run, show, compare, propose and lint. A run needs a budget, and nothing is trusted: what a project wants \
to do to your machine, you trust with practicum trust.

Examples:
  claude mcp add practicum -- practicum mcp
  codex mcp add practicum -- practicum mcp")]
pub struct McpArgs {
    /// The folder in which the tools run their commands
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
}

pub fn main(args: &McpArgs) -> Outcome {
    serve(&args.project).map_or_else(|error| report_error(&error), |()| Outcome::Passed)
}

fn serve(project: &Path) -> anyhow::Result<()> {
    let project =
        std::fs::canonicalize(project).with_context(|| format!("cannot read {}", project.display()))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    runtime().context("cannot start")?.block_on(async {
        let server =
            McpServer { commands: Arc::new(Commands { program, project }), tasks: TaskManager::new() };
        let tasks = server.tasks.clone();
        let serving = server.serve(rmcp::transport::stdio()).await.context("cannot begin")?;
        tokio::select! {
            ended = serving.waiting() => { ended.context("cannot serve")?; }
            _ = interrupts::wait_for_stop_request() => {}
        }
        // Dropping the processes interrupts the commands.
        tasks.shutdown();
        Ok(())
    })
}

/// How the commands of tools are started.
struct Commands {
    program: PathBuf,
    project: PathBuf,
}

/// The server: a table of tools, and the runs that clients wait for.
struct McpServer {
    commands: Arc<Commands>,
    tasks: TaskManager,
}

impl Commands {
    /// Runs a command to its end and gives its output as the answer of a tool.
    async fn run(
        &self,
        arguments: &[String],
        tell: impl Fn(TrialProgress),
    ) -> Result<CallToolResult, ErrorData> {
        let process = CommandProcess::start(&self.program, &self.project, arguments);
        let process = process.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let end = process.wait(tell).await;
        end.map(tool_answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

/// Makes the answer of a tool. A failed gate is an answer; only a command that could not do its work is an error.
fn tool_answer(end: CommandOutput) -> CallToolResult {
    let text = vec![ContentBlock::text(end.text())];
    if end.is_bad_usage() { CallToolResult::error(text) } else { CallToolResult::success(text) }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        let mut config = ServerConfig::new(capabilities).with_instructions(INSTRUCTIONS);
        config.server_info = Implementation::new("practicum", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(McpTool::describe).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let arguments = match (tool.arguments)(request.arguments.unwrap_or_default()) {
            Ok(arguments) => arguments,
            Err(problem) => return Ok(CallToolResult::error(vec![ContentBlock::text(problem)]).into()),
        };
        let waits_for_tasks = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        if tool.is_long && waits_for_tasks {
            return Ok(CallToolResponse::Task(CreateTaskResult::new(self.start_task(arguments))));
        }
        let (sender, mut finished) = mpsc::unbounded_channel::<TrialProgress>();
        let answer = async {
            let answer = self.commands.run(&arguments, |progress| drop(sender.send(progress))).await;
            drop(sender);
            answer
        };
        let token = context.meta.get_progress_token();
        let tell = async {
            while let Some(progress) = finished.recv().await {
                let Some(token) = token.clone() else { continue };
                let told = ProgressNotificationParam::new(token, progress.done as f64)
                    .with_total(progress.all as f64)
                    .with_message(progress.line);
                // A client that is gone needs no progress.
                let _ = context.peer.notify_progress(told).await;
            }
        };
        tokio::select! {
            (answer, ()) = async { tokio::join!(answer, tell) } => answer.map(Into::into),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}

impl McpServer {
    /// Starts a command that the client asks about from time to time.
    fn start_task(&self, arguments: Vec<String>) -> rmcp::model::Task {
        let commands = Arc::clone(&self.commands);
        // A run may take hours, and its result is kept as long as the server runs.
        let options = TaskOptions::new().with_ttl_ms(None);
        self.tasks.spawn(options, move |task| {
            Box::pin(async move {
                let tell = |progress: TrialProgress| task.set_status_message(progress.line);
                tokio::select! {
                    answer = commands.run(&arguments, tell) => answer.map_err(TaskExit::Error),
                    () = task.cancelled() => Err(TaskExit::Cancelled),
                }
            })
        })
    }
}
