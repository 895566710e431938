//! The plugin for Claude Code: its skill, its command and its MCP server, used by the real agent.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{Project, claude};

const SKILL: &str = "\
---
name: table
description: Turn a CSV file into a Markdown table with a line of totals. Use when the user wants a table of a CSV file.
---

Write a Markdown table with a last line of totals.
";

/// What the model does: it writes a suite for a new skill, checks it, runs it within a budget and reads the result.
const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: Test my skill
    steps:
      - tools: [{ name: Skill, input: { skill: "practicum:writing-evals" } }]
      - tools:
          - name: Write
            input:
              file_path: PROJECT/table/evals/table.practicum.yaml
              content: |
                practicum: 1
                skill: ..
                workspace: empty
                run: { agents: [builtin], script: script.yaml }
                cases:
                  - id: totals
                    prompt: Show the numbers of sales.csv in sales.md.
                    activation: must
                    checks:
                      - file: { path: sales.md, contains: Total }
          - name: Write
            input:
              file_path: PROJECT/table/evals/script.yaml
              content: |
                practicum_script: 1
                scenarios:
                  - steps:
                      - tools: [{ name: Skill, input: { skill: table } }]
                      - tools: [{ name: Write, input: { file_path: "{{workspace}}/sales.md", content: "| Total | 3 |" } }]
                      - text: Done.
      - tools: [{ name: mcp__plugin_practicum_practicum__check, input: { paths: [table] } }]
      - tools: [{ name: mcp__plugin_practicum_practicum__run, input: { paths: [table], max_cost_usd: 0.1 } }]
      - tools: [{ name: mcp__plugin_practicum_practicum__show, input: { trial: totals } }]
      - text: The skill is activated, and its check holds.
  - steps: [{ text: ok }]
"#;

/// Ends the gateway with the test.
struct Gateway(std::process::Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn claude_code_with_the_plugin_writes_checks_runs_and_reads_evals() {
    let project = Project::new(&[("table/SKILL.md", SKILL)]);
    let at = project.path().canonicalize().expect("a path");
    project.write("model/script.yaml", &SCRIPT.replace("PROJECT", at.to_str().expect("a path")));
    let mut gateway = project.practicum(&["gateway", "--script", "model/script.yaml"]);
    let mut gateway =
        Gateway(gateway.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the gateway starts"));
    let mut line = String::new();
    BufReader::new(gateway.0.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let served: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(served["api"], "anthropic-messages");

    let program = Path::new(env!("CARGO_BIN_EXE_practicum"));
    let home = tempfile::tempdir().expect("a home");
    let ran = Command::new(claude())
        .current_dir(&at)
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", crate::common::path_with(program))
        .env("ANTHROPIC_BASE_URL", served["base_url"].as_str().expect("an address"))
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .args(["-p", "Test my skill in the folder table.", "--output-format", "stream-json", "--verbose"])
        .args(["--allowedTools", "Skill,Write,mcp__plugin_practicum_practicum"])
        .arg("--plugin-dir")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/practicum"))
        .stdin(Stdio::null())
        .output()
        .expect("Claude Code starts");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let events: Vec<Value> = printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let began = events.iter().find(|event| event["subtype"] == "init").unwrap_or_else(|| panic!("{printed}"));
    let commands = began["slash_commands"].to_string();
    assert!(commands.contains("practicum:test-skill"), "{commands}");
    let results: Vec<String> = events
        .iter()
        .filter(|event| event["type"] == "user")
        .map(|event| event["message"]["content"].to_string())
        .collect();
    assert!(results.iter().any(|result| result.contains("1 file, 1 case: 0 errors")), "{results:#?}");
    assert!(results.iter().any(|result| result.contains("PASS  1 of 1 trial passed")), "{results:#?}");
    assert!(results.iter().any(|result| result.contains("the skill was activated")), "{results:#?}");
    let last = events.last().expect("events");
    assert_eq!(last["result"], "The skill is activated, and its check holds.", "{printed}");
}
