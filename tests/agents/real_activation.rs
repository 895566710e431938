//! Whether a skill was activated, in scripted runs of the real Claude Code, Codex and opencode.
//!
//! What else the model and its API do to them stands in `real_claude.rs`, `real_codex.rs` and
//! `real_opencode.rs`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::moves::SKILL;
use crate::common::{Project, Ran, claude, codex, opencode, path_with};
use serde_json::{Value, json};

/// One thing that the model does.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// It takes a skill up in the way that its agent has for that.
    TakeUp(&'static str),
    /// It opens the SKILL.md of a skill like any other file.
    Read(&'static str),
    Shell,
    Say,
    /// The API is silent for longer than the time limit.
    Hang,
    Overloaded,
}
use Act::{Hang, Overloaded, Read, Say, Shell, TakeUp};

/// What the model does, what is wanted of the greeter, whether it fired, and what the run counts as.
type Row = (&'static str, &'static [Act], &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("skill first", &[TakeUp("greeter"), Say], "must", "yes", "tp"),
    ("shell first, then skill", &[Shell, TakeUp("greeter"), Say], "must", "yes", "tp"),
    ("rival first, then skill", &[TakeUp("waver"), TakeUp("greeter"), Say], "must", "yes", "tp"),
    ("skill first, then rival", &[TakeUp("greeter"), TakeUp("waver"), Say], "must", "yes", "tp"),
    ("read of SKILL.md", &[Read("greeter"), Say], "must", "yes", "tp"),
    ("wrong skill", &[TakeUp("waver"), Say], "must", "no", "fn"),
    ("a skill that is not there", &[TakeUp("greter"), Say], "must", "no", "fn"),
    ("never", &[Say], "must", "no", "fn"),
    ("rightly never", &[Shell, Say], "must_not", "no", "tn"),
    ("wrongly", &[TakeUp("greeter"), Say], "must_not", "yes", "fp"),
    ("either", &[Say], "either", "no", "acceptable"),
    // Whatever it would still have done, nobody knows.
    ("time-out", &[Hang], "must_not", "unknown", "error"),
    ("time-out after the shell", &[Shell, Hang], "must_not", "unknown", "error"),
    ("time-out after a rival", &[TakeUp("waver"), Hang], "must", "unknown", "error"),
    ("time-out after the skill", &[TakeUp("greeter"), Hang], "must", "unknown", "error"),
    ("529", &[Overloaded], "must_not", "unknown", "error"),
    ("529 after a rival", &[TakeUp("waver"), Overloaded], "must", "unknown", "error"),
    ("529 after the skill", &[TakeUp("greeter"), Overloaded], "must_not", "yes", "fp"),
];

const RIVAL: &str = "---\nname: waver\ndescription: Waves at people. Use when asked to wave.\n---\n\nWave.\n";

fn all_rows() -> Vec<&'static Row> {
    ROWS.iter().collect()
}

/// One call of a tool.
fn tool(name: &str, input: Value) -> Value {
    json!({"tools": [{"name": name, "input": input}]})
}

fn claude_step(act: Act) -> Value {
    match act {
        TakeUp(skill) => tool("Skill", json!({"skill": skill})),
        Read(skill) => {
            tool("Read", json!({"file_path": format!("{{{{workspace}}}}/.claude/skills/{skill}/SKILL.md")}))
        }
        Shell => tool("Bash", json!({"command": "ls -a", "description": "looks"})),
        Say | Hang | Overloaded => said(act),
    }
}

/// It has no tool for skills: it reads them with its shell.
fn codex_step(act: Act) -> Value {
    let shell = |command: String| tool("exec_command", json!({"cmd": command}));
    match act {
        TakeUp(skill) => shell(format!("cat .agents/skills/{skill}/SKILL.md")),
        Read(skill) => shell(format!("sed -n 1,40p {{{{workspace}}}}/.agents/skills/{skill}/SKILL.md")),
        Shell => shell("ls -a".to_owned()),
        Say | Hang | Overloaded => said(act),
    }
}

fn opencode_step(act: Act) -> Value {
    match act {
        TakeUp(skill) => tool("skill", json!({"name": skill})),
        Read(skill) => {
            tool("read", json!({"filePath": format!("{{{{workspace}}}}/.agents/skills/{skill}/SKILL.md")}))
        }
        Shell => tool("bash", json!({"command": "ls -a", "description": "looks"})),
        Say | Hang | Overloaded => said(act),
    }
}

fn said(act: Act) -> Value {
    match act {
        Hang => json!({"hang": "10m"}),
        Overloaded => json!({"error": 529, "headers": {"retry-after": "0"}}),
        Say | TakeUp(_) | Read(_) | Shell => json!("Ahoy, Alice!"),
    }
}

/// One case for each row, each answered by its own scenario.
fn project(agent: &str, rows: &[&Row], patience: &str, step: fn(Act) -> Value) -> Project {
    let prompt = |at: usize| format!("Greet Alice, number {at}.");
    let cases: Vec<Value> = rows
        .iter()
        .enumerate()
        .map(|(at, (name, acts, activation, ..))| {
            let hangs = acts.iter().any(|act| matches!(act, Hang));
            let timeout = if hangs { patience } else { "60s" };
            json!({"id": name, "prompt": prompt(at), "activation": activation, "timeout": timeout})
        })
        .collect();
    let scenario = |(at, (name, acts, ..)): (usize, &&Row)| {
        let steps: Vec<Value> = acts.iter().map(|act| step(*act)).collect();
        json!({"name": name, "when": prompt(at), "steps": steps})
    };
    let mut scenarios: Vec<Value> = rows.iter().enumerate().map(scenario).collect();
    scenarios.push(json!({"to": "probe", "steps": [step(TakeUp("greeter")), "ready"]}));
    let eval = json!({
        "practicum": 1, "skill": "../greeter", "workspace": "empty",
        "run": {"agents": [agent]}, "gates": {"pass_rate": 0}, "cases": cases,
    });
    Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("waver/SKILL.md", RIVAL),
        ("evals/e.practicum.yaml", &eval.to_string()),
        ("script.yaml", &json!({"practicum_script": 1, "scenarios": scenarios}).to_string()),
    ])
}

fn examine(project: &Project, program: &Path, more: &[&str]) -> Ran {
    let args = ["run", "evals", "--script", "script.yaml", "--json"];
    let mut command = project.practicum(&[&args[..], more].concat());
    command.env("PATH", path_with(program));
    Ran::of(command.output().expect("practicum starts"))
}

/// The only key of these under which one is counted.
fn one<'k>(counts: &Value, keys: &[&'k str]) -> Vec<&'k str> {
    keys.iter().copied().filter(|key| counts[key] == 1).collect()
}

/// With this much patience for an API that is silent: more than the agent takes to get there.
fn every_move_has_its_state(
    agent: &str,
    program: &Path,
    rows: &[&Row],
    patience: &str,
    step: fn(Act) -> Value,
) {
    let project = project(agent, rows, patience, step);
    let summary = examine(&project, program, &["--with-skill", "waver", "-j", "4"]).exits(3).json();
    assert_eq!(summary["probes"][0]["fired"], true, "{agent}: {}", summary["probes"]);
    for (case, (name, acts, _, fired, outcome)) in
        summary["cases"].as_array().expect("cases").iter().zip(rows)
    {
        let about = format!("{agent}, {name}: {case}");
        assert_eq!(case["id"], *name);
        assert_eq!(one(&case["fired"], &["yes", "no", "unknown"]), [*fired], "{about}");
        let ended = match acts.last() {
            Some(Hang) => "timed_out",
            Some(Overloaded) => "api_failed",
            Some(Say | TakeUp(_) | Read(_) | Shell) | None => "finished",
        };
        assert_eq!(case["endings"][ended], 1, "{about}");
        assert_eq!(case["not_scored"] == 1, *outcome == "error", "{about}");
    }
    for outcome in ["tp", "fp", "tn", "fn", "acceptable", "error"] {
        let expected = rows.iter().filter(|(.., counted)| *counted == outcome).count();
        assert_eq!(
            summary["activation"][outcome], expected,
            "{agent}: {outcome} of {}",
            summary["activation"]
        );
    }
    let took_up_rival = |row: &&&Row| {
        row.1.iter().any(|act| matches!(act, TakeUp("waver"))) && row.2 == "must" && row.4 != "error"
    };
    let runs = rows.iter().filter(took_up_rival).count();
    let routed = json!({"expected": "greeter", "fired": "waver", "runs": runs});
    let routes = summary["activation"]["routing"].as_array().expect("routes");
    assert!(routes.contains(&routed), "{agent}: {routes:?}");
}

#[test]
fn every_move_of_claude_code_has_its_state() {
    every_move_has_its_state("claude", &claude(), &all_rows(), "5s", claude_step);
}

#[test]
fn every_move_of_codex_has_its_state() {
    every_move_has_its_state("codex", &codex(), &all_rows(), "5s", codex_step);
}

/// It takes seconds of a processor to start. What it does when the API answers is in the scenarios of
/// `tests/real_activation`, so most rows here are about an API that does not.
#[test]
fn every_move_of_opencode_has_its_state() {
    let answered = |row: &&Row| matches!(row.1.last(), Some(Say)) && row.0 != "wrong skill";
    let rows: Vec<&Row> = all_rows().into_iter().filter(|row| !answered(row)).collect();
    every_move_has_its_state("opencode", &opencode(), &rows, "30s", opencode_step);
}

/// Claude Code with a plugin in its workspace: its skills have the plugin's name before their own.
#[test]
fn a_skill_of_a_plugin_fires_under_the_plugins_name() {
    let eval = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [plugged], timeout: 60s }
cases:
  - { id: greets, prompt: Greet Alice., overlays: [../overlay], activation: must }
  - { id: sums, prompt: What is one and one?, overlays: [../overlay], activation: must_not }
";
    let script = "\
practicum_script: 1
scenarios:
  - { when: Use the skill, steps: [{ tools: [{ name: Skill, input: { skill: 'harbour:greeter' } }] }, ready] }
  - { when: Greet Alice, steps: [{ tools: [{ name: Skill, input: { skill: 'harbour:greeter' } }] }, Ahoy.] }
  - { when: one and one, steps: ['2'] }
";
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("overlay/harbour/.claude-plugin/plugin.json", r#"{"name": "harbour", "version": "1.0.0"}"#),
        ("evals/e.practicum.yaml", eval),
        ("script.yaml", script),
    ]);
    let mut gateway = project
        .practicum(&["gateway", "--script", "script.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a gateway");
    let mut first = String::new();
    let out = gateway.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut first).expect("a line");
    let line: Value = serde_json::from_str(&first).expect("JSON");
    let toml = format!(
        "[agents.plugged]
command = [\"{}\", \"-p\", \"{{prompt}}\", \"--output-format\", \"stream-json\", \"--verbose\", \
         \"--dangerously-skip-permissions\", \"--setting-sources\", \"project\", \"--strict-mcp-config\", \
         \"--plugin-dir\", \"{{workspace}}/harbour\"]
decoder = \"claude-stream-json\"
skills_dir = \"harbour/skills\"
env = {{ IS_SANDBOX = \"1\", CLAUDE_CODE_TMPDIR = \"{{tmp}}\", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\", \
         ANTHROPIC_API_KEY = \"none\", ANTHROPIC_BASE_URL = {} }}
",
        claude().display(),
        line["base_url"]
    );
    project.write("practicum.toml", &toml);
    let ran = project.run(&["run", "evals", "--json", "--sandbox", "off"]);
    gateway.kill().expect("killed");
    gateway.wait().expect("gone");
    let summary = ran.exits(0).json();
    assert_eq!((&summary["activation"]["tp"], &summary["activation"]["tn"]), (&json!(1), &json!(1)));
    assert_eq!(summary["probes"][0]["fired"], true);
    assert_eq!(summary["activation"]["skills"][0]["name"], "greeter");
}

/// Codex with its skills in a plugin's folder: it tells the model of `harbour:greeter`, and the model
/// reads the file of `greeter`. A rival of the same plugin is none.
#[test]
fn a_plugins_skill_that_codex_reads_fires_under_its_own_name() {
    let eval = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [codex], timeout: 60s }
gates: { pass_rate: 0 }
cases:
  - id: greets
    prompt: Greet Alice.
    overlays: [../overlay]
    activation: must
    checks: [{ contains: 'harbour:greeter', on: { file: told.txt } }]
  - { id: waves, prompt: Wave at Alice., overlays: [../overlay], activation: must }
  - { id: sums, prompt: What is one and one?, overlays: [../overlay], activation: must_not }
";
    // A bracket keeps the command from finding itself in what Codex wrote down.
    let message = r#"grep -ohr 'harbour:[g]reeter' \"$CODEX_HOME/sessions\" | head -1 > told.txt"#;
    let read = "cat .agents/skills/greeter/SKILL.md";
    let script = format!(
        r#"practicum_script: 1
scenarios:
  - {{ to: probe, steps: [{{ tools: [{{ name: exec_command, input: {{ cmd: "{read}" }} }}] }}, ready] }}
  - when: Greet Alice
    steps:
      - {{ tools: [{{ name: exec_command, input: {{ cmd: "{message}" }} }}] }}
      - {{ tools: [{{ name: exec_command, input: {{ cmd: "{read}" }} }}] }}
      - Ahoy.
  - when: Wave at
    steps: [{{ tools: [{{ name: exec_command, input: {{ cmd: "cat .agents/skills/waver/SKILL.md" }} }}] }}, Waves.]
  - {{ when: one and one, steps: ['2'] }}
"#
    );
    let project = Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("waver/SKILL.md", RIVAL),
        ("overlay/.agents/.codex-plugin/plugin.json", r#"{"name": "harbour", "version": "1.0.0"}"#),
        ("evals/e.practicum.yaml", eval),
        ("script.yaml", &script),
    ]);
    let summary = examine(&project, &codex(), &["--with-skill", "waver"]).exits(0).json();
    assert_eq!(summary["probes"][0]["fired"], true, "{}", summary["probes"]);
    let counted = ["tp", "fp", "tn", "fn", "error"].map(|outcome| &summary["activation"][outcome]);
    assert_eq!(counted, [1, 0, 1, 1, 0], "{}", summary["activation"]);
    assert_eq!(summary["cases"][0]["passed"], 1, "told of it without its plugin: {}", summary["cases"][0]);
    assert_eq!(summary["activation"]["skills"][0]["name"], "greeter");
}

/// Descriptions beyond the limit of an agent do not reach the model, so the model cannot know these skills.
#[test]
fn a_description_that_an_agent_cuts_is_found_before_anything_is_measured() {
    let long = "It greets people in the harbour, on the pier and on every ferry that there is. ".repeat(60);
    let long = format!("---\nname: greeter\ndescription: {long}\n---\n\nSay ahoy.\n");
    for (agent, program, step) in
        [("claude", claude(), claude_step as fn(Act) -> Value), ("codex", codex(), codex_step)]
    {
        let project = project(agent, &all_rows(), "5s", step);
        let script =
            json!({"practicum_script": 1, "scenarios": [{"to": "probe", "steps": ["I know of none."]}]});
        project.write("script.yaml", &script.to_string());
        for (skill, kind) in [(long.as_str(), "description_cut"), (SKILL, "not_taken")] {
            project.write("greeter/SKILL.md", skill);
            let summary = examine(&project, &program, &[]).exits(3).json();
            assert_eq!(summary["probes"][0]["trouble"]["kind"], kind, "{agent}: {}", summary["probes"]);
            assert_eq!(summary["totals"]["trials"], 0);
        }
    }
}
