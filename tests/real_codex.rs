//! The whole pipeline with the real Codex, its model played by the script gateway.

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Project, Ran, codex, path_with};
use serde_json::Value;

const SKILL: &str = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";

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
fn a_plain_answer() {
    let project = project(&EVAL.replace("ID", "plain"), "      - text: Ahoy, Alice!\n");
    let summary = examine(&project, &[]).exits(0).json();
    let case = &summary["cases"][0];
    assert_eq!(case["agent"], "codex");
    assert_eq!((&case["passed"], &case["endings"]["finished"]), (&1.into(), &1.into()));
    assert_eq!((&case["fired"]["no"], &case["fired"]["yes"]), (&1.into(), &0.into()));
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
fn two_turns_in_one_session_count_their_tokens_once() {
    let eval = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [codex], timeout: 60s }
cases:
  - id: talks
    prompt: [Greet Alice., And Bob?]
    checks:
      - contains: Ahoy, Bob!
";
    let usage = "usage: { input: 100, output: 10 }";
    let steps = format!(
        "      - {{ text: 'Ahoy, Alice!', {usage} }}\n  - when: And Bob\n    steps:\n      - {{ text: 'Ahoy, Bob!', {usage} }}\n"
    );
    let project = project(eval, &steps);
    let summary = examine(&project, &[]).exits(0).json();
    assert_eq!(summary["cases"][0]["passed"], 1);
    let transcript = std::fs::read_to_string(trial(&project).join("transcript.jsonl")).expect("a transcript");
    let threads: Vec<Value> = transcript
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["type"] == "thread.started")
        .map(|event| event["thread_id"].clone())
        .collect();
    assert!(threads.len() == 2 && threads[0] == threads[1], "{threads:?}");
    let tokens = &summary["tokens"];
    assert_eq!((&tokens["input"], &tokens["output"]), (&200.into(), &20.into()), "{summary}");
}

#[test]
fn what_the_api_refuses_is_not_a_failed_eval() {
    for (status, ending) in [(529, "api_failed"), (429, "rate_limited"), (401, "auth_failed")] {
        let project = project(&EVAL.replace("ID", "refused"), &format!("      - error: {status}\n"));
        let started = Instant::now();
        let summary = examine(&project, &[]).exits(3).json();
        assert_eq!(summary["cases"][0]["endings"][ending], 1, "{status}: {}", summary["cases"][0]);
        assert_eq!(summary["totals"]["failed"], 0, "{status}");
        assert!(started.elapsed() < Duration::from_secs(30), "{status} took {:?}", started.elapsed());
    }
}

#[test]
fn a_hung_run_is_unknown_and_leaves_no_process_behind() {
    let steps = "      - tools: [{ name: exec_command, input: { cmd: '(sleep 600 &) ; sleep 601' } }]
      - hang: 10m
";
    for (id, steps) in [("hangs-in-shell", steps), ("hangs-in-model", "      - hang: 10m\n")] {
        let project = project(&EVAL.replace("ID", id), steps);
        let started = Instant::now();
        let summary = examine(&project, &["--timeout", "3s"]).exits(3).json();
        assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
        let case = &summary["cases"][0];
        assert_eq!(
            (&case["endings"]["timed_out"], &case["fired"]["unknown"]),
            (&1.into(), &1.into()),
            "{id}"
        );
        assert_eq!(project.processes(), [""; 0], "{id}");
    }
}
