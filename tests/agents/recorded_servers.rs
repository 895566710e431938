//! A real MCP server is recorded by a run and then replayed, with the real Claude Code and the real Codex.

use serde_json::{Value, json};

use super::mocks::{TestedAgent, agents, facts, run};
use crate::common::Project;

/// A small MCP server in Python, which counts what was added. It also writes which variables it got.
const SERVER: &str = r#"import json, os, sys
open("started.txt", "a").write(os.environ.get("SHOP_TOKEN", "no token") + " " + os.environ.get("OTHER", "no other") + "\n")
items = []
for line in sys.stdin:
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if number is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}}
    elif method == "tools/list":
        tools = [("list_items", "Lists what is there."), ("add_item", "Adds an item."), ("clear", "Removes everything.")]
        result = {"tools": [{"name": name, "description": text, "inputSchema": {"type": "object"}} for name, text in tools]}
    elif method == "tools/call":
        call = message["params"]
        if call["name"] == "add_item":
            items.append(call["arguments"]["name"])
        text = json.dumps({"items": items, "token": os.environ.get("SHOP_TOKEN")})
        result = {"content": [{"type": "text", "text": text}], "isError": call["name"] == "clear"}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
"#;

const EVAL: &str = "\
practicum: 1
skill: ../buyer
workspace: empty
mocks:
  servers:
    shop: { recorded: recorded/shop.yaml, command: [python3, server.py], env: [SHOP_TOKEN] }
cases:
  - id: adds
    prompt: Add a pear.
    checks:
      - mock_order: [shop/list_items, shop/add_item, shop/list_items]
      - contains: Done
  - id: clears
    prompt: Clear it.
    checks: [{ contains: Done }]
";

#[test]
fn a_server_is_recorded_once_and_replayed() {
    for TestedAgent { name: agent, program, separator, .. } in agents() {
        let tool = |name: &str, input: &str| {
            format!("{{ tools: [{{ name: mcp__shop{separator}{name}, input: {input} }}] }}")
        };
        let script = format!(
            "practicum_script: 1\nscenarios:\n  - {{ when: Add a pear, steps: [{}, {}, {}, Done.] }}\n  - {{ when: Clear it, steps: [{}, Done.] }}\n",
            tool("list_items", "{}"),
            tool("add_item", "{ name: /pear/ }"),
            tool("list_items", "{}"),
            tool("clear", "{}"),
        );
        let skill = "---\nname: buyer\ndescription: Buys fruit. Use when asked to buy.\n---\n\nBuy it.\n";
        let project = Project::new(&[
            ("buyer/SKILL.md", skill),
            ("evals/e.practicum.yaml", EVAL),
            ("evals/server.py", SERVER),
            ("script.yaml", &script),
        ]);
        let started = project.path().join("evals/started.txt");
        // Without a recording nothing is run, and without trust no server is started.
        let first = run(&project, agent, &program, &["--case", "adds", "--no-probe"]);
        assert!(first.stdout.contains("--record-mocks") && !started.exists(), "{agent}: {}", first.stdout);
        std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
        let distrusted = run(&project, agent, &program, &["--record-mocks"]);
        assert_eq!((distrusted.code, started.exists()), (2, false), "{agent}: {}", distrusted.stderr);

        let how = ["--record-mocks", "--trust", "--case", "adds", "--no-probe"];
        let mut command = project.practicum(&[&super::mocks::usual_args(agent)[..], &how].concat());
        command
            .env("PATH", crate::common::path_with(&program))
            .env("SHOP_TOKEN", "sk-ant-a-secret-token")
            .env("OTHER", "x");
        let recorded = crate::common::Ran::of(command.output().expect("practicum starts"));
        let about = format!("{agent}:\n{}\n{}", recorded.stderr, recorded.stdout);
        assert_eq!(recorded.json()["totals"]["passed"], 1, "{about}");
        let variables = std::fs::read_to_string(&started).expect("the server started");
        assert!(variables.starts_with("sk-ant-a-secret-token no other\n"), "{about}");
        let file =
            std::fs::read_to_string(project.path().join("evals/recorded/shop.yaml")).expect("a recording");
        assert!(file.contains("clear") && file.contains("/pear/"), "{file}");
        assert!(!file.contains("a-secret-token"), "a recording has no secret: {file}");
        std::fs::remove_file(project.path().join("evals/server.py")).expect("removed");
        std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");

        // The first list is empty and the second is not, as it was with the real server.
        let replayed = run(&project, agent, &program, &["--no-probe"]);
        let about = format!("{agent}:\n{}\n{}", replayed.stderr, replayed.stdout);
        let summary = replayed.json();
        let calls = facts(&project, "adds")["mock_calls"].clone();
        let items = |at: usize| {
            let answer: Value =
                serde_json::from_str(calls[at]["answer"].as_str().expect("text")).expect("JSON");
            answer["items"].clone()
        };
        assert_eq!(
            [items(0), items(1), items(2)],
            [json!([]), json!(["/pear/"]), json!(["/pear/"])],
            "{about}"
        );
        let case = |id: &str| {
            let cases = summary["cases"].as_array().expect("cases");
            cases.iter().find(|case| case["id"] == id).cloned().unwrap_or_default()
        };
        assert_eq!(case("adds")["passed"], 1, "{about}");
        // This call was never recorded.
        assert_eq!(case("clears")["not_scored"], 1, "{about}");
        assert_eq!(facts(&project, "clears")["mock_calls"][0]["outcome"], "unmocked", "{about}");
        assert_eq!(project.processes(), [""; 0], "{agent}");
    }
}
