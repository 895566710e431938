//! The whole pipeline with the real Claude Code, its model played by the script gateway.

use crate::common::moves::{Move, SKILL, play};
use crate::common::{Project, Ran, claude, path_with};
use serde_json::Value;

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [claude], timeout: 60s }
cases:
  - id: greets
    prompt: Greet Alice and write it to hello.txt.
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - id: friendly
        judge: The greeting is friendly.
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - text: I will use the skill.
        tools: [{ name: Skill, input: { skill: greeter } }]
      - tools: [{ name: Write, input: { file_path: '{{workspace}}/hello.txt', content: 'Ahoy, Alice!' } }]
      - text: Ahoy, Alice!
  - to: judge
    steps:
      - tools:
          - name: report_marks
            input:
              results: [{ id: friendly, verdict: pass, evidence: ['Ahoy, Alice!'], reasoning: It says ahoy. }]
";

#[test]
fn a_real_agent_is_examined_from_file_to_verdict() {
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", EVAL),
        ("script.yaml", SCRIPT),
    ]);
    let mut command = project.practicum(&["run", "evals", "--script", "script.yaml", "--json"]);
    command.env("PATH", path_with(&claude()));
    let summary = Ran::of(command.output().expect("practicum starts")).exits(0).json();
    let case = &summary["cases"][0];
    assert_eq!(case["agent"], "claude");
    assert_eq!(case["passed"], 1);
    assert_eq!(case["endings"]["finished"], 1);
    assert_eq!(case["fired"]["yes"], 1);
    let passed: Vec<&Value> =
        case["checks"].as_array().expect("checks").iter().map(|check| &check["passed"]).collect();
    assert_eq!(passed, [1, 1, 1, 1]);

    let run = project.only_run();
    let stored: Value =
        serde_json::from_slice(&std::fs::read(run.join("summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(stored, summary, "the stored summary is the printed one");
    let events = std::fs::read_to_string(run.join("events.jsonl")).expect("events");
    assert!(events.contains("\"trial_finished\"") && events.contains("\"verdict\":\"pass\""), "{events}");
    let trial =
        std::fs::read_dir(run.join("trials")).expect("trials").flatten().next().expect("a trial").path();
    let written =
        std::fs::read_to_string(trial.join("files/hello.txt")).expect("what the agent wrote is kept");
    assert_eq!(written, "Ahoy, Alice!");
    let transcript = std::fs::read_to_string(trial.join("transcript.jsonl")).expect("a transcript");
    assert!(transcript.contains("Launching skill: greeter"));
}

#[test]
fn what_the_model_does_is_seen() {
    play(
        "claude",
        &claude(),
        &[
            Move {
                name: "a plain answer",
                scenarios: Some("  - steps: [{ text: 'Ahoy, Alice!', USAGE }]\n"),
                ..Move::FINE
            },
            Move {
                name: "files",
                scenarios: Some(
                    "  - steps:
      - { tools: [{ name: Write, input: { file_path: '{{workspace}}/new.txt', content: Ahoy } }], USAGE }
      - { tools: [{ name: Bash, input: { command: 'echo more > shell.txt', description: writes } }], USAGE }
      - { text: 'Ahoy, Alice!', USAGE }
",
                ),
                checks: "      - file: { path: new.txt, matches: '^Ahoy$' }\n      - file: { path: shell.txt, matches: more }\n",
                tokens: [300, 30],
                ..Move::FINE
            },
            Move {
                name: "two turns in one session",
                turns: &["Greet Alice.", "And Bob."],
                // The second answer is the second step only where the first is in its conversation.
                scenarios: Some(
                    "  - { when: Greet Alice, steps: [{ text: First., USAGE }, { text: 'Ahoy, Bob!', USAGE }] }\n",
                ),
                tokens: [200, 20],
                ..Move::FINE
            },
            Move {
                name: "a subagent that takes up the skill and writes a file",
                scenarios: Some(
                    "  - when: Greet Alice
    steps:
      - { tools: [{ name: Agent, input: { description: sub, prompt: Sub work., subagent_type: general-purpose } }], USAGE }
      - { text: 'Ahoy, Alice!', USAGE }
  - when: Sub work
    steps:
      - { tools: [{ name: Skill, input: { skill: greeter } }], USAGE }
      - { tools: [{ name: Write, input: { file_path: '{{workspace}}/sub.txt', content: Ahoy } }], USAGE }
      - { text: Sub done., USAGE }
",
                ),
                flags: &["--sync-tasks"],
                checks: "      - file: { path: sub.txt, matches: Ahoy }\n      - tool_used: Agent\n",
                fired: "yes",
                tokens: [500, 50],
                ..Move::FINE
            },
            Move {
                name: "a subagent in the background, whose end is told to the model",
                scenarios: Some(
                    "  - when: Greet Alice
    steps:
      - { tools: [{ name: Agent, input: { description: sub, prompt: Sub work., subagent_type: general-purpose, run_in_background: true } }], USAGE }
      - { text: It works., USAGE }
      - { text: 'Ahoy, Alice!', USAGE }
  - when: Sub work
    steps:
      - { tools: [{ name: Write, input: { file_path: '{{workspace}}/sub.txt', content: Ahoy } }], USAGE }
      - { text: Sub done., delay: 3s, USAGE }
",
                ),
                checks: "      - file: { path: sub.txt, matches: Ahoy }\n",
                tokens: [500, 50],
                ..Move::FINE
            },
        ],
    );
}

#[test]
fn what_the_api_does_is_not_a_failed_eval() {
    play(
        "claude",
        &claude(),
        &[
            Move {
                name: "429 once",
                scenarios: Some(
                    "  - steps: [{ error: 429, times: 1, headers: { retry-after: '0' } }, { text: Ahoy, USAGE }]\n",
                ),
                ..Move::FINE
            },
            Move {
                name: "429 for ever",
                scenarios: Some("  - steps: [{ error: 429 }]\n"),
                ended: "rate_limited",
                ..Move::FAILED
            },
            Move {
                name: "silence before the headers",
                scenarios: Some("  - steps: [{ hang_before_headers: 10m }]\n"),
                flags: &["--timeout", "3s"],
                ended: "timed_out",
                ..Move::FAILED
            },
            Move {
                name: "silence after the headers",
                scenarios: Some("  - steps: [{ hang: 10m }]\n"),
                flags: &["--timeout", "3s"],
                ended: "timed_out",
                ..Move::FAILED
            },
            Move {
                name: "a stream cut off for ever",
                // How much of it is read before the connection drops is chance, so it takes nothing.
                scenarios: Some("  - steps: [{ text: Ahoy and good day., truncate: true, usage: {} }]\n"),
                ended: "api_failed",
                ..Move::FAILED
            },
            Move {
                name: "a stream cut off once",
                scenarios: Some(
                    "  - steps: [{ text: Ahoy and good day., truncate: true, times: 1, usage: {} }, { text: Ahoy, USAGE }]\n",
                ),
                ..Move::FINE
            },
            Move {
                name: "a stream that reports an error",
                scenarios: Some("  - steps: [{ sse_error: overloaded_error, USAGE }]\n"),
                ended: "api_failed",
                // Three replies were begun.
                tokens: [300, 3],
                ..Move::FAILED
            },
            Move { name: "no key", ended: "auth_failed", ..Move::FAILED },
            Move {
                name: "a wrong key",
                scenarios: Some("  - steps: [{ error: 401, message: invalid x-api-key }]\n"),
                ended: "auth_failed",
                ..Move::FAILED
            },
        ],
    );
}
