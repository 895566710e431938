//! The whole pipeline with the real opencode, its model played by the script gateway.

mod common;

use common::moves::{Move, SKILL, play};
use common::{Project, Ran, opencode, path_with};

/// One run of several cases: each start of it costs seconds of a processor.
#[test]
fn a_skill_fires_where_it_is_and_what_is_done_is_seen() {
    let eval = "\
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
  - { id: misspells, prompt: Misspell it., activation: must }
";
    let script = "\
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
  - { when: Misspell it., steps: [{ tools: [{ name: skill, input: { name: greter } }] }, Ahoy.] }
";
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", eval),
        ("script.yaml", script),
    ]);
    let mut command = project.practicum(&["run", "evals", "--script", "script.yaml", "--json"]);
    command.env("PATH", path_with(&opencode())).env("ANTHROPIC_API_KEY", "sk-of-the-user");
    let summary = Ran::of(command.output().expect("practicum starts")).exits(0).json();

    assert_eq!(summary["probes"][0]["fired"], true, "{}", summary["probes"]);
    let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [2, 0, 1, 1, 0], "{}", summary["activation"]);
    let greets = &summary["cases"][0];
    assert_eq!(greets["passed"], 1, "{greets}");
    let env = std::fs::read_dir(project.only_run().join("trials"))
        .expect("trials")
        .flatten()
        .find_map(|trial| std::fs::read_to_string(trial.path().join("files/env.txt")).ok())
        .expect("the file of one trial");
    assert!(!env.contains("sk-of-the-user"), "{env}");
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
            Move {
                name: "a wrong key",
                scenarios: Some("  - steps: [{ error: 401, message: invalid x-api-key }]\n"),
                ended: "auth_failed",
                ..Move::FAILED
            },
        ],
    );
}
