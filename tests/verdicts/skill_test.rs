//! What users of skill-test do, with its own files.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

/// Activates its skill if the prompt says so, or asks for it by name.
const AGENT: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["gull"]}'
case "$1" in *fire* | *'Use the skill'*) echo '{"type":"skill","name":"gull"}' ;; esac
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

fn project(suite: &Value) -> Project {
    let project = Project::new(&[
        (
            "plugins/birds/skills/gull/SKILL.md",
            "---\nname: gull\ndescription: Speaks like a gull. Use it for gulls.\n---\n\nkee-ow\n",
        ),
        ("suites/birds.json", &suite.to_string()),
        ("agent.sh", AGENT),
    ]);
    let agent = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            agent.display()
        ),
    );
    project
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "suites/birds.json", "--agent", "own"], more].concat())
}

fn suite(cases: &[(&str, &str)]) -> Value {
    let cases: Vec<Value> = cases
        .iter()
        .map(|(prompt, expectation)| json!({"prompt": prompt, "expectation": expectation}))
        .collect();
    json!({"name": "birds", "runs_per_case": 2,
        "skills": [{"name": "gull", "plugin": "birds", "test_cases": cases}]})
}

const MUST: [(&str, &str); 3] =
    [("fire 1", "must_activate"), ("fire 2", "must_activate"), ("fire 3", "must_activate")];

#[test]
fn precision_without_a_case_that_must_not_activate_is_no_figure() {
    let project = project(&suite(&MUST));
    let ran = run(&project, &["--gate", "precision=0.8"]).exits(3);
    assert!(
        ran.stderr.contains("no case that must not activate the skill: precision cannot be measured"),
        "{}",
        ran.stderr
    );
    let summary = run(&project, &["--json"]).exits(0).json();
    assert_eq!(summary["activation"]["precision"]["value"], Value::Null, "{summary:#}");
    assert_eq!(summary["activation"]["recall"]["value"], 1.0);
    let with_one = [&MUST[..], &[("boats", "should_not_activate")]].concat();
    project.write("suites/birds.json", &suite(&with_one).to_string());
    let ran = run(&project, &["--gate", "precision=0.8"]).exits(0);
    assert!(
        ran.stderr.contains("only 1 case must not activate the skill: precision says little"),
        "{}",
        ran.stderr
    );
}

#[test]
fn cases_beside_skills_are_not_dropped() {
    let mut both = suite(&MUST);
    both["cases"] = json!([{"prompt": "boats", "expectation": "must_activate"}]);
    let project = project(&both);
    run(&project, &[]).exits(2);
    project.run(&["check", "suites/birds.json"]).exits(2);
}

#[test]
fn cases_in_a_misspelt_list_are_not_dropped() {
    for key in ["testcases", "acceptable_cases", "negativ_cases"] {
        for place in ["/skills/0", ""] {
            let mut suite = suite(&MUST);
            let object = suite.pointer_mut(place).expect("an object");
            object[key] = json!([{"prompt": "fire 4", "expectation": "should_not_activate"}]);
            let ran = run(&project(&suite), &[]).exits(2);
            assert!(ran.stderr.contains(key) && ran.stderr.contains("not read"), "{}", ran.stderr);
        }
    }
}

#[test]
fn an_unknown_mode_is_refused_before_another_is_run() {
    let project = project(&suite(&MUST));
    let compare = |modes: &[&str]| {
        project
            .run(&[&["compare", "suites/birds.json", "--agent", "own", "--modes"], modes].concat())
            .exits(2)
    };
    let ran = compare(&["baseline", "bogus"]);
    assert!(ran.stderr.contains("there is no mode \"bogus\""), "{}", ran.stderr);
    let ran = compare(&["baseline,smart"]);
    assert!(ran.stderr.contains("separate modes with spaces: --modes baseline smart"), "{}", ran.stderr);
    assert!(!project.path().join(".practicum/runs").exists(), "nothing was run");
}
