//! What clauditor answers, case by case, against what the rules here answer: its assertions and its
//! formats. (How its files are loaded is the dialect's matter.)
//!
//! The cases are not part of this repository. `PRACTICUM_CONFORMANCE` names a JSON file
//! `{"cases": [{"id", "kind", "input", "expected"}]}`; without it these tests say so and check
//! nothing. A part of them goes through the command, all with `PRACTICUM_CONFORMANCE_ALL`.
//!
//! Answers that differ on purpose:
//!
//! | case | here | why |
//! |---|---|---|
//! | none | | where `min_count` counts at every line, the cases already say what the documentation does |

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::Project;

use practicum::checks::{NamedFormat, rule_kind};
use practicum::model::{
    AgentEnding, CheckEvidence, CheckedText, Diagnostics, Observation, RelPath, Rule, WorkspaceView,
};
use practicum::tree::{SourceFile, SourceSyntax};
use serde_json::{Value, json};

/// The cases of the table above.
const DIFFERENT: &[&str] = &[];

fn cases() -> Vec<Value> {
    let Ok(path) = std::env::var("PRACTICUM_CONFORMANCE") else {
        println!("PRACTICUM_CONFORMANCE names no file of cases; nothing is checked");
        return Vec::new();
    };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    document["cases"].as_array().unwrap_or_else(|| panic!("{path} has no cases")).clone()
}

/// Through the command, one of so many goes when not all do.
const ONE_OF: usize = 20;

#[test]
fn the_command_answers_as_clauditor_does() {
    let all = std::env::var_os("PRACTICUM_CONFORMANCE_ALL").is_some();
    let cases = cases();
    let reachable =
        cases.iter().filter(|case| ["assertion", "format"].iter().any(|kind| case["kind"] == *kind));
    // A file is read with `\n` as its only line end, so it cannot carry these texts; rules are asked below.
    let has_carriage_return = |case: &&Value| {
        ["text", "value"]
            .iter()
            .any(|key| case["input"][key].as_str().is_some_and(|text| text.contains('\r')))
    };
    let reachable = reachable.filter(|case| !has_carriage_return(case));
    let mut wrong = Vec::new();
    let mut asked = 0;
    let project = Project::new(&[]);
    for case in reachable.step_by(if all { 1 } else { ONE_OF }) {
        let (input, expected) = (&case["input"], &case["expected"]);
        let (text, assertions, wanted) = if case["kind"] == "assertion" {
            let wanted = match &expected["passed"] {
                Value::Bool(passed) => Some(vec![if *passed { "pass" } else { "fail" }]),
                _ => None,
            };
            // A spec wants an id, which the assertion alone need not have.
            let mut assertion = input["assertion"].clone();
            if let Value::Object(keys) = &mut assertion {
                keys.entry("id").or_insert(json!("x1"));
            }
            (&input["text"], vec![assertion], wanted)
        } else {
            // As many as were counted are enough, and one more is not.
            let count = expected["count"].as_i64();
            let at_least = |id: &str, count: i64| json!({"id": id, "type": "has_format", "format": input["format"], "count": count});
            let counted = count.unwrap_or_default();
            let wanted = count.map(|_| vec!["pass", "fail"]);
            (&input["value"], vec![at_least("enough", counted), at_least("more", counted + 1)], wanted)
        };
        project.write("x.eval.json", &json!({"skill_name": "x", "assertions": assertions}).to_string());
        project.write("out.txt", text.as_str().unwrap_or_default());
        let ran = project.run(&["grade", "--output", "out.txt", "--spec", "x.eval.json", "--json"]);
        asked += 1;
        let found: Option<Vec<String>> = (ran.code != 2).then(|| {
            let document = ran.json();
            let results = document["results"].as_array().expect("results").iter();
            results.map(|result| result["verdict"].as_str().unwrap_or_default().to_owned()).collect()
        });
        let id = case["id"].as_str().unwrap_or_default();
        let same = found.as_ref().map(|found| found.iter().map(String::as_str).collect()) == wanted;
        if same == DIFFERENT.contains(&id) {
            wrong.push(format!("{id}: {found:?} here, {wanted:?}; {input}"));
        }
    }
    println!("through the command: {} of {asked} agree", asked - wrong.len());
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn assertions_and_formats_answer_as_clauditor_does() {
    let cases = cases();
    let mut tally: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in &cases {
        let kind = case["kind"].as_str().unwrap_or_default();
        let answer = match kind {
            "assertion" => assertion(&case["input"]),
            "format" => format(&case["input"]),
            _ => continue,
        };
        let id = case["id"].as_str().unwrap_or_default();
        let same = answer == case["expected"];
        let (agreed, all) = tally.entry(kind).or_default();
        *all += 1;
        *agreed += usize::from(same);
        if same == DIFFERENT.contains(&id) {
            wrong.push(format!("{id}: {answer} here, {}; {}", case["expected"], case["input"]));
        }
    }
    for (kind, (agreed, all)) in &tally {
        println!("{kind}: {agreed} of {all} agree");
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// What the rule behind an assertion says, in the words of the cases.
fn assertion(input: &Value) -> Value {
    let Some(rule) = rule(&input["assertion"]) else { return json!({"load_error": true}) };
    let observation = observation(input["text"].as_str().unwrap_or_default());
    let texts = [CheckedText::without_path(observation.output.as_str())];
    let evidence =
        CheckEvidence { texts: &texts, observation: &observation, workspace: &NoFiles, url_checker: None };
    match rule.check(&evidence).verdict.name() {
        "pass" => json!({"passed": true}),
        "fail" => json!({"passed": false}),
        other => json!({ "verdict": other }),
    }
}

/// An assertion's type and keys as a native key and its value.
fn rule(assertion: &Value) -> Option<Arc<dyn Rule>> {
    let (key, value) = match assertion["type"].as_str()? {
        key @ ("contains" | "not_contains") => (key, assertion.get("needle")?.clone()),
        key @ "regex" => (key, assertion.get("pattern")?.clone()),
        key @ "min_count" => {
            (key, json!({"pattern": assertion.get("pattern")?, "count": assertion.get("count")?}))
        }
        key @ ("min_length" | "max_length") => (key, assertion.get("length")?.clone()),
        key @ ("has_urls" | "has_entries" | "urls_reachable") => {
            (key, assertion.get("count").cloned().unwrap_or(Value::Null))
        }
        key @ "has_format" => {
            let count = assertion.get("count").cloned().unwrap_or(json!(1));
            (key, json!({"format": assertion.get("format")?, "count": count}))
        }
        _ => return None,
    };
    let mut diagnostics = Diagnostics::default();
    let source =
        SourceFile::parse(Path::new("case.json"), value.to_string(), SourceSyntax::Json, &mut diagnostics)?;
    (rule_kind(key)?.decode)(&source.root, &mut diagnostics)
}

fn format(input: &Value) -> Value {
    let (name, value) =
        (input["format"].as_str().unwrap_or_default(), input["value"].as_str().unwrap_or_default());
    match NamedFormat::find_format(name) {
        Some(format) => json!({
            "known": true,
            "fullmatch": format.matches_value(value).ok(),
            "count": format.count(value).ok()
        }),
        None => json!({"known": false, "fullmatch": false, "count": null}),
    }
}

fn observation(text: &str) -> Observation {
    Observation { output: text.to_owned(), ..Observation::with_ending(AgentEnding::Finished) }
}

struct NoFiles;

impl WorkspaceView for NoFiles {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Ok(false)
    }
}
