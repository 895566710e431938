//! The whole pipeline with the real Qwen Code, its model played by the script gateway.

use crate::common::moves::SKILL;
use crate::common::{Project, Ran, path_with, qwen};

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [qwen], timeout: 180s }
gates: { pass_rate: 0 }
cases:
  - id: greets
    prompt: Greet \"Alice\".
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - tool_used: skill
  - { id: sums, prompt: '42', activation: must_not }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { to: probe, steps: [{ tools: [{ name: skill, input: { skill: greeter } }] }, ready] }
  - when: 'Greet \"Alice\".'
    steps:
      - { text: I will use the skill., tools: [{ name: skill, input: { skill: greeter } }] }
      - { tools: [{ name: run_shell_command, input: { command: 'echo Ahoy, Alice > hello.txt', is_background: false } }] }
      - Ahoy, Alice!
  - { when: '42', steps: ['42'] }
";

/// Each start costs seconds of a processor, so one run has several cases.
#[test]
fn a_skill_is_activated_and_what_is_done_is_seen() {
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", EVAL),
        ("script.yaml", SCRIPT),
    ]);
    let mut command = project.practicum(&["run", "evals", "--script", "script.yaml", "--json", "-j", "1"]);
    command.env("PATH", path_with(&qwen())).env("OPENAI_API_KEY", "sk-of-the-user");
    let summary = Ran::of(command.output().expect("practicum starts")).exits(0).json();
    assert_eq!(summary["probes"][0]["fired"], true, "{}", summary["probes"]);
    let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [1, 0, 1, 0, 0], "{}", summary["cases"]);
    assert_eq!(summary["cases"][0]["passed"], 1, "{}", summary["cases"][0]);
}
