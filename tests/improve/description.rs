//! A description is improved by how often the skill is activated.

use std::io::BufRead;
use std::process::Stdio;

use serde_json::{Value, json};

use super::common::{self, Project};
use super::ferry::{IMPROVE, SKILL, skill};

/// Activates its skill if it is asked to, or if a word of the request stands in the description.
const LISTENER: &str = r#"
skill=$(ls .agents/skills | head -1)
description=$(grep '^description:' ".agents/skills/$skill/SKILL.md")
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
for word in $1; do
  case "$description Use" in *"$word"*) echo "{\"type\":\"skill\",\"name\":\"$skill\"}"; break ;; esac
done
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn a_description_is_tuned_by_when_the_skill_fires() {
    let cases: Vec<Value> = [
        ("one", "across", "must"),
        ("two", "bay", "must"),
        ("three", "bay across", "must"),
        ("four", "ferry", "must"),
        ("five", "bread", "must_not"),
        ("six", "dough", "must_not"),
    ]
    .map(|(id, prompt, activation)| json!({"id": id, "prompt": prompt, "activation": activation}))
    .to_vec();
    let mut all = cases.clone();
    all.push(json!({"id": "work", "prompt": "ferry work", "checks": [{"contains": "never said"}]}));
    let suite = json!({
        "practicum": 1, "name": "triggers", "skill": "..", "workspace": "empty",
        "run": {"agents": ["listener"]}, "cases": all,
    });
    let propose = json!({"practicum_script": 1, "scenarios": [{"name": "describe", "when": "Propose a description", "steps": [
        {"tools": [{"name": "propose_description", "input": {"description": "Plans: ferry trips across the bay.", "reasoning": "Users say where."}}]}
    ]}]});
    let project = Project::new(&[
        ("ferry/SKILL.md", SKILL),
        ("ferry/evals/triggers.practicum.yaml", &suite.to_string()),
        ("describe.yaml", &propose.to_string()),
        ("listener.sh", LISTENER),
    ]);
    let path = project.path().join("listener.sh");
    let toml = format!(
        "[agents.listener]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        path.display()
    );
    project.write("practicum.toml", &toml);
    // An agent of one's own knows no gateway, so only the adviser is pointed at one.
    let mut gateway = project
        .practicum(&["gateway", "--script", "describe.yaml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a gateway");
    let mut first = String::new();
    let stdout = gateway.stdout.take().expect("a pipe");
    std::io::BufReader::new(stdout).read_line(&mut first).expect("a line");
    let line: Value = serde_json::from_str(&first).expect("JSON");
    let mut command = project.practicum(&[&IMPROVE[..], &["--description-only"]].concat());
    command.env("ANTHROPIC_BASE_URL", line["base_url"].as_str().expect("a URL"));
    let improved = common::Ran::of(command.output().expect("practicum starts"));
    gateway.kill().expect("killed");
    gateway.wait().expect("gone");
    let improved = improved.exits(0).json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(1)), "{improved:#}");
    assert_eq!((&improved["goal"], &improved["baseline_pass_rate"]), (&json!("description"), &json!(0.5)));
    let expected = SKILL.replace("Plans ferry trips.", "\"Plans: ferry trips across the bay.\"");
    assert_eq!(skill(&project), expected);
}
