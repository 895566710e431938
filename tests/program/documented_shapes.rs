//! The files that writing-skills documents: what is documented is read, and what is written is documented.

use practicum::improve::{Analysis, BlindComparison};
use practicum::report::GradingDocument;
use practicum::versions::VersionHistory;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The names of the four schemas, with an example of our own for each.
const EXAMPLES: [(&str, &str); 4] = [
    ("history", include_str!("../fixtures/versions/history.json")),
    ("grading", include_str!("../fixtures/versions/grading.json")),
    ("comparison", include_str!("../fixtures/versions/comparison.json")),
    ("analysis", include_str!("../fixtures/versions/analysis.json")),
];

/// The original's own page, which is not ours to keep here.
const PAGE: &str = "PRACTICUM_TEST_WRITING_SKILLS";

fn is_valid(name: &str, document: &Value) -> Result<(), String> {
    let schema = practicum::schema::schema(name).expect("a schema");
    jsonschema::draft202012::validate(schema, document)
        .map_err(|error| format!("{name}: {error} at {}", error.instance_path()))
}

/// What our own types make of a document.
fn reread(name: &str, document: &Value) -> Result<Value, String> {
    fn through<T: Serialize + DeserializeOwned>(document: &Value) -> Result<Value, String> {
        let read: T = serde_json::from_value(document.clone()).map_err(|error| error.to_string())?;
        serde_json::to_value(read).map_err(|error| error.to_string())
    }
    match name {
        "history" => through::<VersionHistory>(document),
        "grading" => through::<GradingDocument>(document),
        "comparison" => through::<BlindComparison>(document),
        "analysis" => through::<Analysis>(document),
        other => Err(format!("nobody reads {other}")),
    }
}

#[track_caller]
fn holds(name: &str, document: &Value) {
    is_valid(name, document).unwrap_or_else(|wrong| panic!("{wrong}\n{document:#}"));
    assert_eq!(reread(name, document).as_ref(), Ok(document), "{name}");
}

#[test]
fn examples_are_read_and_written_as_they_are() {
    for (name, text) in EXAMPLES {
        holds(name, &serde_json::from_str(text).expect("JSON"));
    }
}

/// Every key is required, and no other is there but in a history.
#[test]
fn a_key_too_few_or_too_many_is_not_the_shape() {
    for (name, text) in EXAMPLES {
        let documented: Value = serde_json::from_str(text).expect("JSON");
        for at in mappings(&documented, "") {
            let keys: Vec<String> = documented
                .pointer(&at)
                .and_then(Value::as_object)
                .expect("a mapping")
                .keys()
                .cloned()
                .collect();
            // The dimensions of a comparison may be a suite's own criteria, and metrics are anyone's.
            let free = at == "/scores" || at == "/execution_metrics";
            for key in keys.iter().filter(|_| !free) {
                let mut document = documented.clone();
                document.pointer_mut(&at).and_then(Value::as_object_mut).expect("a mapping").remove(key);
                assert!(is_valid(name, &document).is_err(), "{name} without {at}/{key}");
            }
            if !free {
                let mut document = documented.clone();
                document.pointer_mut(&at).expect("a mapping")["surprise"] = json!(1);
                // Others may write into a history, and what they wrote is kept.
                if name == "history" {
                    holds(name, &document);
                    continue;
                }
                assert!(is_valid(name, &document).is_err(), "{name} with {at}/surprise");
                assert!(reread(name, &document).is_err(), "{name} with {at}/surprise");
            }
        }
    }
}

/// The places of all mappings in a document.
fn mappings(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let inner = map.iter().flat_map(|(key, inner)| mappings(inner, &format!("{at}/{key}")));
            std::iter::once(at.to_owned()).chain(inner).collect()
        }
        Value::Array(items) => {
            let inner = items.iter().enumerate();
            inner.flat_map(|(number, inner)| mappings(inner, &format!("{at}/{number}"))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[test]
fn values_outside_of_what_is_documented_are_not_valid() {
    for (name, at, wrong) in [
        ("history", "/versions/0/version", json!(-1)),
        ("history", "/versions/0/timestamp", json!("yesterday")),
        ("history", "/versions/0/timestamp", json!("2026-02-22T20:00:00+01:00")),
        ("history", "/versions/0/path", json!(7)),
        ("history", "/current_version", json!("v0")),
        ("grading", "/results/0/score", json!(0)),
        ("grading", "/results/0/score", json!(6)),
        ("grading", "/results/0/score", json!(3.5)),
        ("grading", "/run", json!(0)),
        ("grading", "/overall", json!("maybe")),
        ("grading", "/overall_score", json!(5.5)),
        ("grading", "/claims/0/verified", json!("no")),
        ("grading", "/eval_feedback", Value::Null),
        ("comparison", "/winner", json!("tie")),
        ("comparison", "/scores/content_value/A", json!(0)),
        ("comparison", "/scores/content_value/B", json!(11)),
        ("comparison", "/scores/content_value/B", json!(7.5)),
        ("analysis", "/winner_version", json!("1")),
        ("analysis", "/suggestions/0/before", Value::Null),
        ("analysis", "/strengths", json!("many")),
    ] {
        let text = EXAMPLES.iter().find(|(example, _)| *example == name).expect("an example").1;
        let mut document: Value = serde_json::from_str(text).expect("JSON");
        *document.pointer_mut(at).expect("there") = wrong;
        assert!(is_valid(name, &document).is_err(), "{name} {at}");
    }
}

/// Also the original's own examples, where their page is at hand.
#[test]
fn the_original_s_examples_are_read_and_written_as_they_are() {
    let Some(path) = std::env::var_os(PAGE) else {
        eprintln!("skipped: {PAGE} names no page of writing-skills");
        return;
    };
    let page = std::fs::read_to_string(path).expect("the page");
    for (name, _) in EXAMPLES {
        let (_, section) = page.split_once(&format!("\n## {name}.json\n")).expect("its section");
        let (_, example) = section.split_once("```json\n").expect("an example");
        let example: String = example.lines().take_while(|line| *line != "```").map(without_remark).collect();
        holds(name, &serde_json::from_str(&example).expect("JSON with remarks"));
    }
}

/// A line without what stands behind `//`, unless that is in a text.
fn without_remark(line: &str) -> String {
    let mut in_text = false;
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' if !escaped => in_text = !in_text,
            '/' if !in_text && line[at..].starts_with("//") => return line[..at].to_owned(),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    line.to_owned()
}

#[test]
fn remarks_end_where_texts_begin() {
    for (line, expected) in [
        (r#""a": 1, // one"#, r#""a": 1, "#),
        (r#""u": "http://a""#, r#""u": "http://a""#),
        (r#""\"// x", // y"#, r#""\"// x", "#),
    ] {
        assert_eq!(without_remark(line), expected);
    }
}
