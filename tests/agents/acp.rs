//! Agents that are driven with the Agent Client Protocol: the client's side of the conversation, and goose live.

use std::path::Path;

use practicum::agents::{AgentTurn, ClientAnswer, find_decoder};
use serde_json::{Value, json};

use crate::common::moves::SKILL;
use crate::common::{Project, Ran, goose, path_with};

/// Lets the client read these messages of an agent, and gives the last answer.
fn answer(turn: &AgentTurn<'_>, messages: &[Value]) -> ClientAnswer {
    let new_client = find_decoder("acp").expect("a decoder").new_client.expect("a client");
    let mut client = new_client(turn);
    let first: Value = serde_json::from_str(&client.first_text()).expect("a message");
    assert_eq!((&first["id"], &first["method"]), (&json!(1), &json!("initialize")));
    assert_eq!(first["params"]["clientCapabilities"]["fs"]["writeTextFile"], false);
    let mut last = ClientAnswer::default();
    for message in messages {
        last = client.answer_line(&message.to_string());
    }
    last
}

#[test]
fn the_client_says_what_the_protocol_wants() {
    let turn = AgentTurn {
        mcp_servers: &[],
        commands_folder: None,
        prompt: "Greet \"Alice\".",
        workspace: Path::new("/w"),
        home: Path::new("/h"),
        tmp: Path::new("/t"),
        model: None,
        session: Some("own"),
        is_later: false,
        append_system_prompt: None,
        tools: None,
        gateway: None,
        sandboxed: false,
        plugins: &[],
        plugin_servers: None,
    };
    let later = AgentTurn { is_later: true, session: Some("s1"), ..turn.clone() };
    let ready = |loads: bool| json!({"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": loads}}});
    let opened = json!({"id": 2, "result": {"sessionId": "s1"}});
    let asked = |kinds: &[&str]| {
        let options: Vec<Value> =
            kinds.iter().map(|kind| json!({"optionId": format!("id of {kind}"), "kind": kind})).collect();
        json!({"id": "x", "method": "session/request_permission", "params": {"options": options}})
    };
    let request = |method: &str, params: Value, id: u64| {
        Some(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let granted = |outcome: Value| Some(json!({"jsonrpc": "2.0", "id": "x", "result": {"outcome": outcome}}));
    let failed = Some(Err(()));
    let done = Some(Ok(()));
    let prompt = json!({"sessionId": "s1", "prompt": [{"type": "text", "text": "Greet \"Alice\"."}]});
    let folder = json!({"cwd": "/w", "mcpServers": []});
    let again = json!({"cwd": "/w", "mcpServers": [], "sessionId": "s1"});
    let selected = |kind: &str| json!({"outcome": "selected", "optionId": format!("id of {kind}")});
    let no_method =
        json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "no method craft/x"}});
    for (name, turn, messages, written, end) in [
        ("a new session", &turn, vec![ready(true)], request("session/new", folder, 2), None),
        (
            "the prompt",
            &turn,
            vec![ready(true), opened.clone()],
            request("session/prompt", prompt.clone(), 3),
            None,
        ),
        ("an earlier session", &later, vec![ready(true)], request("session/load", again, 2), None),
        // The answer to that names no session.
        (
            "its prompt",
            &later,
            vec![ready(true), json!({"id": 2, "result": {}})],
            request("session/prompt", prompt, 3),
            None,
        ),
        ("an agent that cannot load one", &later, vec![ready(false)], None, failed),
        ("another version", &turn, vec![json!({"id": 1, "result": {"protocolVersion": 2}})], None, failed),
        ("no session", &turn, vec![ready(true), json!({"id": 2, "error": {"code": -32000}})], None, done),
        ("an answer", &turn, vec![json!({"id": 3, "result": {"stopReason": "end_turn"}})], None, done),
        ("an error", &turn, vec![json!({"id": 3, "error": {"code": -32603}})], None, done),
        // Allowed once, wherever that stands: "always" may be written into the workspace.
        (
            "a permission",
            &turn,
            vec![asked(&["reject_once", "allow_always", "allow_once"])],
            granted(selected("allow_once")),
            None,
        ),
        (
            "a lasting one",
            &turn,
            vec![asked(&["reject_once", "allow_always"])],
            granted(selected("allow_always")),
            None,
        ),
        ("none", &turn, vec![asked(&["reject_once"])], granted(json!({"outcome": "cancelled"})), None),
        ("another request", &turn, vec![json!({"id": 0, "method": "craft/x"})], Some(no_method), None),
        ("a notification", &turn, vec![json!({"method": "_auth/status_update", "params": {}})], None, None),
        ("a response to nothing", &turn, vec![json!({"id": 9, "result": {}})], None, None),
        ("no object", &turn, vec![json!("Hello")], None, None),
    ] {
        let answer = answer(turn, &messages);
        let text: Option<Value> = serde_json::from_str(&answer.text).ok();
        assert_eq!(text, written, "{name}");
        assert!(answer.text.is_empty() || answer.text.ends_with('\n'), "{name}");
        assert_eq!(answer.end.map(|end| end.map_err(|_| ())), end, "{name}");
    }
}

const TOML: &str = r#"
[agents.goose-acp]
command = ["goose", "acp"]
decoder = "acp"
credentials = ["OPENAI_API_KEY"]
env = { OPENAI_HOST = "{gateway}", GOOSE_PROVIDER = "openai", GOOSE_MODEL = "gpt-4.1", GOOSE_MODE = "ASKING", GOOSE_DISABLE_KEYRING = "1" }
"#;

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [goose-acp], timeout: 120s }
gates: { pass_rate: 0 }
cases:
  - id: greets
    prompt: Greet Alice.
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - tool_used: load_skill
  - { id: prints, prompt: Print and greet., activation: must }
  - { id: misses, prompt: Call another skill., activation: must_not }
  - { id: sums, prompt: Add two numbers., activation: must_not }
  - id: talks
    prompt: [Remember the number seven., Which number?]
    activation: must_not
    checks: [{ contains: seven }]
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { to: probe, steps: [{ tools: [{ name: load_skill, input: { name: greeter } }] }, ready] }
  - when: Greet Alice.
    steps:
      - { tools: [{ name: load_skill, input: { name: greeter } }] }
      - { tools: [{ name: shell, input: { command: 'echo Ahoy, Alice > hello.txt' } }] }
      - Ahoy, Alice!
  - when: Print and greet.
    steps:
      - { tools: [{ name: shell, input: { command: cat .agents/skills/greeter/SKILL.md } }] }
      - Ahoy.
  - when: Call another skill.
    steps:
      - { tools: [{ name: load_skill, input: { name: nope } }] }
      - There is none.
  - { when: Add two numbers., steps: ['42'] }
  - { when: Which number?, steps: [It was seven., It was seven.] }
  - { when: Remember the number, steps: [Noted., It was seven.] }
";

fn run_goose(mode: &str, eval: &str, script: &str, code: i32) -> Value {
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", eval),
        ("script.yaml", script),
        ("practicum.toml", &TOML.replace("ASKING", mode)),
    ]);
    let mut command = project.practicum(&["run", "evals", "--script", "script.yaml", "--json"]);
    command
        .env("PATH", path_with(&goose()))
        .env("OPENAI_API_KEY", "sk-of-the-user")
        .env("PRACTICUM_RETRIES", "0");
    let ran = Ran::of(command.output().expect("practicum starts"));
    assert_eq!(project.processes(), [""; 0], "goose does not end by itself when its input is closed");
    ran.exits(code).json()
}

#[test]
fn goose_works_over_the_protocol() {
    // In the mode "approve" it asks before each call.
    for mode in ["auto", "approve"] {
        let summary = run_goose(mode, EVAL, SCRIPT, 0);
        assert_eq!(summary["probes"][0]["fired"], true, "{mode}: {}", summary["probes"]);
        let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
        assert_eq!(counted, [2, 0, 3, 0, 0], "{mode}: {}", summary["activation"]);
        for case in summary["cases"].as_array().expect("cases") {
            assert_eq!(case["passed"], 1, "{mode}: {case}");
        }
    }
}

/// It answers "end_turn" after an error of the API, which is not a success.
#[test]
fn an_error_of_the_api_is_no_answer() {
    let eval = EVAL.split("  - { id: prints").next().expect("one case");
    for (status, ending) in [(401, "auth_failed"), (400, "api_failed")] {
        let script = format!("practicum_script: 1\nscenarios:\n  - steps: [{{ error: {status} }}]\n");
        let summary = run_goose("auto", eval, &script, 3);
        assert_eq!(summary["cases"][0]["endings"][ending], 1, "{status}: {}", summary["cases"][0]);
        assert_eq!(summary["cases"][0]["fired"]["unknown"], 1, "{status}: {}", summary["cases"][0]);
    }
}

/// goose is on PATH, and the project has an agent that drives it over the protocol.
#[test]
fn all_agents_of_this_machine_are_shown_side_by_side() {
    let eval = EVAL.split("  - { id: prints").next().expect("one case").replace("agents: [goose-acp], ", "");
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", &eval),
        ("script.yaml", SCRIPT),
        ("practicum.toml", &TOML.replace("ASKING", "auto")),
    ]);
    let practicum = |args: &[&str]| {
        let mut command = project.practicum(args);
        Ran::of(command.env("PATH", path_with(&goose())).output().expect("practicum starts"))
    };
    let ran =
        practicum(&["run", "evals", "--agent", "all", "--script", "script.yaml", "--repeat", "2"]).exits(0);
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("agent all: goose, goose-acp"), "{said}");
    let report = practicum(&["report", "latest", "--format", "md"]).exits(0).stdout;
    let matrix = report.split("## Agents side by side").nth(1).expect("a matrix");
    assert!(matrix.contains("| suite | case | goose | goose-acp |"), "{matrix}");
    let row = matrix.lines().find(|line| line.contains("| greets |")).expect("a row");
    assert_eq!((row.matches("1.00").count(), row.matches("0.16").count()), (4, 2), "{row}");
    let page = practicum(&["report", "latest", "--format", "html"]).exits(0).stdout;
    assert!(page.contains("Agents side by side"), "{page}");
    // Without a script, an agent without a login is left out.
    let ran = practicum(&["run", "evals", "--agent", "all"]).exits(3);
    assert!(ran.stderr.contains("no agent is installed and logged in"), "{}", ran.stderr);
}

/// Agents that no vendor would ship: each a shell script, and how the run ends with it.
#[test]
fn an_agent_that_breaks_the_protocol_is_not_scored() {
    const READY: &str = r#"read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'"#;
    const OPENED: &str = r#"read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'"#;
    const SAID: &str = r#"read l; echo '{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"Ahoy"}}}}'"#;
    const DONE: &str = r#"echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'"#;
    for (name, lines, ending, code) in [
        (
            "another version",
            vec![r#"read l; echo '{"id":1,"result":{"protocolVersion":2}}'"#, "sleep 100"],
            "not_launched",
            3,
        ),
        ("no answer", vec!["sleep 100"], "timed_out", 3),
        ("ends at once", vec!["read l; exit 0"], "crashed", 3),
        ("ends before its answer", vec![READY, OPENED, SAID, "exit 0"], "crashed", 3),
        // Whatever it does after the answer, the turn has ended well.
        (
            "does not end",
            vec!["trap '' TERM", READY, OPENED, SAID, DONE, "while :; do sleep 1; done"],
            "finished",
            0,
        ),
        ("fails after its answer", vec![READY, OPENED, SAID, DONE, "read l; exit 7"], "finished", 0),
    ] {
        let project = Project::new(&[
            ("greeter/SKILL.md", SKILL),
            (
                "evals/g.practicum.yaml",
                "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [odd], timeout: 10s }\n\
                 cases:\n  - { id: one, prompt: Greet., checks: [{ contains: Ahoy }] }\n",
            ),
            ("agent.sh", &lines.join("\n")),
        ]);
        let script = project.path().join("agent.sh");
        let toml =
            format!("[agents.odd]\ncommand = [\"/bin/bash\", \"{}\"]\ndecoder = \"acp\"\n", script.display());
        project.write("practicum.toml", &toml);
        let mut command = project.practicum(&["run", "evals", "--no-probe", "--arm", "with", "--json"]);
        let ran = Ran::of(command.env("PRACTICUM_RETRIES", "0").output().expect("practicum starts"));
        assert_eq!(ran.code, code, "{name}: {}\n{}", ran.stdout, ran.stderr);
        assert_eq!(ran.json()["cases"][0]["endings"][ending], 1, "{name}: {}", ran.stdout);
        assert_eq!(project.processes(), [""; 0], "{name}");
    }
}
