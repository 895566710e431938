//! The whole pipeline with the real Gemini CLI, its model played by the script gateway.

use crate::common::moves::SKILL;
use crate::common::{Project, Ran, gemini, path_with};

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [gemini], timeout: 180s }
gates: { pass_rate: 0 }
cases:
  - id: greets
    prompt: --Greet \"Alice\".
    activation: must
    checks:
      - contains: Ahoy
      - file: { path: hello.txt, matches: '^Ahoy, Alice' }
      - tool_used: activate_skill
  - { id: misses, prompt: Call another skill., activation: must_not }
  - { id: sums, prompt: '42', activation: must_not }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - { to: probe, steps: [{ tools: [{ name: activate_skill, input: { name: greeter } }] }, ready] }
  - when: '--Greet \"Alice\".'
    steps:
      - { text: I will use the skill., tools: [{ name: activate_skill, input: { name: greeter } }] }
      - { tools: [{ name: run_shell_command, input: { command: 'echo Ahoy, Alice > hello.txt' } }] }
      - Ahoy, Alice!
  - when: Call another skill.
    steps:
      - { tools: [{ name: activate_skill, input: { name: nope } }] }
      - There is none.
  - { when: '42', steps: [{ text: '42', usage: { input: 70, output: 8, cache_read: 30 } }] }
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
    command.env("PATH", path_with(&gemini())).env("GEMINI_API_KEY", "key-of-the-user");
    let ran = Ran::of(command.output().expect("practicum starts"));
    let about = format!("{}\n{}", ran.stderr, ran.stdout);
    let summary = ran.exits(0).json();
    assert_eq!(summary["probes"][0]["fired"], true, "{about}");
    let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [1, 0, 2, 0, 0], "{about}");
    assert_eq!(summary["cases"][0]["passed"], 1, "{about}");
}
