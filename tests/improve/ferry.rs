//! A skill with two planted defects, its evals, and those who advise on it.

use serde_json::{Value, json};

use super::common::Project;

pub const SKILL: &str =
    "---\nname: ferry\ndescription: Plans ferry trips.\n---\n\nGreeting: none.\nHarbour: unsaid.\n";

/// What each case wants in the plan that the agent makes of its skill.
pub const CASES: [(&str, &str); 6] = [
    ("quay", "Greeting: ahoy."),
    ("pier", "Greeting: ahoy."),
    ("mole", "Harbour: named."),
    ("dock", "Harbour: named."),
    ("buoy", "Greeting"),
    ("reef", "Harbour"),
];

pub const IMPROVE: [&str; 5] = ["improve", "ferry", "--sandbox", "off", "--json"];

/// For loops that need not accept anything: with one run of each case, nothing can be confirmed.
pub const ONCE: [&str; 7] = ["improve", "ferry", "--sandbox", "off", "--json", "--repeat", "1"];

pub fn usual_cases() -> Vec<(&'static str, String)> {
    CASES.map(|(id, wanted)| (id, wanted.to_owned())).to_vec()
}

/// An eval file; what begins with ! must not be in the plan.
pub fn evals(cases: &[(&str, String)]) -> Value {
    let cases: Vec<Value> = cases
        .iter()
        .map(|(id, wanted)| {
            let check = match wanted.strip_prefix('!') {
                Some(unwanted) => json!({"id": "plan", "not_contains": unwanted, "on": {"file": "plan.txt"}}),
                None => json!({"id": "plan", "contains": wanted, "on": {"file": "plan.txt"}}),
            };
            json!({"id": id, "prompt": format!("Plan trip {id}."), "checks": [check]})
        })
        .collect();
    json!({
        "practicum": 1, "name": "trips", "skill": "..", "workspace": "empty",
        "run": {"agents": ["builtin"], "script": "script.yaml"}, "cases": cases,
    })
}

pub fn edit(before: &str, after: &str) -> Value {
    let checks: Vec<String> = CASES.iter().map(|(id, _)| format!("{id}/plan")).collect();
    json!({"file": null, "area": "body", "before": before, "after": after, "reasoning": "Users miss it.", "checks": checks})
}

pub fn suggestion(before: &str, after: &str) -> Value {
    json!({"area": "body", "before": before, "after": after, "reasoning": "Users miss it."})
}

pub fn proposing(name: &str, when: &str, edits: &[Value]) -> Value {
    json!({"name": name, "to": "judge", "when": {"regex": when}, "steps": [
        {"tools": [{"name": "propose_edits", "input": {"edits": edits}}]}
    ]})
}

pub fn analysing(name: &str, when: &str, suggestions: &[Value]) -> Value {
    json!({"name": name, "to": "judge", "when": {"regex": when}, "steps": [
        {"tools": [{"name": "report_analysis", "input": {
            "strengths": ["It greets."], "weaknesses": ["It did not greet."], "suggestions": suggestions,
        }}]}
    ]})
}

/// Advisers who mend one defect after the other.
pub fn diligent() -> Vec<Value> {
    vec![
        proposing(
            "greet",
            "(?s)Greeting: none.*Propose edits",
            &[edit("Greeting: none.", "Greeting: ahoy.")],
        ),
        analysing(
            "name it",
            "(?s)Harbour: unsaid.*Analyse why v1 did better than v0",
            &[suggestion("Harbour: unsaid.", "Harbour: named."), suggestion("nowhere to be found", "x")],
        ),
        analysing("nothing is left", "Analyse why v2 did better than v1", &[]),
        proposing("name it anew", "Propose edits", &[edit("Harbour: unsaid.", "Harbour: named.")]),
    ]
}

/// The agent copies its skill's text into a plan; what advisers say is given.
pub fn script(advisers: &[Value]) -> Value {
    let dimensions = [
        "description_quality",
        "convention_compliance",
        "type_specific_quality",
        "token_efficiency",
        "content_value",
    ];
    let scores: serde_json::Map<String, Value> =
        dimensions.iter().map(|name| ((*name).to_owned(), json!({"A": 6, "B": 5}))).collect();
    let mut scenarios = vec![
        json!({"name": "blind", "to": "judge", "when": "Which of the two outputs", "steps": [
            {"tools": [{"name": "report_comparison", "input": {"winner": "A", "reasoning": "It reads better.", "quote": "Done.", "scores": scores}}]}
        ]}),
    ];
    scenarios.extend(advisers.iter().cloned());
    scenarios.push(json!({"name": "agent", "when": "Plan trip", "steps": [
        {"tools": [{"name": "Skill", "input": {"skill": "ferry"}}]},
        {"tools": [{"name": "Bash", "input": {"command": "tail -n +6 .claude/skills/ferry/SKILL.md > plan.txt"}}]},
        "Done.",
    ]}));
    json!({"practicum_script": 1, "scenarios": scenarios})
}

pub fn project(cases: &[(&str, String)], advisers: &[Value]) -> Project {
    Project::new(&[
        ("ferry/SKILL.md", SKILL),
        ("ferry/evals/trips.practicum.yaml", &evals(cases).to_string()),
        ("ferry/evals/script.yaml", &script(advisers).to_string()),
    ])
}

pub fn skill(project: &Project) -> String {
    std::fs::read_to_string(project.path().join("ferry/SKILL.md")).expect("the skill")
}

pub fn read(project: &Project, path: &str) -> Value {
    let bytes = std::fs::read(project.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_slice(&bytes).expect("JSON")
}

#[track_caller]
pub fn fits(name: &str, document: &Value) {
    let schema = practicum::schema::schema(name).expect("a schema");
    if let Err(error) = jsonschema::draft202012::validate(schema, document) {
        panic!("{name}: {error} at {}\n{document:#}", error.instance_path());
    }
}
