//! Mocked servers and commands, called by the real Claude Code and the real Codex.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Project, Ran, claude, codex, path_with};

const SKILL: &str = "---\nname: buyer\ndescription: Buys fruit. Use when asked to buy.\n---\n\nBuy it.\n";

const EVAL: &str = "\
practicum: 1
skill: ../buyer
workspace: empty
run: { timeout: 120s }
mocks:
  servers:
    shop:
      tools:
        list_fruit: '{\"fruit\": [\"pear\"]}'
        buy:
          expect: { item: string }
          answers:
            - when: { item: pear }
              result: { bought: '{{input.item}}', receipt: R-77 }
            - when: { item: plum }
              error: No plums.
  commands:
    payctl:
      - args: [send]
        stdout: 'sent {{args.1}}'
        files: [{ to: receipts/last.txt, content: '{{args.1}}' }]
cases:
  - id: buys
    prompt: Buy a pear.
    checks:
      - mock_order: [shop/list_fruit, shop/buy, payctl]
      - mock_called: { server: shop, tool: buy, input: { item: pear }, max: 1 }
      - mock_called: { command: payctl, args: [send, R-77] }
      - mock_not_called: { server: shop, tool: buy, input: { item: plum } }
      - file: { path: receipts/last.txt, matches: '^R-77' }
      - transcript: R-77
  - id: invents
    prompt: Buy a melon.
    checks:
      - contains: Done
  - id: refunds
    prompt: Refund a pear.
    checks:
      - contains: Done
  - id: garbles
    prompt: Buy something.
    checks:
      - contains: Done
";

/// An agent, and how its model calls tools.
pub struct TestedAgent {
    pub name: &'static str,
    pub program: PathBuf,
    /// The shell tool, and the name of its argument.
    pub shell: [&'static str; 2],
    /// What stands between the name of a server and that of its tool.
    pub separator: &'static str,
}

pub fn agents() -> [TestedAgent; 2] {
    let claude = claude();
    let codex = codex();
    [
        TestedAgent { name: "claude", program: claude, shell: ["Bash", "command"], separator: "__" },
        // Its API has namespaces.
        TestedAgent { name: "codex", program: codex, shell: ["exec_command", "cmd"], separator: "." },
    ]
}

/// The arguments of every run here.
pub fn usual_args(agent: &str) -> [&str; 9] {
    ["run", "evals", "--agent", agent, "--script", "script.yaml", "--arm", "with", "--json"]
}

pub fn run(project: &Project, agent: &str, program: &Path, args: &[&str]) -> Ran {
    let mut command = project.practicum(&[&usual_args(agent)[..], args].concat());
    Ran::of(command.env("PATH", path_with(program)).output().expect("practicum starts"))
}

/// Gives the facts of the trial of a case.
pub fn facts(project: &Project, case: &str) -> Value {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let folder = trials
        .map(|trial| trial.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(case)))
        .unwrap_or_else(|| panic!("no trial of {case}"));
    let text = std::fs::read_to_string(folder.join("facts.json")).expect("facts");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn agents_call_mocked_servers_and_commands() {
    for TestedAgent { name: agent, program, shell: [shell, argument], separator } in agents() {
        let script = format!(
            "practicum_script: 1
scenarios:
  - when: Buy a pear
    steps:
      - tools: [{{ name: mcp__shop{separator}list_fruit, input: {{}} }}]
      - tools: [{{ name: mcp__shop{separator}buy, input: {{ item: pear }} }}]
      - tools: [{{ name: {shell}, input: {{ {argument}: payctl send R-77 }} }}]
      - text: Done.
  - when: Buy a melon
    steps:
      - tools: [{{ name: mcp__shop{separator}buy, input: {{ item: melon }} }}]
      - text: Done.
  - when: Refund a pear
    steps:
      - tools: [{{ name: {shell}, input: {{ {argument}: 'payctl refund R-77; echo code $?' }} }}]
      - text: Done.
  - when: Buy something
    steps:
      - tools: [{{ name: mcp__shop{separator}buy, input: {{ item: 5 }} }}]
      - text: Done.
"
        );
        let project = Project::new(&[
            ("buyer/SKILL.md", SKILL),
            ("evals/e.practicum.yaml", EVAL),
            ("script.yaml", &script),
        ]);
        let ran = run(&project, agent, &program, &[]);
        let about = format!("{agent}:\n{}\n{}", ran.stderr, ran.stdout);
        let summary = ran.json();
        let case = |id: &str| {
            let cases = summary["cases"].as_array().expect("cases");
            cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("{id}: {about}")).clone()
        };
        assert_eq!(case("buys")["passed"], 1, "{about}");
        for id in ["invents", "refunds"] {
            assert_eq!(case(id)["not_scored"], 1, "{id}: {about}");
        }
        // Arguments that the mock does not expect are the agent's mistake.
        assert_eq!(case("garbles")["failed"], 1, "{about}");
        assert_eq!(ran.code, 1, "{about}");
        assert_eq!(facts(&project, "invents")["mock_calls"][0]["outcome"], "unmocked", "{about}");
        let refused = &facts(&project, "refunds")["mock_calls"][0];
        assert_eq!(refused["args"], serde_json::json!(["refund", "R-77"]), "{about}");
        let shown = project.run(&["show", "latest", "refunds"]);
        assert!(shown.stdout.contains("unmocked call: payctl refund R-77"), "{}", shown.stdout);

        // The stored calls are graded again, without the agent.
        let again = project.run(&["grade", "latest", "--json"]).json();
        assert_eq!(again["changes"], serde_json::json!([]), "{agent}");
        assert_eq!(project.processes(), [""; 0], "{agent}");
    }
}

#[test]
fn suites_of_claude_plugin_eval_with_mocks_run_on_both_agents() {
    for TestedAgent { name: agent, program, separator, .. } in agents() {
        let script = "practicum_script: 1
scenarios:
  - when: Monitor this project
    steps:
      - tools: [{ name: mcp__plugin_watch_monitorsSEPARATORlist_monitors, input: {} }]
      - text: There are none. Shall I create backup, sync and nightly?
  - when: Create it at once
    steps:
      - tools: [{ name: mcp__plugin_watch_monitorsSEPARATORcreate_monitor, input: { name: nightly } }]
      - text: I created it.
  - steps: [{ text: I do not know. }]
"
        .replace("SEPARATOR", separator);
        let not_created = "---\ntype: tool_used\ntool: mcp__plugin_watch_monitors__create_monitor\nmin: 0\nmax: 0\narm: both\n---\n";
        let project = Project::new(&[
            (".claude-plugin/plugin.json", r#"{"name": "watch"}"#),
            (
                "skills/setup/SKILL.md",
                "---\nname: setup\ndescription: Sets up monitors.\n---\nList them first.\n",
            ),
            ("evals/mocks/monitors/list_monitors.md", "{\"monitors\": []}\n"),
            (
                "evals/mocks/monitors/create_monitor.md",
                "---\ntype: fixed\nexpect:\n  name: string\n---\n\n{\"name\": \"{{input.name}}\", \"result\": \"created\"}\n",
            ),
            ("evals/asks/prompt.md", "---\nruns: 1\n---\n\nMonitor this project.\n"),
            (
                "evals/asks/graders/lists.md",
                "---\ntype: tool_used\ntool: mcp__plugin_watch_monitors__list_monitors\nmin: 1\n---\n",
            ),
            ("evals/asks/graders/no-create.md", not_created),
            (
                "evals/asks/graders/calls.md",
                "---\ntype: regex\ntarget: mock_calls\npattern: create_|delete_\nmatch: not_contains\n---\n",
            ),
            ("evals/hasty/prompt.md", "---\nruns: 1\n---\n\nCreate it at once.\n"),
            ("evals/hasty/graders/no-create.md", not_created),
            ("script.yaml", &script),
        ]);
        let ran = run(&project, agent, &program, &[]);
        let about = format!("{agent}:\n{}\n{}", ran.stderr, ran.stdout);
        let summary = ran.json();
        let cases = summary["cases"].as_array().expect("cases");
        let passed = |id: &str| {
            cases
                .iter()
                .find(|case| case["id"] == id)
                .map(|case| (case["passed"].clone(), case["failed"].clone()))
        };
        assert_eq!(passed("asks"), Some((1.into(), 0.into())), "{about}");
        assert_eq!(passed("hasty"), Some((0.into(), 1.into())), "{about}");
        assert_eq!(ran.code, 1, "{about}");
    }
}
