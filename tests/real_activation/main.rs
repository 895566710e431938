//! Whether a skill was activated, as it is decided for the real Claude Code, Codex and opencode, and cross-checked
//! with what their models were sent.
//!
//! Each agent runs all its scenarios in one run, behind a gateway that records every request. Three answers are
//! compared: the recorded requests (is the skill's text in one?), the decision of the run, which has the gateway's
//! record, and the decision from the agent's stream and session files alone. A decision may be "unknown"; it may not
//! be wrong.

#[path = "../common/mod.rs"]
mod common;

mod evidence;
mod scenarios;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use common::{Project, Ran, claude, codex, opencode, path_with};
use evidence::{RecordedRequests, decide_without_gateway};
use scenarios::{Agent, Scenario, all_scenarios};
use serde_json::{Value, json};

/// The lines of the skill's text. None of them has a word of another file or of a prompt.
const BODY: [&str; 3] = [
    "Look the person up in the crew list before you say a single word to them.",
    "Answer with a hearty ahoy, the full name of the person and the number of their berth.",
    "Close with the state of the tide in the harbour, as the last bulletin has it.",
];

const RIVAL: &str = "---\nname: waver\ndescription: Waves at people. Use when asked to wave.\n---\n\n\
    Raise the right arm above the shoulder and move the hand three times from side to side.\n";

/// A decision about one scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Yes,
    No,
    Unknown,
}

/// How many decisions were right, unknown and wrong.
#[derive(Debug, Default)]
struct Counts {
    right: usize,
    unknown: Vec<String>,
    wrong: Vec<String>,
}

impl Counts {
    fn add(&mut self, name: &str, decided: Decision, truth: Option<bool>) {
        match (decided, truth) {
            (Decision::Unknown, _) => self.unknown.push(name.to_owned()),
            // A part of the text is enough for a "yes", and "unknown" is as good.
            (Decision::Yes, Some(true) | None) | (Decision::No, Some(false)) => self.right += 1,
            _ => self.wrong.push(format!("{name}: {decided:?}, and the requests say {truth:?}")),
        }
    }

    fn row(&self) -> String {
        format!("{:>5} {:>7} {:>5}", self.right, self.unknown.len(), self.wrong.len())
    }
}

/// A scripted model that serves until it is dropped.
struct ScriptedModel {
    process: Child,
    addresses: Vec<Value>,
}

impl ScriptedModel {
    fn start(project: &Project) -> Self {
        let mut command = project.practicum(&["gateway", "--script", "script.yaml"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a gateway");
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines().take(3);
        let addresses =
            lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect();
        Self { process, addresses }
    }

    fn address(&self, api: &str) -> &str {
        let found = self.addresses.iter().find(|address| address["api"] == api).expect("an address");
        found["base_url"].as_str().expect("text")
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn project(agent: Agent, scenarios: &[Scenario]) -> Project {
    let skill = format!(
        "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\n{}\n",
        BODY.join("\n")
    );
    let cases: Vec<Value> = scenarios
        .iter()
        .map(|scenario| json!({"id": scenario.id(), "prompt": scenario.prompt(), "activation": "either"}))
        .collect();
    let eval = json!({
        "practicum": 1, "skill": "../greeter", "workspace": "empty", "gates": {"pass_rate": 0},
        "run": {"agents": [agent.name()], "timeout": "120s"}, "cases": cases,
    });
    let script: Vec<Value> = scenarios.iter().flat_map(Scenario::script).collect();
    Project::new(&[
        ("greeter/SKILL.md", &skill),
        ("greeter/references/phrases.md", "Ahoy and welcome aboard.\n"),
        ("waver/SKILL.md", RIVAL),
        ("evals/e.practicum.yaml", &eval.to_string()),
        ("script.yaml", &json!({"practicum_script": 1, "scenarios": script}).to_string()),
    ])
}

fn run(project: &Project, program: &Path) -> Ran {
    let model = ScriptedModel::start(project);
    let args = [
        "run",
        "evals",
        "--record",
        "requests.jsonl",
        "--with-skill",
        "waver",
        "--no-probe",
        "--json",
        "--keep-workspaces",
        "-j",
        "2",
    ];
    let mut command = project.practicum(&args);
    command
        .env("PATH", path_with(program))
        .env("ANTHROPIC_BASE_URL", model.address("anthropic-messages"))
        .env("ANTHROPIC_API_KEY", "none")
        .env("OPENAI_BASE_URL", model.address("openai-responses"))
        .env("OPENAI_API_KEY", "none");
    Ran::of(command.output().expect("practicum starts"))
}

/// Finds the folder in which the run left its workspaces.
fn kept_workspaces(ran: &Ran) -> PathBuf {
    let line = ran.stderr.lines().find_map(|line| line.strip_prefix("workspaces kept in "));
    PathBuf::from(line.unwrap_or_else(|| panic!("no workspaces:\n{}", ran.stderr)))
}

fn decision_of_run(summary: &Value, scenario: &Scenario) -> Decision {
    let cases = summary["cases"].as_array().expect("cases");
    let case = cases.iter().find(|case| case["id"] == scenario.id()).expect("a case");
    assert_eq!(case["endings"]["finished"], 1, "{}: {case}", scenario.name);
    match (&case["fired"]["yes"], &case["fired"]["no"]) {
        (yes, _) if *yes == 1 => Decision::Yes,
        (_, no) if *no == 1 => Decision::No,
        _ => Decision::Unknown,
    }
}

/// Runs all scenarios of one agent, and compares every decision with the requests.
fn every_scenario_is_decided(agent: Agent, program: &Path) {
    let scenarios = all_scenarios(agent);
    assert!(scenarios.len() >= 30, "{} scenarios", scenarios.len());
    let project = project(agent, &scenarios);
    let ran = run(&project, program);
    let workspaces = kept_workspaces(&ran);
    let summary = ran.json();
    let requests = RecordedRequests::read(&project.path().join("requests.jsonl"));

    let (mut with_gateway, mut without) = (Counts::default(), Counts::default());
    for scenario in &scenarios {
        let truth = requests.show_text(scenario);
        if let Some(expected) = scenario.expected {
            assert_eq!(
                truth,
                Some(expected),
                "{} {}: the scenario is not what it says",
                agent.name(),
                scenario.name
            );
        }
        let decided = decision_of_run(&summary, scenario);
        with_gateway.add(scenario.name, decided, truth);
        // A record of all requests leaves nothing open but what a part of the text means.
        assert!(decided != Decision::Unknown || truth.is_none(), "{} {}", agent.name(), scenario.name);
        let alone = decide_without_gateway(agent, &project, scenario, &workspaces);
        without.add(scenario.name, alone, truth);
    }
    std::fs::remove_dir_all(&workspaces).expect("removed");
    println!("{:<9} {:<22} right unknown wrong", "agent", "evidence");
    println!("{:<9} {:<22} {}", agent.name(), "requests and stream", with_gateway.row());
    println!("{:<9} {:<22} {}", agent.name(), "stream and sessions", without.row());
    assert_eq!((&with_gateway.wrong, &without.wrong), (&Vec::new(), &Vec::new()), "{}", agent.name());
    // A stream alone may not show what a subagent did, and the part of a text is open.
    assert!(
        without.unknown.len() <= agent.hidden_scenarios() + with_gateway.unknown.len(),
        "{}: {without:?}",
        agent.name()
    );
}

#[test]
fn every_scenario_of_claude_code_is_decided() {
    every_scenario_is_decided(Agent::Claude, &claude());
}

#[test]
fn every_scenario_of_codex_is_decided() {
    every_scenario_is_decided(Agent::Codex, &codex());
}

#[test]
fn every_scenario_of_opencode_is_decided() {
    every_scenario_is_decided(Agent::Opencode, &opencode());
}
