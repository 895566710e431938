//! Tests of stimuli: what they become, and what is refused.

use serde_json::{Value, json};

use super::*;
use crate::dialects::{testing, to_native};

fn suite_of(text: &str) -> Suite {
    let folder = Path::new("/nowhere/evals/tidy");
    let source = testing::parse_source(folder.join("eval.yaml"), text);
    let (suite, found) = testing::lower_source(&Vally, &source, &testing::location_in(folder));
    assert!(!found.has_errors(), "{text}\n{found:#?}");
    suite.expect("a suite")
}

fn case_of(text: &str) -> Value {
    to_native(&suite_of(text), Path::new("/nowhere"))["cases"][0].clone()
}

fn checks_of(grader: &str) -> Value {
    case_of(&format!(
        "name: n\nscoring: {{threshold: 0.8}}\nstimuli: [{{name: a, prompt: p, graders: [{grader}]}}]"
    ))
}

#[test]
fn a_threshold_makes_the_score_decide_and_weights_come_from_the_type() {
    let text = "name: n\nscoring: {threshold: 0.8, weights: {output-matches: 3}}\nstimuli:\n- {name: a, prompt: p, graders: [{type: output-matches, config: {pattern: x}}, {type: completed}, {type: output-contains, weight: 2, config: {substring: y}}]}";
    let case = case_of(text);
    assert_eq!(case["pass_when"], json!({"score": 0.8}));
    let weights: Vec<Value> = (0..3).map(|at| case["checks"][at]["weight"].clone()).collect();
    assert_eq!(weights, [json!(3.0), Value::Null, json!(2.0)]);
    assert_eq!(case["checks"][2]["contains"], json!({"text": "y", "ignore_case": true}));
    let every = case_of(
        "name: n\nstimuli: [{name: a, prompt: p, graders: [{type: output-matches, config: {pattern: x}}]}]",
    );
    assert_eq!((every.get("pass_when"), every["checks"][0].get("required")), (None, None));
}

#[test]
fn the_rubric_shares_the_weight_of_its_grader() {
    let text = "name: n\nscoring: {threshold: 0.8}\nstimuli: [{name: a, prompt: p, rubric: [one, two], graders: [{type: prompt}]}]";
    let case = case_of(text);
    assert_eq!(case["checks"].as_array().map(Vec::len), Some(2));
    assert_eq!(case["checks"][1]["weight"], json!(0.5));
}

#[test]
fn constraints_are_required_and_do_not_count() {
    let case = case_of(
        "name: n\nscoring: {threshold: 0.5}\nstimuli: [{name: a, prompt: p, expect_activation: false, constraints: {max_turns: 3, reject_tools: [bash]}, graders: [{type: completed}]}]",
    );
    let ids: Vec<&Value> =
        case["checks"].as_array().expect("checks").iter().map(|check| &check["id"]).collect();
    assert_eq!(ids.len(), 4, "{case}");
    for at in 1..4 {
        assert_eq!(case["checks"][at]["weight"], json!(0.0), "{case}");
    }
}

#[test]
fn what_would_enforce_nothing_or_cannot_be_checked_leaves_the_case_unscored() {
    for (grader, part) in [
        ("{type: output-matches, pattern: x}", "enforce nothing"),
        ("{type: prompt}", "no rubric"),
        ("{type: pairwise}", "cannot be checked"),
        ("{type: shell-command-invoked, config: {required: [x]}}", "cannot be checked"),
        ("{type: tool-calls, config: {required: [{name: '^a.*$'}]}}", "is a pattern"),
        ("{type: tool-calls, config: {disallowed: [{name: bash, args: {path: x}}]}}", "\"args\""),
        ("{type: output-matches, config: {pattern: '\\p{L}'}}", "Unicode"),
    ] {
        let case = checks_of(grader);
        let said = case["unsupported"].as_str().unwrap_or_default();
        assert!(said.contains(part), "{grader}: {case}");
    }
    for (stimulus, part) in [
        ("{name: a, turns: [p, q], graders: [{type: completed, turn: 1}]}", "one turn of several"),
        ("{name: a, prompt: 'Use ${REGION}', graders: [{type: completed}]}", "--param"),
        ("{name: a, prompt: p, environment: {mcpServers: {x: {}}}, graders: [{type: completed}]}", "MCP"),
        ("{name: a, prompt: p, environment: other, graders: [{type: completed}]}", "environment"),
    ] {
        let case = case_of(&format!("name: n\nstimuli: [{stimulus}]"));
        let said = case["unsupported"].as_str().unwrap_or_default();
        assert!(said.contains(part), "{stimulus}: {case}");
    }
}

#[test]
fn what_is_wrong_is_an_error() {
    for text in [
        "name: n\nstimuli: []",
        "name: n\nstimuli: [{name: a, graders: []}]",
        "name: n\nstimuli: [{name: a, prompt: p, graders: [{config: {}}]}]",
        "name: n\nscoring: {threshold: 2}\nstimuli: [{name: a, prompt: p, graders: [{type: completed}]}]",
        "name: n\ndefaults: {timeout: soon}\nstimuli: [{name: a, prompt: p, graders: [{type: completed}]}]",
        "name: n\nstimuli: [{name: a, prompt: p, environment: {files: [{src: ../../../etc/passwd, dest: x}]}, graders: [{type: completed}]}]",
    ] {
        let folder = Path::new("/nowhere/evals/tidy");
        let source = testing::parse_source(folder.join("eval.yaml"), text);
        let (_, found) = testing::lower_source(&Vally, &source, &testing::location_in(folder));
        assert!(found.has_errors(), "{text}");
    }
}
