//! Outputs compared by a judge that does not know whose they are.

use crate::common::Project;
use serde_json::{Value, json};

/// Says what its skill says last.
const AGENT: &str = r#"
skill=$(ls .agents/skills 2>/dev/null | head -1)
said=$(tail -1 ".agents/skills/$skill/SKILL.md")
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
echo "{\"type\":\"text\",\"text\":\"$said\"}"
echo '{"type":"end","ending":"finished"}'
"#;

fn skill(says: &str) -> String {
    format!("---\nname: gull\ndescription: Speaks.\n---\n\n{says}\n")
}

fn answer(winner: &str, dimensions: &[&str], quote: &str) -> Value {
    let scores: Value = dimensions
        .iter()
        .map(|name| ((*name).to_owned(), json!({"A": 5, "B": 6})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!([{"tools": [{"name": "report_comparison", "input": {"winner": winner, "reasoning": "r", "quote": quote, "scores": scores}}]}])
}

const DOCUMENTED: [&str; 5] = [
    "description_quality",
    "convention_compliance",
    "type_specific_quality",
    "token_efficiency",
    "content_value",
];

/// A judge that likes what says kee-ow.
fn fair_judge(dimensions: &[&str]) -> String {
    json!({"practicum_script": 1, "scenarios": [
        {"name": "a", "to": "judge", "when": {"regex": "Output A:\\s[^:]*kee-ow[^:]*Output B:"}, "steps": answer("A", dimensions, "kee-ow")},
        {"name": "b", "to": "judge", "when": "kee-ow", "steps": answer("B", dimensions, "kee-ow")},
    ]})
    .to_string()
}

fn biased_judge() -> String {
    json!({"practicum_script": 1, "scenarios": [{"name": "first", "to": "judge", "steps": answer("A", &DOCUMENTED, "kee-ow")}]})
        .to_string()
}

fn project() -> Project {
    let cases: String = (1..=6)
        .map(|n| format!("  - {{ id: case-{n}, prompt: speak {n}, checks: [{{ contains: e }}, {{ judge: {{ statement: It sounds like a gull., required: false }} }}] }}\n"))
        .collect();
    let evals = format!(
        "practicum: 1\nskill: ../gull\nworkspace: empty\nrun: {{ agents: [own] }}\ngates: {{ pass_rate: 0 }}\ncases:\n{cases}"
    );
    let project = Project::new(&[
        ("gull/SKILL.md", &skill("hello")),
        ("evals/e.practicum.yaml", &evals),
        ("agent.sh", AGENT),
        ("biased.yaml", &biased_judge()),
    ]);
    let path = project.path().join("agent.sh");
    let toml = format!(
        "[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        path.display()
    );
    project.write("practicum.toml", &toml);
    project
}

fn run(project: &Project) -> String {
    let args = ["run", "evals", "--json", "--sandbox", "off", "--no-judge"];
    project.run(&args).exits(0).json()["run"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn fits(name: &str, document: &Value) {
    let schema = practicum::schema::schema(name).expect("a schema");
    if let Err(error) = jsonschema::draft202012::validate(schema, document) {
        panic!("{name}: {error} at {}\n{document:#}", error.instance_path());
    }
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

#[test]
fn the_better_run_is_found_and_the_labels_can_be_undone() {
    let project = project();
    let before = run(&project);
    project.write("gull/SKILL.md", &skill("kee-ow"));
    let after = run(&project);
    project.write("fair.yaml", &fair_judge(&["judge-it-sounds-like-a-gull"]));
    let found = project.run(&["compare", &before, &after, "--blind", "--script", "fair.yaml", "--json"]);
    let found = found.exits(0).json();
    fits("blind", &found);
    assert_eq!((&found["verdict"], &found["wins"], &found["ties"]), (&json!("better"), &json!(6), &json!(0)));
    assert_eq!(found["win_rate"]["value"], 1.0);
    assert!((found["chance"].as_f64().expect("a chance") - 0.03125).abs() < 1e-9);
    let labels: Vec<&Value> =
        found["cases"].as_array().expect("cases").iter().map(|case| &case["orders"][0]["a"]).collect();
    assert!(labels.contains(&&json!("first")) && labels.contains(&&json!("second")), "{labels:?}");

    let kept = std::fs::read_dir(project.path().join(".practicum/comparisons")).expect("kept");
    let folder = kept.flatten().next().expect("one").path();
    assert_eq!(read(&folder.join("blind.json")), found);
    for case in found["cases"].as_array().expect("cases") {
        for (order, file) in
            case["orders"].as_array().expect("orders").iter().zip(case["files"].as_array().expect("files"))
        {
            let comparison = read(&folder.join(file.as_str().expect("a name")));
            fits("comparison", &comparison);
            assert!(comparison["eval_prompt"].as_str().is_some_and(|text| text.starts_with("speak")));
            let a_won = comparison["winner"] == "A";
            assert_eq!(a_won, order["a"] == order["winner"]);
        }
    }
    let ran = project.run(&["compare", &after, &before, "--blind", "--script", "fair.yaml"]).exits(1);
    assert!(ran.stdout.contains("6 worse") && ran.stdout.contains(": worse\n"), "{}", ran.stdout);
}

#[test]
fn a_biased_judge_yields_only_ties() {
    let project = project();
    for (folder, text) in [("old", "hello"), ("new", "kee-ow")] {
        for n in 0..5 {
            project.write(&format!("{folder}/{n}.txt"), text);
        }
    }
    project.write("new/alone.txt", "x");
    let args = ["compare", "old", "new", "--blind", "--request", "Speak.", "--script", "biased.yaml"];
    let found = project.run(&[&args[..], &["--json"]].concat()).exits(3).json();
    assert_eq!((&found["ties"], &found["wins"], &found["losses"]), (&json!(5), &json!(0), &json!(0)));
    assert_eq!(
        (&found["cases"][0]["confidence"], &found["verdict"]),
        (&json!("low"), &json!("inconclusive"))
    );
    assert_eq!(found["unpaired"], json!(["alone.txt"]));
    let ran = project.run(&args).exits(3);
    assert!(ran.stdout.contains("contradict") && ran.stdout.contains("only one side"), "{}", ran.stdout);
}

#[test]
fn a_judge_without_an_answer_decides_nothing() {
    let project = project();
    project.write("a.txt", "one");
    project.write("b.txt", "two");
    project.write("mute.yaml", "practicum_script: 1\ndefault: I would rather not say.\n");
    let ran =
        project.run(&["compare", "a.txt", "b.txt", "--blind", "--script", "mute.yaml", "--json"]).exits(3);
    let found = ran.json();
    assert_eq!((&found["not_compared"], &found["cases"][0]["confidence"]), (&json!(1), &Value::Null));
}

/// A judge that follows the order of the outputs was called broken, also where there was nothing to choose.
#[test]
fn identical_outputs_are_ties_without_a_judge() {
    let project = project();
    for n in 0..5 {
        project.write(&format!("old/{n}.txt"), "kee-ow\nkee\n");
        project.write(&format!("new/{n}.txt"), "kee-ow\r\nkee");
    }
    let args = ["compare", "old", "new", "--blind", "--request", "Speak."];
    // There is no key, no script and no judge.
    let found = project.run(&[&args[..], &["--json"]].concat()).exits(0).json();
    fits("blind", &found);
    assert_eq!(
        (&found["ties"], &found["identical"], &found["cost_usd"]),
        (&json!(5), &json!(5), &json!(0.0))
    );
    assert_eq!((&found["cases"][0]["outcome"], &found["judge_follows"]), (&json!("identical"), &Value::Null));
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("tie: both outputs are identical"), "{}", ran.stdout);
    assert!(ran.stderr.contains("5 cases with identical outputs: no judge is asked"), "{}", ran.stderr);
    // Where an output differs, the judge is asked about that one alone.
    project.write("new/0.txt", "kee-ow, and more");
    project.write(
        "fair.yaml",
        &fair_judge(&DOCUMENTED).replace("[^:]*kee-ow[^:]*Output B", "[^:]*more[^:]*Output B"),
    );
    let ran = project.run(&[&args[..], &["--script", "fair.yaml"]].concat()).exits(0);
    assert!(ran.stderr.contains("1 case, judged in both orders"), "{}", ran.stderr);
    assert!(ran.stdout.contains("1 better, 0 worse, 4 ties"), "{}", ran.stdout);
    // So few cases cannot show that the other way round is a loss.
    let back = ["compare", "new", "old", "--blind", "--request", "Speak.", "--script", "fair.yaml"];
    let ran = project.run(&back).exits(3);
    assert!(ran.stdout.contains("cannot tell: the second side was worse more often"), "{}", ran.stdout);
}

/// Two texts are compared by what the case of an eval file asks for and has judged.
#[test]
fn files_are_compared_by_the_request_and_the_statements_of_a_spec() {
    let project = project();
    project.write("a.txt", "hello");
    project.write("b.txt", "kee-ow");
    let spec = r#"{"skill_name": "gull", "test_args": "now", "user_prompt": "Please speak.",
        "grading_criteria": [{"id": "gullish", "criterion": "Does it sound like a gull?"}],
        "trigger_tests": {"should_trigger": ["speak"], "should_not_trigger": ["be quiet"]}}"#;
    project.write(".claude/skills/gull/SKILL.md", &skill("kee-ow"));
    project.write(".claude/skills/gull/SKILL.eval.json", spec);
    project.write("fair.yaml", &fair_judge(&["gullish"]));
    let compare = |more: &[&str]| {
        let args = ["compare", "a.txt", "b.txt", "--blind", "--script", "fair.yaml", "--json"];
        project.run(&[&args[..], more].concat())
    };
    let ran = compare(&["--spec", ".claude/skills/gull/SKILL.eval.json"]).exits(0);
    let found = ran.json();
    fits("blind", &found);
    assert_eq!((&found["wins"], &found["cases"][0]["outcome"]), (&json!(1), &json!("second")));
    let folders = std::fs::read_dir(project.path().join(".practicum/comparisons")).expect("kept");
    let folder = folders.flatten().next().expect("one").path();
    let file = found["cases"][0]["files"][0].as_str().expect("a name");
    let comparison = read(&folder.join(file));
    assert_eq!(comparison["eval_prompt"], "Please speak.");
    assert!(comparison["scores"]["gullish"].is_object(), "{comparison}");

    // Of several cases one must be named, and runs have their own.
    let several = ["--spec", "evals/e.practicum.yaml"];
    let message = compare(&several).exits(2).stderr;
    assert!(message.contains("--case") && message.contains("case-1, case-2"), "{message}");
    project.write("fair.yaml", &fair_judge(&["judge-it-sounds-like-a-gull"]));
    compare(&[&several[..], &["--case", "case-2"]].concat()).exits(0);
    let message = compare(&[&several[..], &["--case", "none"]].concat()).exits(2).stderr;
    assert!(message.contains("no such case"), "{message}");
    let run = run(&project);
    let args =
        ["compare", &run, &run, "--blind", "--script", "fair.yaml", "--spec", "evals/e.practicum.yaml"];
    assert!(project.run(&args).exits(2).stderr.contains("--spec is for files"));
}

#[test]
fn versions_that_were_not_run_are_compared_as_skills() {
    let project = project();
    project.run(&["snapshot", "gull"]).exits(0);
    project.write("gull/SKILL.md", &skill("kee-ow"));
    project.run(&["snapshot", "gull"]).exits(0);
    project.write("fair.yaml", &json!({"practicum_script": 1, "scenarios": [
        {"name": "a", "to": "judge", "when": {"regex": "(?s)Output A:.*kee-ow.*Output B:"}, "steps": answer("A", &DOCUMENTED, "kee-ow")},
        {"name": "b", "to": "judge", "when": "kee-ow", "steps": answer("B", &DOCUMENTED, "kee-ow")},
    ]}).to_string());
    let args = ["compare", "v0", "v1", "--blind", "--script", "fair.yaml", "--json"];
    let found = project.run(&[&args[..], &["--of", "gull"]].concat()).exits(0).json();
    assert_eq!((&found["first"], &found["second"], &found["wins"]), (&json!("v0"), &json!("v1"), &json!(1)));
    let ran = project.run(&args).exits(2);
    assert!(ran.stderr.contains("--of"), "{}", ran.stderr);
}

#[test]
fn a_bare_command_needs_words_for_the_judge() {
    let project = project();
    let spec = |more: &str| {
        format!(
            r#"{{"skill_name": "gull", "test_args": "now"{more}, "assertions": [{{"id": "a", "type": "contains", "needle": "e"}}]}}"#
        )
    };
    project.write(".claude/skills/gull/SKILL.md", &skill("kee-ow"));
    let path = ".claude/skills/gull/SKILL.eval.json";
    let run = |text: &str| {
        project.write(path, text);
        let args = ["run", path, "--agent", "own", "--json", "--sandbox", "off", "--no-cache"];
        project.run(&args).exits(0).json()["run"].as_str().expect("an id").to_owned()
    };
    let bare = run(&spec(""));
    let ran = project.run(&["compare", &bare, &bare, "--blind", "--script", "biased.yaml"]).exits(2);
    assert!(ran.stderr.contains("user_prompt"), "{}", ran.stderr);
    let words = spec(r#", "user_prompt": "Please speak.""#);
    let worded = run(&words);
    project.write(".claude/skills/gull/SKILL.md", &skill("kee-ow, kee-ow"));
    let later = run(&words);
    // It answers only who shows it the words, and not the command.
    let request = r"(?s)The request:\s+\S+\s+Please speak\.\s+\S+\s+Output A:";
    let judge = json!({"practicum_script": 1, "scenarios": [
        {"name": "bare", "to": "judge", "when": "/gull", "steps": ["I was shown a command."]},
        {"name": "worded", "to": "judge", "when": {"regex": request}, "steps": answer("A", &DOCUMENTED, "kee-ow")},
    ]});
    project.write("reader.yaml", &judge.to_string());
    let found = project.run(&["compare", &worded, &later, "--blind", "--script", "reader.yaml", "--json"]);
    assert_eq!(found.exits(0).json()["ties"], 1);
    let kept = std::fs::read_dir(project.path().join(".practicum/comparisons")).expect("kept");
    let folder = kept.flatten().next().expect("one").path();
    assert_eq!(read(&folder.join("case-1/order-1/comparison.json"))["eval_prompt"], "Please speak.");
    project.write(path, &spec(""));
    let ran = project.run(&["improve", ".claude/skills/gull", "--agent", "own"]).exits(2);
    assert!(ran.stderr.contains("user_prompt"), "{}", ran.stderr);
    assert!(!project.path().join(".claude/skills/gull-workspace").exists(), "nothing was begun");
}

#[test]
fn what_an_agent_gave_without_the_skill_is_no_output_of_it() {
    let project = project();
    project.write("gull/SKILL.md", &skill("kee-ow"));
    let args =
        ["run", "evals", "--json", "--sandbox", "off", "--no-judge", "--arm", "without", "--arm", "with"];
    let both = project.run(&args).json()["run"].as_str().expect("an id").to_owned();
    // Otherwise the outputs would differ, and there is no judge.
    let with = run(&project);
    let found = project.run(&["compare", &both, &with, "--blind", "--json"]).exits(0).json();
    assert_eq!((&found["ties"], &found["identical"]), (&json!(6), &json!(6)));
}
