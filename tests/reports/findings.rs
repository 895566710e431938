//! What judges say of the evals themselves is in every report that people read.

use serde_json::json;

use super::common::Project;
use super::{files, json, read};

const EVALS: &str = "\
practicum: 1
skill: ../gull
workspace: empty
run: { agents: [builtin], repeat: 3 }
cases:
  - id: greets
    prompt: Say hello
    checks:
      - { id: says, judge: It says hello. }
      - { id: brief, judge: It is brief., required: false }
";

/// What a judge wrote may be anything.
const WEAK: &str = "Silence <script>would</script> do | so";
const UNCOVERED: &str = "Nothing asks about *tone*";

fn project() -> Project {
    let judge_verdict = |id: &str, verdict: &str, weak: Option<&str>| json!({"id": id, "verdict": verdict, "evidence": ["Hello."], "reasoning": "Seen.", "weak": weak});
    let script = json!({"practicum_script": 1, "scenarios": [
        {"when": "Say hello", "steps": ["Hello."]},
        {"to": "judge", "steps": [{"tools": [{"name": "report_marks", "input": {
            "results": [judge_verdict("says", "pass", Some(WEAK)), judge_verdict("brief", "fail", None)],
            "uncovered": [UNCOVERED], "claims": [],
        }}]}]},
    ]});
    Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\n\nSay hello.\n"),
        ("evals/greets.practicum.yaml", EVALS),
        ("script.json", &script.to_string()),
    ])
}

#[test]
fn a_weak_check_is_a_finding_in_every_report_and_no_victory() {
    let project = project();
    let mut run = vec!["run", "evals", "--script", "script.json", "--json"];
    for report in ["md=r.md", "html=r.html", "github-comment=c.md", "json=r.json", "skill-creator=sc"] {
        run.extend(["--report", report]);
    }
    let summary = project.run(&run).exits(0).json();
    assert_eq!(
        summary["eval_findings"],
        json!([
            {"suite": "greets", "case": "greets", "weak_check": "says", "text": WEAK, "trials": 3},
            {"suite": "greets", "case": "greets", "weak_check": null, "text": UNCOVERED, "trials": 3},
        ])
    );
    assert_eq!(json(&project, "r.json")["eval_findings"], summary["eval_findings"]);
    for name in ["r.md", "c.md"] {
        let text = read(&project, name);
        let (_, findings) = text.split_once("Findings about the evals").expect("a section");
        let lines: Vec<&str> =
            findings.lines().filter(|line| line.starts_with("- greets of greets, ")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].contains("weak check says: Silence") && lines[0].contains("3 trials"), "{text}");
        assert!(lines[1].contains("no check is about: Nothing asks about"), "{text}");
        assert!(!text.contains("<script>") && !text.contains("*tone*"), "{text}");
    }
    let page = read(&project, "r.html");
    assert!(page.contains("Findings about the evals") && !page.contains("<script>would"), "{page}");
    assert!(page.contains("<pre class=\"flag\" dir=\"auto\">weak check: Silence"), "with its check, too");
    assert!(page.contains("no check is about: Nothing asks about"), "{page}");
    let gradings = files(&project, "sc", "grading.json");
    let first = std::fs::read_to_string(&gradings[0]).expect("a grading");
    let grading: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(
        grading["eval_feedback"],
        json!({"suggestions": [{"assertion": "It says hello.", "reason": WEAK}], "overall": UNCOVERED})
    );
    let text = project.run(&["report", "latest"]).exits(0).stdout;
    assert!(text.contains("doubts: 1 weak check, 3 uncovered behaviours"), "{text}");
}

#[test]
fn how_far_runs_agree_stands_beside_each_criterion() {
    let project = project();
    let run = ["run", "evals", "--script", "script.json", "--json", "--report", "md=r.md"];
    let summary = project.run(&run).exits(0).json();
    let agreement: Vec<&serde_json::Value> =
        summary["cases"][0]["checks"].as_array().expect("checks").iter().map(|of| &of["agreement"]).collect();
    assert_eq!(agreement, [&json!(1.0), &json!(1.0)]);
    let text = read(&project, "r.md");
    assert!(text.contains("| check | passed | failed | not scored | agreement | mean score |"), "{text}");
    assert!(text.contains("| 0 | 3 | 0 | 1.00 |"), "{text}");
}
