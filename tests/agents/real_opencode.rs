//! The whole pipeline with the real opencode, its model played by the script gateway.

use crate::common::moves::{Move, SKILL, play};
use crate::common::{Project, Ran, opencode, path_with};
use serde_json::Value;

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [opencode], timeout: 120s }
gates: { pass_rate: 0 }
cases:
  - id: greets
    prompt: \"Greet \\\"Alice\\\", 1.50 times.\"
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice$' }
      - file: { path: env.txt, matches: '(?m)^PRACTICUM_TRIAL=' }
      - tool_used: write
  - { id: reads, prompt: Read and greet., activation: must }
  - { id: sums, prompt: '42', activation: must_not }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { to: probe, steps: [{ tools: [{ name: skill, input: { name: greeter } }] }, ready] }
  - when: 'Greet \"Alice\", 1.50 times.'
    steps:
      - text: I will use the skill.
        tools: [{ name: skill, input: { name: greeter } }]
      - tools:
          - { name: write, input: { filePath: hello.txt, content: \"Ahoy, Alice\\n\" } }
          - { name: bash, input: { command: env > env.txt, description: looks } }
      - Ahoy, Alice!
  - when: Read and greet.
    steps:
      - { tools: [{ name: read, input: { filePath: '{{workspace}}/.agents/skills/greeter/SKILL.md' } }] }
      - Ahoy.
  - { when: '42', steps: ['42'] }
";

/// The summary, and a file of the trial that has one.
fn examine(more: &[&str], code: i32, file: &str) -> (Value, String) {
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", EVAL),
        ("script.yaml", SCRIPT),
    ]);
    let args = ["run", "evals", "--script", "script.yaml", "--json"];
    let mut command = project.practicum(&[&args, more].concat());
    command.env("PATH", path_with(&opencode())).env("ANTHROPIC_API_KEY", "sk-of-the-user");
    let summary = Ran::of(command.output().expect("practicum starts")).exits(code).json();
    let mut trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let file = trials.find_map(|trial| std::fs::read_to_string(trial.path().join(file)).ok());
    (summary, file.expect("the file of a trial"))
}

/// Each start of it costs seconds of a processor, so that one run has several cases.
#[test]
fn a_skill_fires_and_what_is_done_is_seen() {
    let (summary, env) = examine(&[], 0, "files/env.txt");
    assert_eq!(summary["probes"][0]["fired"], true, "{}", summary["probes"]);
    let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [2, 0, 1, 0, 0], "{}", summary["activation"]);
    let greets = &summary["cases"][0];
    assert_eq!(greets["passed"], 1, "{greets}");
    assert!(!env.contains("sk-of-the-user"), "{env}");
}

/// Its stream has no list of skills; what it answers to a call of one that is not there has, with
/// the one of its own that the model is not told of.
#[test]
fn without_the_skill_there_is_none() {
    // A baseline alone has no gate.
    let (summary, stream) = examine(&["--arm", "without", "--case", "greets"], 0, "transcript.jsonl");
    assert_eq!(summary["cases"][0]["fired"]["yes"], 0, "{}", summary["cases"][0]);
    assert!(
        stream.contains(r#"Skill \"greeter\" not found. Available skills: customize-opencode""#),
        "{stream}"
    );
}

#[test]
fn what_the_model_and_its_api_do_is_seen() {
    play(
        "opencode",
        &opencode(),
        &[
            Move {
                name: "two turns in one session, with a model of the other vendor",
                turns: &["Greet Alice.", "And Bob."],
                // The second answer is the second step only where the first is in its conversation.
                scenarios: Some(
                    "  - { when: Greet Alice, steps: [{ text: First., USAGE }, { text: 'Ahoy, Bob!', USAGE }] }\n",
                ),
                flags: &["--model", "openai/gpt-5"],
                tokens: [200, 20],
                ..Move::FINE
            },
            Move {
                // It asks again five times, each later than before where it is not told when.
                name: "529 for ever",
                scenarios: Some("  - steps: [{ error: 529, headers: { retry-after: '0' } }]\n"),
                ended: "api_failed",
                ..Move::FAILED
            },
            Move {
                name: "silence after the headers",
                scenarios: Some("  - steps: [{ hang: 10m }]\n"),
                flags: &["--timeout", "6s"],
                ended: "timed_out",
                ..Move::FAILED
            },
        ],
    );
}
