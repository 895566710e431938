//! Eval cases proposed for a skill, and real runs kept as examples for that.

use crate::common::Project;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: ferry\ndescription: Plans ferry trips.\n---\n\nSay when it leaves.\n";

fn case(id: &str, kind: &str, more: Value) -> Value {
    let mut case = json!({
        "id": id, "kind": kind, "prompt": format!("Please plan trip {id}."), "activation": null,
        "contains": [], "files": [], "statements": [], "why": "Users ask that.",
    });
    for (key, value) in more.as_object().expect("an object") {
        case[key] = value.clone();
    }
    case
}

fn project(cases: &[Value]) -> Project {
    let script = json!({"practicum_script": 1, "scenarios": [
        {"name": "captured", "to": "judge", "when": {"regex": "(?s)A real run.*kept in mind.*Propose 3 eval cases"}, "steps": [
            {"tools": [{"name": "propose_cases", "input": {"cases": cases}}]}
        ]},
        {"name": "agent", "when": "known trip", "steps": ["kept in mind"]},
    ]});
    Project::new(&[
        ("ferry/SKILL.md", SKILL),
        (
            "ferry/evals/e.practicum.yaml",
            "practicum: 1\nskill: ..\nworkspace: empty\nrun: { agents: [builtin], script: ../../script.yaml }\ngates: { pass_rate: 0 }\ncases:\n  - { id: known, prompt: A known trip., checks: [{ contains: noon }] }\n",
        ),
        ("script.yaml", &script.to_string()),
    ])
}

const PROPOSE: [&str; 6] = ["propose", "ferry", "--each", "3", "--script", "script.yaml"];

#[test]
fn candidates_are_sifted_and_written_for_review() {
    let project = project(&[
        case("fires", "positive", json!({"activation": "must"})),
        case("quiet", "near_miss", json!({"activation": "must_not"})),
        case("writes", "artifact", json!({"files": ["plan.md"], "contains": ["noon"]})),
        case(
            "odd",
            "edge",
            json!({"statements": ["The answer names the harbour that the request leaves out."]}),
        ),
        case("idle", "edge", json!({"contains": ["done"]})),
        case("empty", "edge", json!({})),
        case("vague", "edge", json!({"statements": ["The answer is appropriate."]})),
        case("escapes", "artifact", json!({"files": ["../../outside.md"]})),
        case("known", "positive", json!({"activation": "must"})),
        case("fires", "positive", json!({"activation": "must"})),
        case("again", "positive", json!({"activation": "must", "prompt": "a KNOWN  trip."})),
        case("positive", "positive", json!({"contains": ["noon"]})),
        case("negative", "near_miss", json!({"activation": "must"})),
        case("talks", "artifact", json!({"contains": ["noon"]})),
    ]);
    project.run(&["run", "ferry", "--sandbox", "off"]).exits(0);
    let ran = project.run(&["capture", "ferry", "--case", "kn*"]).exits(0);
    let path = ran.stdout.trim().to_owned();
    let captured: Value = serde_json::from_slice(&std::fs::read(&path).expect("a capture")).expect("JSON");
    let schema = practicum::schema::schema("capture").expect("a schema");
    assert!(jsonschema::draft202012::is_valid(schema, &captured), "{captured:#}");
    assert_eq!((&captured["asked"], &captured["passed"]), (&json!("A known trip."), &json!(false)));
    project.run(&["capture", "ferry", "--case", "none*"]).exits(2);
    project.write("barge/SKILL.md", &SKILL.replace("ferry", "barge"));
    let ran = project.run(&["capture", "barge"]).exits(2);
    assert!(ran.stderr.contains("is not about barge"), "{}", ran.stderr);

    let found = project.run(&[&PROPOSE[..], &["--json"]].concat()).exits(0).json();
    let schema = practicum::schema::schema("propose").expect("a schema");
    assert!(jsonschema::draft202012::is_valid(schema, &found), "{found:#}");
    let ids = |key: &str, id: fn(&Value) -> &Value| -> Vec<String> {
        let items = found[key].as_array().expect("a list").iter();
        items.map(|item| id(item).as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(
        ids("candidates", |item| &item["case"]["id"]),
        ["fires", "quiet", "writes", "odd"],
        "{found:#}"
    );
    let dropped = ids("dropped", |item| &item["id"]);
    assert_eq!(
        dropped,
        ["idle", "empty", "vague", "escapes", "known", "fires", "again", "positive", "negative", "talks",],
        "{found:#}"
    );
    let why = ids("dropped", |item| &item["why"]);
    let expected = [
        "does nothing",
        "",
        "appropriate",
        "",
        "name already",
        "name already",
        "request already",
        "must be activated",
        "must not be activated",
        "names no file",
    ];
    assert!(why.iter().zip(expected).all(|(why, part)| why.contains(part)), "{why:#?}");

    let file = project.path().join("ferry/evals/ferry.candidates.yaml");
    assert_eq!(found["file"], json!(file.canonicalize().expect("there")));
    let listed = project.run(&["list", "ferry", "--json"]).exits(0).json();
    assert_eq!(listed["suites"].as_array().map(Vec::len), Some(1), "no run takes candidates up");
    std::fs::rename(&file, project.path().join("ferry/evals/own.practicum.yaml")).expect("renamed");
    let checked = project.run(&["check", "ferry/evals/own.practicum.yaml", "--json"]).exits(0).json();
    assert_eq!(checked["files"][0]["cases"], 4);
}

#[test]
fn nothing_left_and_nothing_said_are_told_apart() {
    let project = project(&[case("idle", "edge", json!({"contains": ["done"]}))]);
    project.run(&["run", "ferry", "--sandbox", "off"]).exits(0);
    project.run(&["capture", "ferry"]).exits(0);
    let ran = project.run(&PROPOSE).exits(1);
    assert!(ran.stdout.contains("dropped, idle") && ran.stdout.contains("no candidate"), "{}", ran.stdout);
    project.write("mute.yaml", "practicum_script: 1\ndefault: No.\n");
    project.run(&["propose", "ferry", "--script", "mute.yaml"]).exits(3);
    project.run(&["propose", "nowhere"]).exits(2);
}
