//! Sessions that agents recorded of real work: graded by an eval file, and turned into cases.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Project, Ran};

const SKILL: &str = "---\nname: greeter\ndescription: Greets people in the style of a harbour. Use when asked to greet \
                     somebody.\n---\n\nLook the person up in the crew list first.\nAnswer with a hearty ahoy and the \
                     name.\nClose with the state of the tide.\n";

const EVAL: &str = "practicum: 1\nskill: ../greeter\nworkspace: empty\ncases:
  - id: claude
    prompt: [Greet Alice., And Bob.]
    activation: must
    checks:
      - { id: says, contains: 'Ahoy, Bob' }
      - { id: said, contains: 'High tide', on: all }
      - { id: shell, tool_used: { name: shell, args: { command: '*exit 3' } } }
      - { id: order, tool_order: [skill, write, shell] }
      - { id: no-read, tool_not_used: read }
      - { id: cheap, limit: { tokens: 100000, turns: 4, tool_calls: 3, seconds: 60 } }
  - id: codex
    prompt: [Rollout greet Alice., Codex bob.]
    activation: must
    checks:
      - { id: says, contains: 'Ahoy, Bob' }
      - { id: shell, tool_used: { name: shell, args: { command: 'cat *' } } }
  - id: quiet
    prompt: [Greet Alice., And Bob.]
    activation: must_not
    checks: [{ id: says, contains: 'Ahoy, Bob' }]
  - id: files
    prompt: Wait.
    checks:
      - { id: says, contains: 'Ahoy, Bob' }
      - { id: none, files: { path: '*.txt', exists: false } }
      - { id: few, limit: { files_changed: 5 } }
      - { id: absent, file: { path: a.txt, exists: false } }
      - { id: in-file, not_contains: x, on: { file: hello.txt } }
  - id: asked
    prompt: Greet Bob.
    activation: must
  - id: judged
    prompt: Judge.
    checks: [{ id: kind, judge: The agent is friendly. }]\n";

fn project() -> Project {
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/g.practicum.yaml", EVAL)])
}

fn session(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    folder.join(format!("{name}.jsonl")).to_string_lossy().into_owned()
}

fn grade(project: &Project, session: &str, more: &[&str]) -> Ran {
    let args = ["grade", "--session", session, "--spec", "evals/g.practicum.yaml", "--json"];
    project.run(&[&args, more].concat())
}

/// The verdict of each check, by its id.
fn verdicts(graded: &Value) -> Value {
    let results = graded["results"].as_array().expect("results").iter();
    Value::Object(
        results.map(|one| (one["id"].as_str().expect("an id").to_owned(), one["verdict"].clone())).collect(),
    )
}

#[test]
fn a_session_answers_checks_of_text_tools_activation_and_cost() {
    let project = project();
    let claude = session("claude-two-turns-compacted");
    let graded = grade(&project, &claude, &["--case", "claude"]).exits(0).json();
    let all = ["activation", "says", "said", "shell", "order", "no-read", "cheap"];
    let pass: serde_json::Map<String, Value> =
        all.map(|id| (id.to_owned(), json!("pass"))).into_iter().collect();
    assert_eq!(verdicts(&graded), Value::Object(pass), "{graded:#}");
    let about = &graded["session"];
    assert_eq!((&about["format"], &about["activated"]), (&json!("claude-code"), &json!(["greeter"])));
    assert_eq!(
        (&about["turns"], &about["tool_calls"], &about["usage"]["output"]),
        (&json!(2), &json!(3), &json!(72))
    );
    assert!(graded["notes"].to_string().contains("compacted"), "{graded:#}");

    // Without a name, the cases with the session's prompts are taken.
    let graded = grade(&project, &session("codex-two-turns-compacted"), &[]).exits(0).json();
    assert_eq!(verdicts(&graded), json!({"activation": "pass", "says": "pass", "shell": "pass"}));
    assert_eq!(graded["session"]["agent_version"], "0.166.0");
    let graded = grade(&project, &claude, &["--case", "quiet"]).exits(1).json();
    assert_eq!(verdicts(&graded), json!({"activation": "fail", "says": "pass"}));
    let text =
        project.run(&["grade", "--session", &claude, "--spec", "evals/g.practicum.yaml", "--case", "claude"]);
    let text = text.exits(0);
    assert!(text.stderr.contains(
        "session of Claude Code 2.1.325, claude-opus-5-5: 2 turns, 3 tool calls, activated greeter"
    ));
}

#[test]
fn what_a_session_cannot_show_is_not_scored() {
    let project = project();
    let claude = session("claude-two-turns-compacted");
    let graded = grade(&project, &claude, &["--case", "files"]).exits(3).json();
    let open = "not_scored";
    assert_eq!(
        verdicts(&graded),
        json!({"says": "pass", "none": open, "few": open, "absent": open, "in-file": open}),
        "{graded:#}"
    );
    // The user named the skill, so nothing shows whether the agent would have found it.
    let command = session("claude-command");
    let graded = grade(&project, &command, &["--case", "asked"]).exits(3).json();
    assert_eq!(verdicts(&graded), json!({"activation": open}));
    for name in ["claude-interrupted", "claude-api-error", "codex-interrupted", "codex-api-error"] {
        let graded = grade(&project, &session(name), &["--case", "codex"]).exits(3).json();
        assert_eq!(verdicts(&graded), json!({"activation": open, "says": open, "shell": open}), "{name}");
    }
    let whole = std::fs::read_to_string(&claude).expect("a session");
    project.write("garbled.jsonl", &whole.replacen("{\"type\": \"cost-state\"", "{\"type\": \"cost-st", 1));
    let graded = grade(&project, "garbled.jsonl", &["--case", "claude"]).exits(3).json();
    assert!(graded["results"].to_string().contains("cannot be read"), "{graded:#}");
    let graded = grade(&project, &claude, &["--case", "judged"]).exits(3).json();
    assert_eq!(verdicts(&graded), json!({"kind": open}));
}

#[test]
fn a_file_that_is_no_session_is_refused() {
    let project = project();
    project.write("answer.md", "Ahoy, Bob!\n");
    let ran = grade(&project, "answer.md", &[]).exits(2);
    assert!(
        ran.stderr.contains("neither a session log of Claude Code or Codex nor an ATIF trajectory"),
        "{}",
        ran.stderr
    );
    grade(&project, "evals", &[]).exits(2);
    grade(&project, "none.jsonl", &[]).exits(2);
    project.run(&["grade", "--session", "answer.md"]).exits(2);
    project.run(&["grade", "--session", "a", "--output", "b", "--spec", "evals/g.practicum.yaml"]).exits(2);
}

#[test]
fn a_session_of_fifty_megabytes_is_graded() {
    let project = project();
    let text = std::fs::read_to_string(session("codex-two-turns-compacted")).expect("a session");
    let padding =
        json!({"type": "event_msg", "payload": {"type": "agent_reasoning", "text": "x".repeat(1 << 20)}});
    let (first, rest) = text.split_once('\n').expect("lines");
    let long = format!("{first}\n{}{rest}", format!("{padding}\n").repeat(50));
    project.write("long.jsonl", &long);
    let graded = grade(&project, "long.jsonl", &[]).exits(0).json();
    assert_eq!(verdicts(&graded)["says"], "pass");
}

#[test]
fn an_exported_trajectory_gets_the_same_verdicts() {
    let eval = "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [builtin] }\ncases:
  - id: greets
    prompt: Greet Alice.
    checks:
      - { contains: Ahoy, id: says }
      - { contains: Bob, id: both, required: false }
      - { tool_used: write, id: writes }
      - { tool_used: { name: read, min: 2 }, id: reads, required: false }
      - { transcript: 'hello.txt', id: transcript }
      - { limit: { tool_calls: 2, tokens: 1000000 }, id: cheap }\n";
    let script = "practicum_script: 1\nscenarios:\n  - when: Greet Alice\n    steps:
      - text: I will.
        tools: [{ name: Write, input: { file_path: hello.txt, content: Ahoy } }]
      - tools: [{ name: Read, input: { file_path: missing.txt } }]
      - Ahoy, Alice!\n";
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", eval),
        ("script.yaml", script),
    ]);
    project.run(&["run", "evals", "--script", "script.yaml", "--arm", "with"]).exits(0);
    project.run(&["export", "latest", "--format", "atif", "-o", "one.json"]).exits(0);
    let exported: Value =
        serde_json::from_slice(&std::fs::read(project.path().join("one.json")).expect("a file"))
            .expect("JSON");
    let graded = grade(&project, "one.json", &[]).exits(0).json();
    let checks = exported["extra"]["checks"].as_array().expect("checks").iter();
    let before: Value = checks
        .map(|one| (one["id"].as_str().expect("an id").to_owned(), one["verdict"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    assert_eq!(verdicts(&graded), before, "{graded:#}");
    let why = |list: &Value| -> Vec<Value> {
        list.as_array().expect("a list").iter().map(|one| one["why"].clone()).collect()
    };
    assert_eq!(why(&graded["results"]), why(&exported["extra"]["checks"]));
    assert_eq!(graded["session"]["tool_calls"], 2);
}

#[test]
fn a_session_becomes_a_case_for_review() {
    let project = project();
    std::fs::remove_file(project.path().join("evals/g.practicum.yaml")).expect("removed");
    let claude = session("claude-two-turns-compacted");
    let mut command = project.practicum(&["capture", "greeter", "--session", &claude]);
    command.env("HARBOUR_TOKEN", "Ahoy, Bob!");
    let ran = Ran::of(command.output().expect("practicum starts")).exits(0);
    let [kept, case] = &ran.stdout.lines().collect::<Vec<&str>>()[..] else { panic!("{}", ran.stdout) };
    let captured: Value = serde_json::from_slice(&std::fs::read(kept).expect("a capture")).expect("JSON");
    let schema = practicum::schema::schema("capture").expect("a schema");
    assert!(jsonschema::draft202012::is_valid(schema, &captured), "{captured:#}");
    assert_eq!((&captured["asked"], &captured["passed"]), (&json!("Greet Alice.\n\nAnd Bob."), &Value::Null));
    assert!(!captured["gave"].to_string().contains("Ahoy, Bob!"), "a secret: {captured:#}");
    let text = std::fs::read_to_string(case).expect("a case");
    assert!(
        text.contains("Greet Alice.") && text.contains("activation: must") && text.contains("write"),
        "{text}"
    );
    // No run reads it before somebody has saved it under another name.
    let reviewed = "greeter/evals/reviewed.practicum.yaml";
    std::fs::rename(case, project.path().join(reviewed)).expect("renamed");
    project.run(&["check", reviewed]).exits(0);
    let graded = project.run(&["grade", "--session", &claude, "--spec", reviewed, "--json"]).exits(0).json();
    assert_eq!(verdicts(&graded), json!({"activation": "pass", "uses-write": "pass"}));
    // The second one does not replace the first.
    project.run(&["capture", "greeter", "--session", &session("codex-two-turns-compacted")]).exits(0);
    project.run(&["capture", "greeter", "--session", "nothing.jsonl"]).exits(2);
    project.run(&["capture", "greeter", "--session", &claude, "--run", "latest"]).exits(2);
}
