//! The whole pipeline with the real Codex, its model played by the script gateway.

use std::path::PathBuf;

use crate::common::moves::{Move, SKILL, play};
use crate::common::{Project, Ran, codex, path_with};

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [codex], timeout: 60s }
cases:
  - id: ID
    prompt: Greet Alice.
    checks:
      - contains: Ahoy
";

fn project(eval: &str, steps: &str) -> Project {
    let script = format!("practicum_script: 1\nscenarios:\n  - when: Greet Alice\n    steps:\n{steps}");
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", eval), ("script.yaml", &script)])
}

fn examine(project: &Project, more: &[&str]) -> Ran {
    let args = ["run", "evals", "--script", "script.yaml", "--json"];
    let mut command = project.practicum(&[&args, more].concat());
    command.env("PATH", path_with(&codex()));
    Ran::of(command.output().expect("practicum starts"))
}

/// The folder of the only trial.
fn trial(project: &Project) -> PathBuf {
    let mut trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    trials.next().expect("a trial").path()
}

#[test]
fn a_skill_read_with_the_shell_is_an_activation() {
    let eval = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [codex], timeout: 60s }
cases:
  - id: greets
    prompt: Greet Alice and write it to hello.txt.
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - file: { path: patched.txt, matches: '^Ahoy, Bob' }
      - tool_used: { name: shell, args: { command: 'cat *' } }
";
    let steps = "      - text: I will use the skill.
        tools: [{ name: exec_command, input: { cmd: cat .agents/skills/greeter/SKILL.md } }]
      - tools: [{ name: exec_command, input: { cmd: 'echo Ahoy, Alice > hello.txt; env > env.txt' } }]
      - tools:
          - name: exec_command
            input:
              cmd: |
                apply_patch <<'EOF'
                *** Begin Patch
                *** Add File: patched.txt
                +Ahoy, Bob
                *** End Patch
                EOF
      - text: Ahoy, Alice!
";
    let project = project(eval, steps);
    let args = ["run", "evals", "--script", "script.yaml", "--json"];
    let mut command = project.practicum(&args);
    command.env("PATH", path_with(&codex())).env("OPENAI_API_KEY", "sk-of-the-user");
    let summary = Ran::of(command.output().expect("practicum starts")).exits(0).json();
    let case = &summary["cases"][0];
    assert_eq!((&case["passed"], &case["fired"]["yes"]), (&1.into(), &1.into()), "{case}");

    let trial = trial(&project);
    let read = |path: &str| std::fs::read_to_string(trial.join(path)).expect(path);
    assert_eq!(read("files/hello.txt"), "Ahoy, Alice\n");
    assert!(read("transcript.jsonl").contains("\"file_change\""));
    let env = read("files/env.txt");
    assert!(!env.contains("sk-of-the-user") && !env.contains("_API_KEY"), "{env}");
    assert!(env.contains("PRACTICUM_TRIAL=") && !env.contains("greets"), "{env}");
}

#[test]
fn a_skill_read_by_a_program_of_the_model_is_an_activation() {
    let eval = EVAL.replace("ID", "programs").replace("    checks:", "    activation: must\n    checks:");
    let steps = "      - tools:
          - name: exec
            input: 'text(await tools.exec_command({ cmd: \"cat .agents/skills/greeter/SKILL.md\" }));'
      - text: Ahoy, Alice!
";
    let summary = examine(&project(&eval, steps), &["--model", "gpt-6-sol"]).exits(0).json();
    assert_eq!(summary["cases"][0]["fired"]["yes"], 1);
}

#[test]
fn what_the_model_does_is_seen() {
    play(
        "codex",
        &codex(),
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
      - { tools: [{ name: exec_command, input: { cmd: echo more > shell.txt } }], USAGE }
      - tools:
          - name: apply_patch
            input: |
              *** Begin Patch
              *** Add File: new.txt
              +Ahoy
              *** End Patch
        USAGE
      - { text: 'Ahoy, Alice!', USAGE }
",
                ),
                flags: &["--model", "gpt-5.5"],
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
                name: "a subagent that writes a file",
                scenarios: Some(
                    "  - when: Greet Alice
    steps:
      - { tools: [{ name: collaboration.spawn_agent, input: { task_name: sub, message: Sub work., fork_turns: none } }], USAGE }
      - { tools: [{ name: collaboration.wait_agent, input: { timeout_ms: 30000 } }], USAGE }
      - { text: 'Ahoy, Alice!', USAGE }
  - when: Sub work
    steps:
      - { tools: [{ name: exec, input: 'text(await tools.exec_command({ cmd: \"echo Ahoy > sub.txt\" }));' }], USAGE }
      - { text: Sub done., USAGE }
",
                ),
                flags: &["--model", "gpt-6-sol"],
                checks: "      - file: { path: sub.txt, matches: Ahoy }\n      - tool_used: wait\n",
                // Its subagent is another thread, of whose tokens its stream says nothing.
                tokens: [300, 30],
                ..Move::FINE
            },
        ],
    );
}

#[test]
fn what_the_api_does_is_not_a_failed_eval() {
    play(
        "codex",
        &codex(),
        &[
            Move {
                name: "429 once",
                scenarios: Some(
                    "  - steps: [{ error: 429, times: 1, headers: { retry-after: '0' } }, { text: Ahoy, USAGE }]\n",
                ),
                ..Move::FINE
            },
            Move {
                // It asks again only where it is told when.
                name: "429 once, without a time to ask again",
                scenarios: Some("  - steps: [{ error: 429, times: 1 }, { text: Ahoy, USAGE }]\n"),
                ended: "rate_limited",
                ..Move::FAILED
            },
            Move {
                name: "429 for ever",
                scenarios: Some("  - steps: [{ error: 429 }]\n"),
                ended: "rate_limited",
                ..Move::FAILED
            },
            Move {
                name: "503 for ever",
                scenarios: Some("  - steps: [{ error: 503 }]\n"),
                ended: "api_failed",
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
                name: "a command that never ends",
                scenarios: Some(
                    "  - steps: [{ tools: [{ name: exec_command, input: { cmd: '(sleep 600 &); sleep 601' } }] }, { hang: 10m }]\n",
                ),
                flags: &["--timeout", "3s"],
                ended: "timed_out",
                ..Move::FAILED
            },
            Move {
                name: "a stream cut off for ever",
                scenarios: Some("  - steps: [{ text: Ahoy and good day., truncate: true, USAGE }]\n"),
                ended: "api_failed",
                ..Move::FAILED
            },
            Move {
                name: "a stream cut off once",
                scenarios: Some(
                    "  - steps: [{ text: Ahoy and good day., truncate: true, times: 1, USAGE }, { text: Ahoy, USAGE }]\n",
                ),
                ..Move::FINE
            },
            Move {
                name: "a stream that reports an error",
                scenarios: Some("  - steps: [{ sse_error: server_error, USAGE }]\n"),
                ended: "api_failed",
                ..Move::FAILED
            },
            Move { name: "no key", ended: "auth_failed", ..Move::FAILED },
            Move {
                name: "a wrong key",
                scenarios: Some("  - steps: [{ error: 401, message: Incorrect API key provided }]\n"),
                ended: "auth_failed",
                ..Move::FAILED
            },
        ],
    );
}
