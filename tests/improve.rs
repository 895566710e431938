//! The loop over a skill's versions, with the builtin agent and scripted models.

mod common;

use std::io::BufRead;
use std::process::Stdio;

use common::{Project, wait_until};
use serde_json::{Value, json};

const SKILL: &str =
    "---\nname: ferry\ndescription: Plans ferry trips.\n---\n\nGreeting: none.\nHarbour: unsaid.\n";

/// What each case wants in the plan that the agent makes of its skill.
const CASES: [(&str, &str); 6] = [
    ("a", "Greeting: ahoy."),
    ("b", "Greeting: ahoy."),
    ("c", "Harbour: named."),
    ("d", "Harbour: named."),
    ("e", "Greeting"),
    ("f", "Harbour"),
];

fn evals(cases: &[(&str, String)]) -> String {
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
    .to_string()
}

fn edit(before: &str, after: &str) -> Value {
    let checks: Vec<String> = CASES.iter().map(|(id, _)| format!("{id}/plan")).collect();
    json!({"file": null, "area": "body", "before": before, "after": after, "reasoning": "Users miss it.", "checks": checks})
}

fn suggestion(before: &str, after: &str) -> Value {
    json!({"area": "body", "before": before, "after": after, "reasoning": "Users miss it."})
}

fn proposing(name: &str, when: &str, edits: &[Value]) -> Value {
    json!({"name": name, "to": "judge", "when": {"regex": when}, "steps": [
        {"delay": "50ms", "tools": [{"name": "propose_edits", "input": {"edits": edits}}]}
    ]})
}

fn analysing(name: &str, when: &str, suggestions: &[Value]) -> Value {
    json!({"name": name, "to": "judge", "when": {"regex": when}, "steps": [
        {"delay": "50ms", "tools": [{"name": "report_analysis", "input": {
            "strengths": ["It greets."], "weaknesses": ["It did not greet."], "suggestions": suggestions,
        }}]}
    ]})
}

/// The agent copies its skill's text into a plan; what advisers say is given.
fn script(advisers: &[Value]) -> String {
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
        json!({"name": "agent", "when": "Plan trip", "steps": [
            {"tools": [{"name": "Skill", "input": {"skill": "ferry"}}]},
            {"tools": [{"name": "Bash", "input": {"command": "tail -n +6 .claude/skills/ferry/SKILL.md > plan.txt"}}]},
            "Done.",
        ]}),
        json!({"name": "blind", "to": "judge", "when": "Which of the two outputs", "steps": [
            {"delay": "50ms", "tools": [{"name": "report_comparison", "input": {"winner": "A", "reasoning": "It reads better.", "scores": scores}}]}
        ]}),
    ];
    scenarios.extend(advisers.iter().cloned());
    json!({"practicum_script": 1, "scenarios": scenarios}).to_string()
}

fn diligent() -> Vec<Value> {
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
        proposing("name it anew", "Propose edits", &[edit("Harbour: unsaid.", "Harbour: named.")]),
    ]
}

fn project(cases: &[(&str, String)], advisers: &[Value]) -> Project {
    Project::new(&[
        ("ferry/SKILL.md", SKILL),
        ("ferry/evals/trips.practicum.yaml", &evals(cases)),
        ("ferry/evals/script.yaml", &script(advisers)),
    ])
}

fn usual_cases() -> Vec<(&'static str, String)> {
    CASES.map(|(id, wanted)| (id, wanted.to_owned())).to_vec()
}

const IMPROVE: [&str; 5] = ["improve", "ferry", "--sandbox", "off", "--json"];

/// Where nothing depends on how often a case runs.
const ONCE: [&str; 7] = ["improve", "ferry", "--sandbox", "off", "--json", "--repeat", "1"];

fn skill(project: &Project) -> String {
    std::fs::read_to_string(project.path().join("ferry/SKILL.md")).expect("the skill")
}

fn read(project: &Project, path: &str) -> Value {
    let bytes = std::fs::read(project.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_slice(&bytes).expect("JSON")
}

#[track_caller]
fn fits(name: &str, document: &Value) {
    let schema = practicum::schema::schema(name).expect("a schema");
    if let Err(error) = jsonschema::draft202012::validate(schema, document) {
        panic!("{name}: {error} at {}\n{document:#}", error.instance_path());
    }
}

#[test]
fn a_planted_defect_is_mended_in_two_rounds() {
    let project = project(&usual_cases(), &diligent());
    let improved = project.run(&IMPROVE).exits(0).json();
    fits("improve", &improved);
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(2)), "{improved:#}");
    assert_eq!((&improved["applied"], &improved["best_pass_rate"]), (&json!(true), &json!(1.0)));
    assert_eq!(improved["rounds"].as_array().map(Vec::len), Some(2));
    assert_eq!(improved["split"]["held_out"].as_array().map(Vec::len), Some(2));
    assert_eq!(skill(&project), SKILL.replace("none", "ahoy").replace("unsaid", "named"));
    assert_eq!(read(&project, "ferry-workspace/improve.json"), improved);

    fits("history", &read(&project, "ferry-workspace/history.json"));
    let analysis = read(&project, "ferry-workspace/rounds/1/analysis.json");
    fits("analysis", &analysis);
    assert_eq!((&analysis["winner_version"], &analysis["loser_version"]), (&json!("v1"), &json!("v0")));
    assert_eq!(analysis["suggestions"].as_array().map(Vec::len), Some(1));
    assert!(
        improved["rounds"][1]["refused"][0]["why"]
            .as_str()
            .is_some_and(|why| why.contains("not in the skill"))
    );
    let blind = read(&project, "ferry-workspace/rounds/1/blind.json");
    fits("blind", &blind);
    assert_eq!(blind["cases"].as_array().map(Vec::len), improved["split"]["tuning"].as_array().map(Vec::len));
    fits("comparison", &read(&project, "ferry-workspace/rounds/1/case-1/order-1/comparison.json"));
    fits("version-score", &read(&project, "ferry-workspace/v2/score.json"));

    let listed = project.run(&["versions", "ferry", "--json"]).exits(0).json();
    assert_eq!((&listed["best"], &listed["current_version"]), (&json!(2), &json!(2)));
    let found = project.run(&[
        "compare",
        "v0",
        "v2",
        "--blind",
        "--of",
        "ferry",
        "--script",
        "ferry/evals/script.yaml",
        "--json",
    ]);
    assert_eq!(found.exits(0).json()["ties"], 6, "versions are compared by what their runs gave");

    // It was finished, so the next loop is another, and finds nothing left to do.
    let ran = project.run(&["improve", "ferry", "--sandbox", "off"]).exits(0);
    assert!(ran.stdout.contains("too easy") && ran.stdout.contains("v2 stays"), "{}", ran.stdout);
    let forced = project.run(&[&IMPROVE[..], &["--force"]].concat()).exits(0).json();
    assert_eq!((&forced["stopped"], &forced["best"]), (&json!("flat"), &json!(2)));
}

#[test]
fn what_cannot_be_mended_ends_after_two_flat_rounds_and_v0_stays() {
    let useless = [
        proposing(
            "first",
            "(?s)Harbour: unsaid.*Propose edits",
            &[edit("Harbour: unsaid.", "Harbour: unsaid!")],
        ),
        analysing(
            "more",
            "Analyse why v0 did better than v1",
            &[suggestion("Harbour: unsaid.", "Harbour: unsaid?")],
        ),
    ];
    let project = project(&usual_cases(), &useless);
    let improved = project.run(&ONCE).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("flat"), &json!(0)), "{improved:#}");
    assert_eq!(improved["rounds"].as_array().map(Vec::len), Some(2));
    assert!(improved["rounds"][0]["why"].as_str().is_some_and(|why| why.contains("no better")));
    assert_eq!(skill(&project), SKILL);
    let listed = project.run(&["versions", "ferry"]).exits(0).stdout;
    assert!(listed.contains("* v0") && listed.contains("(rejected: it does no better)"), "{listed}");
}

#[test]
fn a_proposer_that_learns_by_heart_is_rejected() {
    let split = {
        let probe = project(&usual_cases(), &diligent());
        let improved = probe.run(&[&IMPROVE[..], &["--rounds", "1"]].concat()).exits(0).json();
        assert_eq!(improved["stopped"], "rounds");
        improved["split"].clone()
    };
    let is_held_out =
        |id: &str| split["held_out"].as_array().expect("a list").iter().any(|held| held["case"] == id);
    // What helps the cases that the proposer sees harms the one that it does not see.
    let cases: Vec<(&str, String)> = CASES
        .iter()
        .map(|(id, wanted)| match (is_held_out(id), SKILL.contains(wanted)) {
            (true, true) => (*id, "!ahoy".to_owned()),
            (true, false) => (*id, "what nobody proposes".to_owned()),
            (false, _) => (*id, (*wanted).to_owned()),
        })
        .collect();
    let by_heart = [
        proposing(
            "greet",
            "(?s)Greeting: none.*Propose edits",
            &[edit("Greeting: none.", "Greeting: ahoy.")],
        ),
        analysing("again", "Analyse why v0", &[suggestion("Greeting: none.", "Greeting: ahoy. Ahoy.")]),
    ];
    let project = project(&cases, &by_heart);
    let improved = project.run(&IMPROVE).exits(0).json();
    assert_eq!(improved["split"], split);
    assert_eq!((&improved["best"], &improved["stopped"]), (&json!(0), &json!("flat")), "{improved:#}");
    assert!(
        improved["rounds"][0]["why"].as_str().is_some_and(|why| why.contains("held-out")),
        "{improved:#}"
    );
    assert!(improved["rounds"][0]["tuning"]["value"].as_f64().is_some_and(|gain| gain > 0.0));
    assert_eq!(skill(&project), SKILL);
}

#[test]
fn a_malicious_proposer_changes_nothing_and_is_reported() {
    let mut escape = edit("Greeting: none.", "x");
    escape["file"] = json!("../elsewhere.md");
    let mut evals = edit("Greeting: ahoy.", "Greeting");
    evals["file"] = json!("evals/trips.practicum.yaml");
    let bare = edit("---\nname: ferry\ndescription: Plans ferry trips.\n---\n", "");
    let project = project(&usual_cases(), &[proposing("evil", "Propose edits", &[escape, evals, bare])]);
    project.write("elsewhere.md", "Greeting: none.");
    let before = std::fs::read(project.path().join("ferry/evals/trips.practicum.yaml")).expect("evals");
    let ran = project.run(&ONCE).exits(0);
    let improved = ran.json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("flat"), &json!(0)));
    assert_eq!(improved["rounds"][0]["refused"].as_array().map(Vec::len), Some(3));
    assert!(ran.stderr.contains("refused") && ran.stderr.contains("frontmatter"), "{}", ran.stderr);
    assert_eq!(skill(&project), SKILL);
    assert_eq!(
        std::fs::read(project.path().join("ferry/evals/trips.practicum.yaml")).expect("evals"),
        before
    );
    let elsewhere = std::fs::read_to_string(project.path().join("elsewhere.md")).expect("a file");
    assert_eq!(elsewhere, "Greeting: none.");
    assert!(!project.path().join("ferry-workspace/v1").exists());
}

/// The journal says which step is done; the kill falls into the one after it.
#[test]
fn a_kill_in_any_phase_is_gone_on_from() {
    let project = project(&usual_cases(), &diligent());
    let journal = project.path().join("ferry-workspace/improve.jsonl");
    let lines = || std::fs::read_to_string(&journal).unwrap_or_default().lines().count();
    for (phase, done) in
        [("baseline", 2), ("suggest", 4), ("examine", 6), ("compare", 7), ("analyse", 9), ("examine", 11)]
    {
        let mut child = project
            .practicum(&ONCE)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("practicum starts");
        wait_until(|| lines() >= done);
        child.kill().expect("killed");
        child.wait().expect("gone");
        assert_eq!(skill(&project), SKILL, "{phase}");
        assert!(lines() < 14, "{phase}: it was killed too late to show anything");
    }
    let improved = project.run(&ONCE).exits(0);
    assert!(improved.stderr.contains("going on with the loop"), "{}", improved.stderr);
    let improved = improved.json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(2)), "{improved:#}");
    assert_eq!(read(&project, "ferry-workspace/history.json")["versions"].as_array().map(Vec::len), Some(3));
    assert_eq!(skill(&project), SKILL.replace("none", "ahoy").replace("unsaid", "named"));
}

#[test]
fn limits_and_interruptions_leave_something_to_go_on_with() {
    let project = project(&usual_cases(), &diligent());
    let improved = project.run(&[&ONCE[..], &["--max-time", "1ms"]].concat()).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["applied"]), (&json!("time"), &json!(false)), "{improved:#}");
    let child = project
        .practicum(&["improve", "ferry", "--sandbox", "off", "--repeat", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("practicum starts");
    let journal = project.path().join("ferry-workspace/improve.jsonl");
    wait_until(|| std::fs::read_to_string(&journal).unwrap_or_default().lines().count() >= 3);
    common::interrupt(&child);
    let ran = common::Ran::of(child.wait_with_output().expect("ends")).exits(130);
    assert!(ran.stdout.contains("the same command goes on"), "{}", ran.stdout);
    let improved = project.run(&[&ONCE[..], &["--target", "0.5"]].concat()).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(1)), "{improved:#}");
    let anew =
        project.run(&[&ONCE[..], &["--anew", "--seed", "3", "--rounds", "1"]].concat()).exits(0).json();
    assert_eq!((&anew["baseline"], &anew["best"]), (&json!(1), &json!(2)));
}

#[test]
fn what_cannot_begin_is_told() {
    let project = project(&usual_cases(), &[]);
    let ran = project.run(&["improve", "ferry", "--evals", "nowhere", "--sandbox", "off"]).exits(2);
    assert!(ran.stderr.contains("there is no"), "{}", ran.stderr);
    project.run(&["improve", "nowhere"]).exits(2);
    let ran = project.run(&["improve", "ferry", "--dry-run"]).exits(0);
    assert!(ran.stderr.contains("18 trials"), "{}", ran.stderr);
    let ran = project.run(&["improve", "ferry", "--sandbox", "off"]).exits(3);
    assert!(ran.stdout.contains("could not go on"), "{}", ran.stdout);
    assert_eq!(skill(&project), SKILL);
}

/// Takes its skill up if it is told to, or if a word of the request stands in the description.
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
