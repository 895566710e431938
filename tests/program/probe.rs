//! Before activation is measured, each agent is told once to use each skill.

use crate::common::{Project, Ran};
use serde_json::{Value, json};

const DESCRIPTION: &str = "description: Greets people by name. Use when asked to greet someone.";

fn skill(front: &str) -> String {
    format!("---\nname: greeter\n{front}\n---\n\nSay ahoy.\n")
}

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [builtin], repeat: 2 }
cases:
  - { id: greets, prompt: Greet Alice., activation: must }
  - { id: sums, prompt: What is one and one?, activation: must_not }
";

/// What the model does when it is asked, and when it is only probed.
fn script(probed: &str) -> String {
    format!(
        "practicum_script: 1
scenarios:
  - when: Greet Alice
    steps: [{{ tools: [{{ name: Skill, input: {{ skill: greeter }} }}] }}, Ahoy.]
  - {{ when: one and one, steps: ['2'] }}
{probed}"
    )
}

const TAKES_IT_UP: &str = "  - to: probe
    when: Use the skill greeter
    steps:
      - { tools: [{ name: Skill, input: { skill: '{{skill}}' } }], usage: { input: 100, output: 10 } }
      - { text: ready, usage: { input: 100, output: 10 } }
";

fn project(front: &str, probed: &str) -> Project {
    Project::new(&[
        ("greeter/SKILL.md", &skill(front)),
        ("evals/e.practicum.yaml", EVAL),
        ("script.yaml", &script(probed)),
    ])
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "evals", "--script", "script.yaml", "--json"], more].concat())
}

#[test]
fn a_probe_that_fires_comes_first_and_is_paid_for() {
    let project = project(DESCRIPTION, TAKES_IT_UP);
    let ran = run(&project, &["--timeout", "30s"]).exits(0);
    assert!(ran.stderr.contains("1 probe before, one per agent and skill"), "{}", ran.stderr);
    assert!(ran.stderr.contains("probe of greeter with builtin: it can be activated"), "{}", ran.stderr);
    let summary = ran.json();
    let probe = &summary["probes"][0];
    assert_eq!((&probe["fired"], &probe["agent"]), (&json!(true), &json!("builtin")));
    assert_eq!(probe["usage"]["input"], 200);
    assert_eq!(summary["totals"]["trials"], 4, "a probe is no trial");
    let trials =
        project.run(&["run", "evals", "--script", "script.yaml", "--json", "--no-probe", "--no-cache"]);
    let without = trials.exits(0).json();
    assert_eq!(without["probes"], Value::Null);
    let tokens = |of: &Value| of["tokens"]["input"].as_u64().expect("tokens");
    assert_eq!(tokens(&summary), tokens(&without) + 200);

    let run = project.path().join(".practicum/runs").join(summary["run"].as_str().expect("an id"));
    let folder = run.join("probes").join(probe["trial"].as_str().expect("a name"));
    let transcript = std::fs::read_to_string(folder.join("transcript.jsonl")).expect("what it did is kept");
    assert!(transcript.contains("\"skill\""), "{transcript}");
    let events = std::fs::read_to_string(run.join("events.jsonl")).expect("events");
    let at = |word: &str| events.find(word).unwrap_or_else(|| panic!("{word} in {events}"));
    assert!(at("\"probe_finished\"") < at("\"trial_started\""));
}

/// What is to be measured cannot be, so that nothing is spent on it.
#[track_caller]
fn stops(ran: Ran, kind: &str) -> Value {
    let ran = ran.exits(3);
    let summary = ran.json();
    let probe = summary["probes"][0].clone();
    assert_eq!((&probe["fired"], &probe["trouble"]["kind"]), (&json!(false), &json!(kind)), "{probe}");
    assert_eq!(summary["totals"]["trials"], 0, "{summary}");
    assert_eq!(summary["activation"]["fn"], Value::Null, "no zeros are measured");
    let why = probe["trouble"]["why"].as_str().expect("a sentence");
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    probe
}

#[test]
fn a_probe_that_does_not_fire_stops_the_run_and_says_why() {
    let kept = format!("{DESCRIPTION}\ndisable-model-invocation: true");
    for (kind, front, steps, more) in [
        ("not_taken", DESCRIPTION, "[I would rather not.]", &[][..]),
        ("name_rejected", DESCRIPTION, "[{ tools: [{ name: Skill, input: { skill: greter } }] }, Oh.]", &[]),
        ("kept_from_model", &kept, "[{ tools: [{ name: Skill, input: { skill: greeter } }] }, Oh.]", &[]),
        ("description_missing", "license: MIT", "[I know of none.]", &[]),
        ("not_logged_in", DESCRIPTION, "[{ error: 401 }]", &[]),
        ("rate_limited", DESCRIPTION, "[{ error: 429, headers: { retry-after: '0' } }]", &[]),
        ("api_failed", DESCRIPTION, "[{ error: 529, headers: { retry-after: '0' } }]", &[]),
        ("timed_out", DESCRIPTION, "[{ hang: 10m }]", &["--timeout", "1s"]),
    ] {
        let project = project(front, &format!("  - {{ to: probe, steps: {steps} }}\n"));
        stops(run(&project, more), kind);
        let text = project.run(&["show"]).exits(0).stdout;
        assert!(text.contains("INCOMPLETE") && text.contains("probe of greeter with builtin"), "{text}");
        let measured = run(&project, &["--no-probe", "--timeout", "30s"]);
        assert_eq!(measured.json()["totals"]["trials"], 4, "{kind}: --no-probe measures all the same");
    }
}

/// An agent of one's own, which does as it is told by its script.
fn own(agent: &str, decoder: &str, name: &str) -> Project {
    let project = Project::new(&[
        ("greeter/SKILL.md", &skill(DESCRIPTION).replace("name: greeter", &format!("name: {name}"))),
        ("evals/e.practicum.yaml", &EVAL.replace("builtin", "own")),
        ("agent.sh", agent),
    ]);
    let script = project.path().join("agent.sh");
    let toml = format!(
        "[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"{decoder}\"\n",
        script.display()
    );
    project.write("practicum.toml", &toml);
    project
}

const LISTS_NOTHING: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["doctor"]}'
echo '{"type":"text","text":"done"}'
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn what_the_agent_itself_says_is_the_diagnosis() {
    let denied = format!("cat {}/tests/fixtures/streams/claude-j-tooly.jsonl", env!("CARGO_MANIFEST_DIR"));
    for (kind, agent, decoder, name) in [
        ("not_visible", LISTS_NOTHING, "practicum-jsonl", "greeter"),
        ("permission_denied", &denied, "claude-stream-json", "tooly"),
        ("not_seen", "echo ready", "text", "greeter"),
        ("agent_failed", "exit 7", "practicum-jsonl", "greeter"),
    ] {
        stops(own(agent, decoder, name).run(&["run", "evals", "--json", "--sandbox", "off"]), kind);
    }
}

#[test]
fn a_script_without_a_probe_has_none() {
    let project = project(DESCRIPTION, "");
    let ran = run(&project, &[]).exits(0);
    assert!(!ran.stderr.contains("probe"), "{}", ran.stderr);
    assert_eq!(ran.json()["probes"], Value::Null);
}

#[test]
fn what_was_measured_already_needs_no_probe() {
    let project = project(DESCRIPTION, TAKES_IT_UP);
    run(&project, &[]).exits(0);
    let again = run(&project, &[]).exits(0);
    assert!(again.stderr.contains("4 reuse, 0 run") && !again.stderr.contains("probe"), "{}", again.stderr);
    assert_eq!(run(&project, &["--repeat", "3"]).exits(0).json()["probes"][0]["fired"], true);
}

#[test]
fn a_run_that_is_gone_on_with_probes_only_what_did_not_fire() {
    let project = project(DESCRIPTION, "  - { to: probe, steps: [No.] }\n");
    let stopped = stops(run(&project, &[]), "not_taken");
    project.write("script.yaml", &script(TAKES_IT_UP));
    let resumed = project.run(&["run", "--resume", "--json"]).exits(0).json();
    assert_eq!((&resumed["totals"]["passed"], &resumed["probes"][0]["fired"]), (&json!(4), &json!(true)));
    assert_eq!(resumed["probes"][0]["trial"], stopped["trial"]);
    let log = || std::fs::read_to_string(project.only_run().join("events.jsonl")).expect("events");
    let probed = || log().matches("\"probe_finished\"").count();
    assert_eq!(probed(), 2);
    let twice = project.run(&["run", "--resume", "--no-cache", "--json"]).exits(0).json();
    assert_eq!(probed(), 2, "it fired, and is not asked again");
    assert_eq!(twice["tokens"], resumed["tokens"], "and what it took still counts");
}

#[test]
fn commands_that_run_evals_for_a_purpose_of_their_own_stop_too() {
    let project = project(DESCRIPTION, "  - { to: probe, steps: [No.] }\n");
    let ran = project.run(&["noise", "evals", "--script", "script.yaml"]).exits(3);
    assert!(ran.stderr.contains("error: probe of greeter with builtin"), "{}", ran.stderr);
}

#[test]
fn whether_to_probe_is_a_setting_like_others() {
    let project = project(DESCRIPTION, TAKES_IT_UP);
    let row = |ran: Ran| {
        let lines = ran.exits(0).stdout;
        let line = lines.lines().find(|line| line.trim_start().starts_with("probe ")).expect("a row");
        line.split_whitespace().map(str::to_owned).collect::<Vec<String>>().join(" ")
    };
    assert_eq!(row(run(&project, &["--explain"])), "probe true default");
    assert_eq!(row(run(&project, &["--explain", "--no-probe"])), "probe false flag");
    project.write("practicum.toml", "probe = false\n");
    assert!(!run(&project, &[]).exits(0).stderr.contains("probe"));
}

/// An artifact case says nothing of activation, and a skill's own command leaves nothing to decide.
#[test]
fn only_what_measures_activation_is_probed() {
    let project = project(DESCRIPTION, "  - { to: probe, steps: [No.] }\n");
    let eval = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [builtin], arms: [with, without] }
cases:
  - { id: greets, prompt: Greet Alice., checks: [{ contains: Ahoy }] }
";
    project.write("evals/e.practicum.yaml", eval);
    let ran = run(&project, &[]).exits(0);
    assert!(!ran.stderr.contains("probe"), "{}", ran.stderr);
}
