//! Verdicts of graders of other tools: for each type, a run that passes, one that fails, and an edge. What is expected
//! follows the rule that the tool documents.

mod claude_plugin_eval;
mod promptfoo;
mod skill_up;
mod skillgrade;
mod tessl;
mod vally;
mod waza;

use std::collections::BTreeMap;

use crate::common::Project;
use serde_json::{Value, json};

/// One case: its grader, what the agent does and says, and the verdict.
struct Row {
    id: &'static str,
    grader: &'static str,
    /// Commands that the agent runs, or calls of other tools as `Name {input}`.
    does: &'static [&'static str],
    says: &'static str,
    expected: &'static str,
}

const fn row(
    id: &'static str,
    grader: &'static str,
    does: &'static [&'static str],
    says: &'static str,
    expected: &'static str,
) -> Row {
    Row { id, grader, does, says, expected }
}

const SKILL: &str = "---\nname: tidy\ndescription: Tidies. Use it when asked to tidy.\n---\nTidy.\n";

fn prompt(id: &str) -> String {
    format!("Please do <{id}> now.")
}

/// Writes the script: what the agent does for each row, and what the judge says of it.
fn script(rows: &[Row]) -> String {
    let mut scenarios = Vec::new();
    for row in rows {
        let call = |does: &&str| match does.split_once(" {") {
            Some((name, input)) if name.chars().all(char::is_alphabetic) => {
                let input: Value = serde_json::from_str(&format!("{{{input}")).expect("an input");
                json!({"tools": [{"name": name, "input": input}]})
            }
            _ => json!({"tools": [{"name": "Bash", "input": {"command": does}}]}),
        };
        let mut steps: Vec<Value> = row.does.iter().map(call).collect();
        steps.push(json!(row.says));
        scenarios.push(json!({"when": format!("<{}>", row.id), "steps": steps}));
        let verdict = if row.says.contains("bad") { "fail" } else { "pass" };
        let mark = |id: String| {
            let score = if verdict == "pass" { 1.0 } else { 0.0 };
            let mark = json!({"id": id, "evidence": [row.says], "reasoning": "r", "weak": null});
            // Rubrics of skillgrade have a score, all others a verdict.
            let (key, value) = match row.id.starts_with("rubric") {
                true => ("score", json!(score)),
                false => ("verdict", json!(verdict)),
            };
            let mut mark = mark;
            mark[key] = value;
            mark
        };
        let ids = [
            "g",
            "prompt",
            "prompt-2",
            "llm",
            "llm-rubric",
            "not-llm-rubric",
            "g-eval",
            "g-eval-2",
            "judge",
            "model-graded-closedqa",
        ];
        let ids = ids.map(|id| mark(id.to_owned()));
        let answers = json!({"tools": [{"name": "report_marks", "input": {"results": ids}}]});
        scenarios.push(json!({"to": "judge", "when": format!("<{}>", row.id), "steps": vec![answers; 6]}));
    }
    json!({"practicum_script": 1, "scenarios": scenarios}).to_string()
}

/// Runs a project and gives the results of each case with the skill.
fn results(project: &Project) -> Vec<Value> {
    let args = [
        "run",
        ".",
        "--agent",
        "builtin",
        "--script",
        "script.yaml",
        "--arm",
        "with",
        "--trust",
        "--allow-unscored",
        "1",
        "--json",
    ];
    let summary = project.run(&args).json();
    summary["cases"].as_array().unwrap_or_else(|| panic!("{summary:#}")).clone()
}

/// Runs a project and gives the verdict of each case with the skill.
fn verdicts(project: &Project) -> BTreeMap<String, String> {
    let verdict = |case: &Value| {
        let count = |key: &str| case[key].as_u64().unwrap_or(0);
        let word = match (count("passed"), count("failed")) {
            (0, 0) => "not_scored",
            (_, 0) => "pass",
            _ => "fail",
        };
        (case["id"].as_str().unwrap_or_default().to_owned(), word.to_owned())
    };
    results(project).iter().map(verdict).collect()
}

fn compare(rows: &[Row], found: &BTreeMap<String, String>) {
    let wrong: Vec<String> = rows
        .iter()
        .filter(|row| found.get(row.id).map(String::as_str) != Some(row.expected))
        .map(|row| {
            format!("{} should be {}, is {:?}: {}", row.id, row.expected, found.get(row.id), row.grader)
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(found.len(), rows.len(), "{found:?}");
}
