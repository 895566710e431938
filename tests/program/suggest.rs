//! Edits proposed for a skill that failed, followed only where that is safe.

use crate::common::Project;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: gull\ndescription: Speaks.\n---\n\nSay hello.\n";

const AGENT: &str = r#"
skill=$(ls .agents/skills 2>/dev/null | head -1)
said=$(tail -1 ".agents/skills/$skill/SKILL.md")
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
echo "{\"type\":\"text\",\"text\":\"$said\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const EVALS: &str = "practicum: 1\nskill: ..\nworkspace: empty\nrun: { agents: [own] }\ngates: { pass_rate: 0 }\ncases:\n  - { id: speaks, prompt: speak, checks: [{ id: cry, contains: kee-ow }] }\n";

fn edit(file: Value, before: &str, after: &str, check: &str) -> Value {
    json!({"file": file, "area": "body", "before": before, "after": after, "reasoning": "Gulls say kee-ow.", "checks": [check]})
}

fn project(edits: &[Value]) -> Project {
    let script = json!({"practicum_script": 1, "scenarios": [{"name": "proposer", "to": "judge", "when": "Propose edits", "steps": [
        {"tools": [{"name": "propose_edits", "input": {"edits": edits}}]}
    ]}]});
    let project = Project::new(&[
        ("gull/SKILL.md", SKILL),
        ("gull/evals/e.practicum.yaml", EVALS),
        ("agent.sh", AGENT),
        ("proposer.yaml", &script.to_string()),
        ("other/SKILL.md", &SKILL.replace("gull", "other")),
    ]);
    let path = project.path().join("agent.sh");
    let toml = format!(
        "[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        path.display()
    );
    project.write("practicum.toml", &toml);
    project.run(&["run", "gull", "--sandbox", "off"]).exits(0);
    project
}

fn read(project: &Project, path: &str) -> String {
    std::fs::read_to_string(project.path().join(path)).expect("a file")
}

#[test]
fn an_edit_is_shown_and_applied_when_asked_for() {
    let mut proposed = edit(Value::Null, "Say hello.", "Say kee-ow.", "speaks/cry");
    proposed["checks"] = json!(["speaks/cry", "made/up"]);
    let project = project(&[proposed]);
    let args = ["suggest", "gull", "--script", "proposer.yaml"];
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("-Say hello.\n+Say kee-ow.\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("(for speaks/cry)"), "{}", ran.stdout);
    assert!(ran.stderr.contains("nothing was changed"), "{}", ran.stderr);
    assert_eq!(read(&project, "gull/SKILL.md"), SKILL);
    let edits = project.run(&[&args[..], &["--apply", "--json"]].concat()).exits(0).json();
    let schema = practicum::schema::schema("suggest").expect("a schema");
    assert!(jsonschema::draft202012::is_valid(schema, &edits), "{edits:#}");
    assert_eq!((&edits["applied"], &edits["kept_as"]), (&json!(true), &json!(0)));
    assert_eq!(read(&project, "gull/SKILL.md"), SKILL.replace("hello", "kee-ow"));
    project.run(&["restore", "gull", "v0"]).exits(0);
    assert_eq!(read(&project, "gull/SKILL.md"), SKILL);
    let ran = project.run(&[&args[..], &["--apply", "--run", "latest"]].concat()).exits(0);
    assert!(ran.stdout.contains("practicum restore gull v0 brings back"), "{}", ran.stdout);
    project.run(&["run", "gull", "--sandbox", "off"]).exits(0);
    let ran = project.run(&args).exits(0);
    assert!(ran.stderr.contains("nothing failed"), "{}", ran.stderr);
    let edits = project.run(&[&args[..], &["--json"]].concat()).exits(0).json();
    assert!(jsonschema::draft202012::is_valid(schema, &edits), "{edits:#}");
    assert_eq!((&edits["edits"], &edits["failed"]), (&json!([]), &json!([])));
}

#[test]
fn a_malicious_proposer_changes_nothing_and_is_reported() {
    let project = project(&[
        edit(json!("evals/e.practicum.yaml"), "kee-ow", "hello", "speaks/cry"),
        edit(json!("../other/SKILL.md"), "Say hello.", "Say nothing.", "speaks/cry"),
        edit(json!("/etc/hostname"), "Say hello.", "x", "speaks/cry"),
        edit(Value::Null, "contains: kee-ow", "contains: hello", "speaks/cry"),
        edit(Value::Null, "---\nname: gull\ndescription: Speaks.\n---\n", "", "speaks/cry"),
        edit(Value::Null, "Say hello.", "Say kee-ow.", "another/check"),
    ]);
    let before: Vec<String> =
        ["gull/evals/e.practicum.yaml", "other/SKILL.md"].map(|path| read(&project, path)).into();
    let edits = project.run(&["suggest", "gull", "--script", "proposer.yaml", "--apply", "--json"]).exits(1);
    let edits = edits.json();
    let why: Vec<&str> = edits["refused"]
        .as_array()
        .expect("refused")
        .iter()
        .map(|refused| refused["why"].as_str().expect("why"))
        .collect();
    let expected = [
        "not a file of the skill",
        "not a file of the skill",
        "not a file of the skill",
        "not in the skill",
        "frontmatter",
        "no check that failed",
    ];
    assert_eq!(why.len(), expected.len());
    for (why, part) in why.iter().zip(expected) {
        assert!(why.contains(part), "{why}");
    }
    assert_eq!((&edits["applied"], &edits["diff"]), (&json!(false), &json!("")));
    assert_eq!(read(&project, "gull/SKILL.md"), SKILL);
    let after: Vec<String> =
        ["gull/evals/e.practicum.yaml", "other/SKILL.md"].map(|path| read(&project, path)).into();
    assert_eq!(before, after);
    assert!(!project.path().join("gull-workspace").exists());
}

#[test]
fn who_cannot_answer_or_is_asked_about_another_skill_is_told() {
    let project = project(&[]);
    project.write("mute.yaml", "practicum_script: 1\ndefault: No.\n");
    let ran = project.run(&["suggest", "gull", "--script", "mute.yaml"]).exits(3);
    assert!(ran.stderr.contains("no usable answer"), "{}", ran.stderr);
    let ran = project.run(&["suggest", "other", "--script", "proposer.yaml"]).exits(2);
    assert!(ran.stderr.contains("is not about"), "{}", ran.stderr);
}

#[test]
fn a_called_skill_is_not_taken_for_the_latest_run() {
    let project = project(&[edit(Value::Null, "Say hello.", "Say kee-ow.", "speaks/cry")]);
    project.run(&["try", "--skill", "gull", "--args", "x", "--agent", "own", "--sandbox", "off"]);
    let audited = project.run(&["audit", "--last", "1", "--json"]).exits(0).json();
    assert_eq!(audited["checks"], 1, "{audited:#}");
    let ran = project.run(&["suggest", "gull", "--script", "proposer.yaml"]).exits(0);
    assert!(ran.stdout.contains("+Say kee-ow."), "{}\n{}", ran.stdout, ran.stderr);
}
