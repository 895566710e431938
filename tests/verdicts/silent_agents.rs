//! An agent that ended without a word and without an action, in suites about activation.

use crate::common::{Project, Ran};

/// Ends at once if the prompt says "silent"; else it says what it was asked.
const AGENT: &str = r#"
skill=$(ls .agents/skills 2>/dev/null | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
case "$1" in *silent*) ;; *) echo "{\"type\":\"text\",\"text\":\"$1\"}" ;; esac
case "$1" in *fire*) echo "{\"type\":\"skill\",\"name\":\"$skill\"}" ;; esac
echo '{"type":"end","ending":"finished"}'
"#;

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    project
        .write("skills/gull/SKILL.md", "---\nname: gull\ndescription: Speaks like a gull.\n---\n\nkee-ow\n");
    project.write("agent.sh", AGENT);
    let agent = project.path().join("agent.sh");
    let toml = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        agent.display()
    );
    project.write("practicum.toml", &toml);
    project
}

fn run(project: &Project, more: &[&str]) -> Ran {
    let words = ["run", "--agent", "own", "--no-probe", "--no-cache", "--skill", "skills/gull"];
    project.run(&[&words[..], more].concat())
}

#[test]
fn a_dead_agent_does_not_pass_the_cases_in_which_a_skill_must_stay_inactive() {
    let native = "practicum: 1\nname: n\nskill: ../skills/gull\nworkspace: empty\ncases:\n  - { id: a, prompt: silent 1, checks: [{ activation: must_not }] }\n";
    let with_more = native.replace("must_not }]", "must_not }, { not_contains: secret }]");
    let rates = native.replace("cases:", "gates: { all_cases_pass: 0, accuracy: 0.9 }\ncases:");
    let skill_test = r#"{"name": "s", "runs_per_case": 2, "skills": [{"name": "gull", "plugin": "p", "test_cases": []}], "negative_cases": [{"prompt": "silent 1", "expectation": "should_not_activate"}]}"#;
    for (file, text) in [
        ("evals/n.practicum.yaml", native),
        ("evals/n.practicum.yaml", &with_more),
        ("evals/n.practicum.yaml", &rates),
        ("evals/gull/triggers.json", r#"[{"query": "silent 1", "should_trigger": false}]"#),
        ("skills/gull/evals/eval_set.json", r#"[{"query": "silent 1", "should_trigger": false}]"#),
        (
            "skills/gull/evals/evals.json",
            r#"{"skill_name": "gull", "evals": [{"id": 1, "prompt": "silent 1", "should_trigger": false}]}"#,
        ),
        ("suites/s.json", skill_test),
    ] {
        let project = project(&[(file, text)]);
        let ran = run(&project, &[file]);
        assert_eq!(ran.code, 3, "{file}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("proves nothing"), "{file}: {}", ran.stdout);
        // The same case with an agent that answers.
        project.write(file, &text.replace("silent", "loud"));
        let ran = run(&project, &[file]);
        assert_eq!(ran.code, 0, "{file}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_dead_agent_is_no_true_negative() {
    let cases = "practicum: 1\nname: n\nskill: ../skills/gull\nworkspace: empty\ngates: { all_cases_pass: 0, accuracy: 0.5 }\ncases:\n  - { id: must, prompt: fire, checks: [{ activation: must }] }\n  - { id: not, prompt: silent, checks: [{ activation: must_not }, { contains: kee }] }\n";
    let project = project(&[("evals/n.practicum.yaml", cases)]);
    let ran = run(&project, &["evals", "--json"]);
    assert_eq!(ran.code, 3, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("\"true_negative\""), "{}", ran.stdout);
    // An activation that is missing stays a failure of the skill: nothing here is green.
    let missing = cases.replace("prompt: fire", "prompt: silent");
    project.write("evals/n.practicum.yaml", &missing);
    assert_ne!(run(&project, &["evals"]).code, 0);
}
