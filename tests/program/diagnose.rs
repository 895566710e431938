//! Why a skill does not help, with the built-in agent and scripted models of four kinds.

use crate::common::Project;
use serde_json::json;

/// The cases: each prompt asks for a number, and the right answer contains the word of the skill.
fn project(script: &str) -> Project {
    let cases: String = (0..12)
        .map(|n| {
            format!("  - {{ id: case-{n}, prompt: \"question {n}\", checks: [{{ contains: heron }}] }}\n")
        })
        .collect();
    Project::new(&[
        (
            "skills/birds/SKILL.md",
            "---\nname: birds\ndescription: Names birds\n---\nAlways answer with the bird called heron, and with nothing else at all.\n",
        ),
        ("skills/birds/evals/e.practicum.yaml", &format!("practicum: 1\nworkspace: empty\ncases:\n{cases}")),
        ("script.yaml", &format!("practicum_script: 1\nscenarios:\n{script}")),
    ])
}

const GOOD: &str = "steps: [A heron.]";
const BAD: &str = "steps: [A stone.]";
const ACTIVATED: &str = "tools: [{ name: Skill, input: { skill: birds } }]";

/// Gives the script of a model: what it answers where the prompt names the skill, and elsewhere.
fn script(named: &str, plain: &str) -> String {
    format!("  - {{ when: \"Use the skill\", {named} }}\n  - {{ when: question, {plain} }}\n")
}

/// Twelve cases rule out a difference of 0.3, not one of 0.1.
const DIAGNOSE: [&str; 12] = [
    "diagnose",
    "skills/birds",
    "--agent",
    "builtin",
    "--script",
    "script.yaml",
    "--sandbox",
    "off",
    "--repeat",
    "2",
    "--margin",
    "0.3",
];

#[test]
fn each_kind_of_failure_has_its_verdict() {
    let used_well = format!("steps: [{{ {ACTIVATED} }}, A heron.]");
    let used_badly = format!("steps: [{{ {ACTIVATED} }}, A stone.]");
    for (script, blame, code) in [
        // Only naming makes the model use the skill.
        (script(&used_well, BAD), "not_found", 1),
        // The skill makes no difference, and the results are good anyway.
        (script(&used_well.replace("heron", "heron too"), GOOD), "not_helping", 1),
        // It is always used, and never of use.
        (script(&used_badly, &used_badly), "not_helping", 1),
    ] {
        let project = project(&script);
        let found = project.run(&[&DIAGNOSE[..], &["--json", "--no-probe"]].concat()).exits(code).json();
        let schema = practicum::schema::schema("diagnose").expect("a schema");
        assert!(jsonschema::draft202012::validate(schema, &found).is_ok());
        assert_eq!(found["blame"], blame, "{found:#}");
        assert_eq!(found["not_scored"], json!(0));
    }
}

/// A script cannot see the system prompt, so an agent of the project shows what its cells contain.
#[test]
fn the_cells_are_what_they_say() {
    let project = project("  - { when: question, steps: [unused] }\n");
    let at = |name: &str| project.path().join(name).display().to_string();
    // Answers well if the skill's text is in its instructions, which is so in one cell only.
    project.write(
        "agent.sh",
        "case \"$1\" in *'Always answer with the bird'*) echo heron ;; *) echo stone ;; esac\n",
    );
    project.write(
        "practicum.toml",
        &format!("[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n", at("agent.sh")),
    );
    let args = [
        "diagnose",
        "skills/birds",
        "--agent",
        "own",
        "--sandbox",
        "off",
        "--repeat",
        "2",
        "--no-probe",
        "--json",
    ];
    // A program that shows no tool calls leaves activation unknown, so the verdict is open.
    let found = project.run(&args).exits(3).json();
    let rates: Vec<_> = found["pass_rates"]
        .as_array()
        .expect("rates")
        .iter()
        .map(|rate| rate["pass_rate"]["value"].clone())
        .collect();
    assert_eq!(rates, [json!(0.0), json!(0.0), json!(0.0), json!(1.0)], "{found:#}");
    assert_eq!(found["blame"], "cannot_tell");
    let verdicts: Vec<_> = found["comparisons"]
        .as_array()
        .expect("comparisons")
        .iter()
        .map(|one| one["verdict"].clone())
        .collect();
    assert_eq!(
        verdicts,
        [json!("inconclusive"), json!("better"), json!("inconclusive"), json!("better")],
        "{found:#}"
    );
    for (more, reason) in [(&["--arm", "with"][..], "--arm"), (&["--gate", "f1=1"], "--gate")] {
        let ran = project.run(&[&["diagnose", "skills/birds"], more].concat()).exits(2);
        assert!(ran.stderr.contains(reason), "{}", ran.stderr);
    }
}
