//! The whole pipeline with the real goose, its model played by the script gateway.

use crate::common::moves::{Move, SKILL, play};
use crate::common::{Project, Ran, goose, path_with};

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [goose], timeout: 120s }
gates: { pass_rate: 0 }
cases:
  - id: greets
    prompt: --Greet \"Alice\".
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - file: { path: env.txt, matches: '(?m)^PRACTICUM_TRIAL=' }
      - tool_used: load_skill
  - { id: supports, prompt: Load a file of the skill., activation: must }
  - { id: prints, prompt: Print and greet., activation: must }
  - { id: fails, prompt: Print in vain., activation: must_not }
  - { id: misses, prompt: Call another skill., activation: must_not }
  - { id: sums, prompt: '42', activation: must_not }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { to: probe, steps: [{ tools: [{ name: load_skill, input: { name: greeter } }] }, ready] }
  - when: '--Greet \"Alice\".'
    steps:
      - { tools: [{ name: load_skill, input: { name: greeter } }] }
      - { tools: [{ name: shell, input: { command: 'env > env.txt; echo Ahoy, Alice > hello.txt' } }] }
      - Ahoy, Alice!
  - when: Load a file of the skill.
    steps:
      - { tools: [{ name: load_skill, input: { name: greeter/references/x.md } }] }
      - Ahoy.
  - when: Print and greet.
    steps:
      - { tools: [{ name: shell, input: { command: cat .agents/skills/greeter/SKILL.md } }] }
      - Ahoy.
  - when: Print in vain.
    steps:
      - { tools: [{ name: shell, input: { command: cat .agents/skills/nobody/SKILL.md } }] }
      - There is none.
  - when: Call another skill.
    steps:
      - { tools: [{ name: load_skill, input: { name: nope } }] }
      - There is none.
  - { when: '42', steps: ['42'] }
";

#[test]
fn a_skill_is_activated_and_what_is_done_is_seen() {
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("greeter/references/x.md", "Ahoy.\n"),
        ("evals/g.practicum.yaml", EVAL),
        ("script.yaml", SCRIPT),
    ]);
    let mut command = project.practicum(&["run", "evals", "--script", "script.yaml", "--json"]);
    command.env("PATH", path_with(&goose())).env("OPENAI_API_KEY", "sk-of-the-user");
    let summary = Ran::of(command.output().expect("practicum starts")).exits(0).json();
    assert_eq!(summary["probes"][0]["fired"], true, "{}", summary["probes"]);
    let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [3, 0, 3, 0, 0], "{}", summary["cases"]);
    assert_eq!(summary["cases"][0]["passed"], 1, "{}", summary["cases"][0]);
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten();
    let env = trials.filter_map(|trial| std::fs::read_to_string(trial.path().join("files/env.txt")).ok());
    let env: Vec<String> = env.collect();
    assert!(!env.is_empty() && env.iter().all(|env| !env.contains("sk-of-the-user")), "{env:?}");
}

/// It exits with 0 after every error of the API.
#[test]
fn what_the_model_and_its_api_do_is_seen() {
    play(
        "goose",
        &goose(),
        &[
            Move {
                name: "two turns in one session",
                turns: &["Greet Alice.", "And Bob."],
                scenarios: Some(
                    "  - { when: Greet Alice, steps: [{ text: First., USAGE }, { text: 'Ahoy, Bob!', USAGE }] }\n",
                ),
                tokens: [200, 20],
                ..Move::FINE
            },
            Move {
                name: "a model that is named",
                scenarios: Some("  - { when: Greet Alice, steps: [{ text: 'Ahoy!', USAGE }] }\n"),
                flags: &["--model", "gpt-4.1-mini"],
                ..Move::FINE
            },
            Move {
                name: "a refused login",
                scenarios: Some("  - steps: [{ error: 401 }]\n"),
                ended: "auth_failed",
                ..Move::FAILED
            },
            Move {
                name: "a bad request",
                scenarios: Some("  - steps: [{ error: 400 }]\n"),
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
