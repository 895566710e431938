//! The MCP server, asked by a client of the official SDK.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ClientConfig, ContentBlock, GetTaskParams, Implementation, ProgressNotificationParam, TaskPayload,
};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::common::{Project, wait_until};

const SKILL: &str =
    "---\nname: greeter\ndescription: Greets people. Use when the user wants a greeting.\n---\n\nSay ahoy.\n";

const EVAL: &str = "\
practicum: 1
skill: ..
workspace: empty
run: { agents: [builtin], script: script.yaml }
cases:
  - { id: greets, prompt: Greet Alice., checks: [{ contains: Ahoy }] }
  - { id: greets-badly, prompt: Greet Bob., checks: [{ contains: Ahoy }] }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { when: Alice, steps: [{ text: 'Ahoy, Alice!' }] }
  - { when: Bob, steps: [{ text: Hello. }] }
";

/// A client that collects progress and may be able to wait for tasks.
struct Client {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
    has_tasks: bool,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder();
        let capabilities =
            if self.has_tasks { capabilities.enable_tasks().build() } else { capabilities.build() };
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // The test that reads it may have ended.
        let _ = self.progress.send(params);
    }
}

type Connection = (RunningService<RoleClient, Client>, mpsc::UnboundedReceiver<ProgressNotificationParam>);

async fn connect(project: &Project, has_tasks: bool) -> Connection {
    let (progress, told) = mpsc::unbounded_channel();
    let command = tokio::process::Command::from(project.practicum(&["mcp"]));
    let process = TokioChildProcess::new(command).expect("the server starts");
    (Client { progress, has_tasks }.serve(process).await.expect("a handshake"), told)
}

fn request(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().cloned().expect("an object"))
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    texts.map(|text| text.text.as_str()).collect()
}

async fn call(
    server: &RunningService<RoleClient, Client>,
    tool: &'static str,
    arguments: Value,
) -> (bool, String) {
    let result = server.call_tool(request(tool, arguments)).await.expect("an answer");
    (result.is_error == Some(true), text(&result))
}

fn project() -> Project {
    Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("greeter/evals/greeter.practicum.yaml", EVAL),
        ("greeter/evals/script.yaml", SCRIPT),
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_checks_runs_and_reads_results() {
    let project = project();
    let (server, mut told) = connect(&project, false).await;
    let names: Vec<String> = server
        .list_all_tools()
        .await
        .expect("tools")
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect();
    assert_eq!(names, ["check", "init", "list", "estimate", "run", "show", "compare", "propose", "lint"]);

    let (failed, said) = call(&server, "check", json!({"paths": ["greeter"]})).await;
    assert!(!failed && said.contains("2 cases"), "{said}");
    let (failed, said) = call(&server, "list", json!({"paths": ["greeter"]})).await;
    assert!(!failed && said.contains("greets-badly"), "{said}");
    let (failed, said) = call(&server, "estimate", json!({"paths": ["greeter"], "repeat": 2})).await;
    assert!(!failed && said.contains("4 trials"), "{said}");
    assert!(!project.path().join(".practicum/runs").exists(), "an estimate runs nothing");
    let (failed, said) = call(&server, "lint", json!({})).await;
    assert!(!failed, "{said}");

    // Without a budget nothing runs.
    let (failed, said) = call(&server, "run", json!({"paths": ["greeter"]})).await;
    assert!(failed && said.contains("max_cost_usd"), "{said}");
    // A failed gate is an answer, not an error of the tool.
    let (failed, said) = call(&server, "run", json!({"paths": ["greeter"], "max_cost_usd": 0.1})).await;
    assert!(!failed && said.contains("1 of 2 trials passed") && said.contains("exit code 1"), "{said}");
    assert!(told.try_recv().is_ok(), "progress is told");

    let (failed, said) = call(&server, "show", json!({"trial": "greets-badly"})).await;
    assert!(!failed && said.contains("failed"), "{said}");
    let (failed, said) = call(&server, "check", json!({"paths": ["nothing-here"]})).await;
    assert!(failed && said.contains("nothing-here"), "{said}");
    let (failed, said) = call(&server, "run", json!({"max_cost_usd": 1, "trust": true})).await;
    assert!(failed && said.contains("trust"), "an agent cannot give trust: {said}");

    let before = project.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    call(&server, "run", json!({"paths": ["greeter"], "max_cost_usd": 0.1, "cases": ["greets"]})).await;
    let (failed, said) = call(&server, "compare", json!({"before": before})).await;
    assert!(!failed, "{said}");
    server.cancel().await.expect("the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_evals_are_written_and_cases_are_proposed() {
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        (
            "proposer.yaml",
            "practicum_script: 1\nscenarios:\n  - { to: judge, steps: [{ text: 'no cases today' }] }\n",
        ),
    ]);
    let (server, _told) = connect(&project, false).await;
    let (failed, said) = call(&server, "init", json!({"skill": "greeter"})).await;
    assert!(!failed, "{said}");
    let evals = std::fs::read_dir(project.path().join("greeter/evals")).expect("evals").count();
    assert!(evals > 0);
    // A model that proposes nothing is an error that the agent can read.
    let (_, said) = call(&server, "propose", json!({"skill": "greeter", "script": "proposer.yaml"})).await;
    assert!(said.contains("exit code"), "{said}");
    server.cancel().await.expect("the end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_run_is_a_task_for_clients_that_can_wait() {
    let project = project();
    let (server, _told) = connect(&project, true).await;
    let asked = request("run", json!({"paths": ["greeter"], "max_cost_usd": 0.1}));
    let CallToolResponse::Task(created) = server.call_tool_once(asked).await.expect("an answer") else {
        panic!("a task was expected");
    };
    for _ in 0..600 {
        let task =
            server.get_task(GetTaskParams::new(created.task.task_id.clone())).await.expect("a task").task;
        match task.payload {
            TaskPayload::Completed { result } => {
                assert!(json!(result).to_string().contains("1 of 2 trials passed"), "{result:?}");
                return;
            }
            TaskPayload::Working => tokio::time::sleep(Duration::from_millis(100)).await,
            other => panic!("{other:?}"),
        }
    }
    panic!("the run did not end");
}

/// A run that never ends by itself.
fn endless_project() -> Project {
    let project = project();
    project.write(
        "greeter/evals/script.yaml",
        "practicum_script: 1\nscenarios:\n  - steps: [{ text: Ahoy., delay: 300s }]\n",
    );
    project
}

/// The server ends the commands that it started when its client is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_leaves_nothing_running() {
    let project = endless_project();
    let (server, _told) = connect(&project, true).await;
    let asked = request("run", json!({"paths": ["greeter"], "max_cost_usd": 0.1}));
    server.call_tool_once(asked).await.expect("a task");
    wait_until(|| !project.processes().is_empty());
    server.cancel().await.expect("the end");
    wait_until(|| project.processes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_ends_its_agents_and_the_server_goes_on() {
    let project = endless_project();
    let (server, _told) = connect(&project, true).await;
    let asked = request("run", json!({"paths": ["greeter"], "max_cost_usd": 0.1}));
    let CallToolResponse::Task(created) = server.call_tool_once(asked).await.expect("an answer") else {
        panic!("a task was expected");
    };
    wait_until(|| !project.processes().is_empty());
    server.cancel_task(CancelTaskParams::new(created.task.task_id)).await.expect("cancelled");
    wait_until(|| project.processes().is_empty());
    let (failed, said) = call(&server, "list", json!({"paths": ["greeter"]})).await;
    assert!(!failed && said.contains("greets-badly"), "{said}");
    server.cancel().await.expect("the end");
}
