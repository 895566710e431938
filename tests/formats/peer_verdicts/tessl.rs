//! Scores of Tessl.

use super::{Row, SKILL, compare, prompt, row, verdicts};
use crate::common::Project;
use serde_json::{Value, json};

/// A scenario of Tessl passes with every point, and only files count.
#[test]
fn scores_of_tessl() {
    const ROWS: &[Row] = &[
        row("full", "1.0", &["echo good-words > a.md"], "ok", "pass"),
        row("half", "0.5", &["echo good-words > a.md"], "ok", "fail"),
        row("no-files", "1.0", &[], "good-words", "fail"),
    ];
    let mut scenarios = Vec::new();
    let mut files = vec![
        ("tile.json".to_owned(), r#"{"name": "kit"}"#.to_owned()),
        ("skills/tidy/SKILL.md".to_owned(), SKILL.to_owned()),
    ];
    for row in ROWS {
        let steps: Vec<Value> = row
            .does
            .iter()
            .map(|does| json!({"tools": [{"name": "Bash", "input": {"command": does}}]}))
            .chain([json!(row.says)])
            .collect();
        scenarios.push(json!({"when": format!("<{}>", row.id), "steps": steps}));
        let score: f64 = row.grader.parse().expect("a number");
        let mark = |id: &str, score: f64| json!({"id": id, "score": score, "evidence": ["good-words"], "reasoning": "r", "weak": null});
        let marks = json!({"tools": [{"name": "report_marks", "input": {"results": [mark("first", 1.0), mark("second", score)]}}]});
        scenarios.push(json!({"to": "judge", "when": format!("<{}>", row.id), "steps": vec![marks; 4]}));
        files.push((format!("evals/{}/task.md", row.id), prompt(row.id)));
        let criteria = json!({"context": "c", "type": "weighted_checklist", "checklist": [
            {"name": "first", "description": "It has words.", "max_score": 60},
            {"name": "second", "description": "They are good.", "max_score": 40}]});
        files.push((format!("evals/{}/criteria.json", row.id), criteria.to_string()));
    }
    files
        .push(("script.yaml".to_owned(), json!({"practicum_script": 1, "scenarios": scenarios}).to_string()));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    compare(ROWS, &verdicts(&Project::new(&files)));
}
