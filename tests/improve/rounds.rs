//! What becomes of a skill that can be mended, and of one that cannot.

use serde_json::{Value, json};

use super::common::Project;
use super::ferry::{
    IMPROVE, ONCE, SKILL, analysing, diligent, edit, fits, project, proposing, read, script, skill,
    suggestion, usual_cases,
};

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
    let theirs = read(&project, "ferry-workspace/rounds/1/skill-creator/analysis.json");
    assert_eq!(theirs["winner_strengths"], analysis["strengths"], "{theirs}");
    assert_eq!(theirs["comparison_summary"]["winner"], "B", "the later version");
    assert_eq!(theirs["improvement_suggestions"].as_array().map(Vec::len), Some(1));
    let theirs = read(&project, "ferry-workspace/skill-creator/history.json");
    assert_eq!(
        (&theirs["current_best"], &theirs["iterations"][2]["grading_result"]),
        (&json!("v2"), &json!("won"))
    );
    assert!(project.path().join("ferry-workspace/rounds/1/skill-creator/comparison-1.json").is_file());
    let last = read(&project, "ferry-workspace/rounds/2/analysis.json");
    fits("analysis", &last);
    assert_eq!((&last["winner_version"], &last["suggestions"]), (&json!("v2"), &json!([])));
    assert!(
        improved["rounds"][1]["refused"][0]["why"]
            .as_str()
            .is_some_and(|why| why.contains("not in the skill"))
    );
    assert!(
        improved["diff"].as_str().is_some_and(|diff| diff.contains("-Harbour: unsaid.\n")),
        "{improved:#}"
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
    assert_eq!(found.exits(3).json()["ties"], 6, "versions are compared by what their runs gave");

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

/// Scores from 1 to 5, graded run by run in the files that writing-skills documents.
#[test]
fn every_run_of_every_version_is_graded_as_documented() {
    let ids = ["dawn", "noon", "dusk"];
    let cases: Vec<Value> = ids
        .iter()
        .map(|id| {
            json!({"id": id, "prompt": format!("Plan trip {id}."), "expectations": [
                {"criterion": "greets", "description": "The plan says ahoy", "required": true},
            ]})
        })
        .collect();
    let evals = json!({"version": "1.0", "skill": "ferry", "cases": cases});
    let judge_answer = |when: &str, score: u8| {
        let quotes = if score > 2 { vec!["Greeting: ahoy"] } else { Vec::new() };
        let judge_verdict =
            json!({"id": "greets", "score": score, "evidence": quotes, "reasoning": "Seen.", "weak": null});
        json!({"name": format!("marks {score}"), "to": "judge", "when": {"regex": when}, "steps": [
            {"tools": [{"name": "report_marks", "input": {"results": [judge_verdict]}}]}
        ]})
    };
    let mut greet = edit("Greeting: none.", "Greeting: ahoy.");
    greet["checks"] = json!(ids.map(|id| format!("{id}/greets")));
    let aligned = |when: &str, verdict: &str| {
        let judge_verdict = json!({"id": "type_alignment", "verdict": verdict, "evidence": ["Greeting"],
            "reasoning": format!("A technique, {verdict}."), "weak": null});
        json!({"name": verdict, "to": "judge", "when": {"regex": when}, "steps": [
            {"tools": [{"name": "report_marks", "input": {"results": [judge_verdict]}}]}
        ]})
    };
    let advisers = [
        aligned("(?s)The text of the skill.*Greeting: ahoy", "pass"),
        aligned("The text of the skill", "fail"),
        judge_answer("(?s)The record of the run.*Greeting: ahoy", 5),
        judge_answer("The record of the run", 2),
        proposing("greet", "Propose edits", &[greet]),
    ];
    let measuring = r#"> plan.txt; echo '{\"total_steps\": 2}' > metrics.json"#;
    let script = script(&advisers).to_string().replace("> plan.txt", measuring);
    let project = Project::new(&[
        ("ferry/SKILL.md", SKILL),
        ("ferry/evals/evals.json", &evals.to_string()),
        ("script.yaml", &script),
    ]);
    let args = [&IMPROVE[..], &["--agent", "builtin", "--script", "script.yaml"]].concat();
    let improved = project.run(&args).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(1)), "{improved:#}");
    for (version, score, overall) in [(0, 2, "fail"), (1, 5, "pass")] {
        for (id, run) in ids.iter().flat_map(|id| (1..=3).map(move |run| (id, run))) {
            let grading = read(&project, &format!("ferry-workspace/grading/{id}_v{version}_run{run}.json"));
            fits("grading", &grading);
            assert_eq!((&grading["version"], &grading["run"]), (&json!(version), &json!(run)));
            assert_eq!(
                (&grading["results"][0]["score"], &grading["overall"]),
                (&json!(score), &json!(overall))
            );
            assert_eq!(grading["execution_metrics"], json!({"total_steps": 2}));
            let aligned = json!({"passed": overall == "pass", "details": format!("A technique, {overall}.")});
            assert_eq!(grading["convention_compliance"]["type_alignment"], aligned, "each version's own");
        }
    }
    let history = read(&project, "ferry-workspace/history.json");
    fits("history", &history);
    let averages: Vec<&Value> = history["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|known| &known["average_score"])
        .collect();
    assert_eq!(averages, [&json!(2.0), &json!(5.0)], "each on the version that it belongs to");
}
