//! Reports in the formats of other tools.

use std::process::Command;

use serde_json::{Value, json};

use super::common::Project;
use super::{files, json, project, read};

/// The keys of a document, and of those in it, as paths. Lists are `[]`; free keys are named by the caller.
fn keys(of: &Value, at: &str, free: &[&str], into: &mut Vec<String>) {
    match of {
        Value::Object(map) => {
            for (key, value) in map {
                let path = if free.contains(&at) { format!("{at}.*") } else { format!("{at}.{key}") };
                into.push(path.clone());
                keys(value, &path, free, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{at}[]"), free, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn all_keys(of: &Value, free: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    keys(of, "", free, &mut found);
    found.sort();
    found.dedup();
    found
}

#[test]
fn skill_creator_s_viewers_find_their_keys_and_no_others() {
    let project = project();
    project.run(&["run", "evals", "-q", "-j", "4", "--report", "skill-creator=out"]).exits(1);
    let run = "out/eval-1/with_skill/run-2";
    assert_eq!(
        all_keys(&json(&project, &format!("{run}/grading.json")), &[".execution_metrics.tool_calls"]),
        [
            ".claims",
            ".execution_metrics",
            ".execution_metrics.errors_encountered",
            ".execution_metrics.output_chars",
            ".execution_metrics.tool_calls",
            ".execution_metrics.total_steps",
            ".execution_metrics.total_tool_calls",
            ".execution_metrics.transcript_chars",
            ".expectations",
            ".expectations[].evidence",
            ".expectations[].passed",
            ".expectations[].text",
            ".summary",
            ".summary.failed",
            ".summary.pass_rate",
            ".summary.passed",
            ".summary.total",
            ".timing",
            ".timing.executor_duration_seconds",
            ".timing.total_duration_seconds",
            ".user_notes_summary",
            ".user_notes_summary.needs_review",
            ".user_notes_summary.uncertainties",
            ".user_notes_summary.workarounds",
        ]
    );
    assert_eq!(
        all_keys(&json(&project, &format!("{run}/timing.json")), &[]),
        [
            ".duration_ms",
            ".executor_duration_seconds",
            ".executor_end",
            ".executor_start",
            ".total_duration_seconds",
            ".total_tokens",
        ]
    );
    let benchmark = json(&project, "out/benchmark.json");
    let found = all_keys(&benchmark["metadata"], &[]);
    let expected = [
        ".analyzer_model",
        ".evals_run",
        ".executor_model",
        ".runs_per_configuration",
        ".skill_name",
        ".skill_path",
        ".timestamp",
    ];
    assert_eq!(found, expected);
    assert_eq!(all_keys(&benchmark["runs"][0]["result"], &[]).len(), 8);
    assert_eq!(benchmark["metadata"]["skill_name"], "gull");
    assert_eq!(benchmark["metadata"]["runs_per_configuration"], 2);
    let summary = &benchmark["run_summary"];
    assert_eq!(summary["without_skill"]["pass_rate"]["min"], 0.0);
    let delta = summary["delta"]["pass_rate"].as_str().expect("words");
    // Only of the expectations that both arms have: with the skill, activation is asked too, and fails.
    let notes = benchmark["notes"].to_string();
    let of_both = "with_skill meets 83 % of the expectations that both have, without_skill 0 %";
    assert!(delta == "+0.83" && notes.contains(of_both), "{delta} {notes}");
    assert!(project.path().join(run).join("outputs/output.txt").is_file());
}

#[test]
fn agentskills_has_its_own_keys() {
    let project = project();
    project.run(&["run", "evals", "-q", "-j", "4", "--repeat", "1", "--report", "agentskills=out"]).exits(1);
    let run = "out/eval-1/with_skill";
    assert_eq!(
        all_keys(&json(&project, &format!("{run}/grading.json")), &[]),
        [
            ".assertion_results",
            ".assertion_results[].evidence",
            ".assertion_results[].passed",
            ".assertion_results[].text",
            ".summary",
            ".summary.failed",
            ".summary.pass_rate",
            ".summary.passed",
            ".summary.total",
        ]
    );
    assert_eq!(
        all_keys(&json(&project, &format!("{run}/timing.json")), &[]),
        [".duration_ms", ".total_tokens"]
    );
    let benchmark = json(&project, "out/benchmark.json");
    let found = all_keys(&benchmark, &[]);
    // The notes name the runs that are in no mean.
    assert_eq!(found.len(), 2 + 3 + 3 + 2 * 9, "{found:?}");
    assert!(benchmark["notes"].to_string().contains("is not scored"), "{benchmark}");
    assert!(benchmark["run_summary"]["delta"]["pass_rate"].is_number());
}

/// The example with criteria that are scored from 1 to 5.
pub fn alt_text() -> Project {
    let project = Project::new(&[]);
    let example = format!("{}/examples/writing-skills/.", env!("CARGO_MANIFEST_DIR"));
    let copied = Command::new("cp").arg("-r").arg(example).arg(project.path()).status();
    assert!(copied.expect("cp").success());
    project
}

#[test]
fn writing_skills_gradings_agree_with_the_run_on_every_count() {
    let project = alt_text();
    // A required criterion that is not met, and one that need not be.
    let script = read(&project, "script.yaml")
        .replace("- id: length\n                  score: 4", "- id: length\n                  score: 2")
        .replace(
            "- id: no-decoration\n                  score: 5",
            "- id: no-decoration\n                  score: 1",
        );
    project.write("script.yaml", &script);
    let run = ["run", ".", "--agent", "builtin", "--script", "script.yaml", "--json"];
    let summary = project.run(&[&run[..], &["--report", "writing-skills=out"]].concat()).exits(1).json();
    let read = |path: &std::path::PathBuf| -> Value {
        serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
    };
    let gradings: Vec<Value> = files(&project, "out/grading", ".json").iter().map(read).collect();
    let overall = |word: &str| gradings.iter().filter(|grading| grading["overall"] == word).count();
    let totals = &summary["totals"];
    assert_eq!((gradings.len(), overall("pass"), overall("fail")), (2, 1, 1));
    assert_eq!(totals, &json!({"trials": 2, "passed": 1, "failed": 1, "not_scored": 0}));
    let checks =
        summary["cases"].as_array().expect("cases").iter().flat_map(|case| case["checks"].as_array());
    let passed: u64 = checks.flatten().filter_map(|check| check["passed"].as_u64()).sum();
    let results = gradings.iter().flat_map(|grading| grading["results"].as_array()).flatten();
    assert_eq!(results.filter(|result| result["passed"] == true).count() as u64, passed, "{summary}");
}

/// The answer of the example's judge about the skill itself, where it stands in the script.
const ALIGNED: &str = "                - id: type_alignment\n                  verdict: pass\n";

#[test]
fn no_answer_about_a_skills_type_is_never_a_value() {
    let broken = "                - id: no_such_statement\n                  verdict: pass\n";
    for (answer, more, passed, details) in [
        (ALIGNED.to_owned(), &[][..], json!(true), "A technique skill with rules"),
        (ALIGNED.replace("pass", "fail"), &[], json!(false), "A technique skill with rules"),
        (ALIGNED.to_owned(), &["--no-judge"], Value::Null, "not judged: "),
        (broken.to_owned(), &[], Value::Null, "the judge gave no usable answer: "),
    ] {
        let project = alt_text();
        project.write("script.yaml", &read(&project, "script.yaml").replace(ALIGNED, &answer));
        let run = ["run", ".", "--agent", "builtin", "--script", "script.yaml", "--json"];
        let run = [&run[..], &["--repeat", "2"], more].concat();
        let unjudged = !more.is_empty();
        let summary = project.run(&run).exits(if unjudged { 3 } else { 0 }).json();
        let said = summary["skills_judged"].as_array().expect("a list");
        assert_eq!(said.len(), 1, "once for the suite, however often its cases run: {summary}");
        assert_eq!((&said[0]["suite"], &said[0]["skill"]), (&json!("alt-text"), &json!("alt-text")));
        let verdict = &said[0]["checks"][0]["verdict"];
        match passed.as_bool() {
            Some(true) => assert_eq!(verdict, "pass"),
            Some(false) => assert_eq!(verdict, "fail"),
            None => assert!(verdict["not_scored"].is_object(), "{verdict}"),
        }
        let totals = if unjudged { (0, 4) } else { (4, 0) };
        let found = (&summary["totals"]["passed"], &summary["totals"]["not_scored"]);
        assert_eq!(found, (&json!(totals.0), &json!(totals.1)), "it passes and fails nothing");
        project.run(&["report", "latest", "--format", "writing-skills", "-o", "out"]).exits(0);
        let gradings = files(&project, "out/grading", ".json");
        assert_eq!(gradings.len(), if unjudged { 0 } else { 4 });
        for path in gradings {
            let grading: Value =
                serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
            let message = &grading["convention_compliance"]["type_alignment"];
            assert_eq!(message.as_object().map(serde_json::Map::len), Some(2), "{message}");
            assert_eq!(message["passed"], passed);
            assert!(
                message["details"].as_str().is_some_and(|message| message.starts_with(details)),
                "{message}"
            );
        }
        let text = project.run(&["report", "latest"]).exits(0).stdout;
        assert!(text.contains("type_alignment of skill alt-text: "), "{text}");
    }
}

#[test]
fn writing_skills_gradings_have_the_documented_keys() {
    let project = alt_text();
    let script = read(&project, "script.yaml")
        .replace(
            "      - alt=\"\"\n",
            "      - tools: [{ name: Bash, input: { command: 'echo {\\\"steps\\\": 3} > metrics.json' } }]\n      - alt=\"\"\n",
        )
        .replace(
            "reasoning: The attribute is there and empty.\n",
            "reasoning: The attribute is there and empty.\n                  weak: Silence would do.\n              uncovered: [The file is left as it was]\n",
        );
    project.write("script.yaml", &script);
    let scripted = ["run", ".", "-q", "--agent", "builtin", "--script", "script.yaml"];
    project
        .run(&[&scripted[..], &["--report", "writing-skills=out", "--report", "html=page.html"]].concat())
        .exits(0);
    let gradings = files(&project, "out/grading", "_v0_run1.json");
    assert_eq!(gradings.len(), 2, "a file for each case");
    for path in gradings {
        let text = std::fs::read_to_string(&path).expect("a file");
        let grading: Value = serde_json::from_str(&text).expect("JSON");
        let order: Vec<&String> = grading.as_object().expect("a mapping").keys().collect();
        let documented = [
            "case_id",
            "version",
            "run",
            "overall_score",
            "required_score",
            "results",
            "overall",
            "convention_compliance",
            "claims",
            "user_notes_summary",
            "eval_feedback",
            "execution_metrics",
        ];
        assert_eq!(order, documented);
        let conventions: Vec<&String> =
            grading["convention_compliance"].as_object().expect("a mapping").keys().collect();
        let documented = [
            "frontmatter",
            "description_field",
            "token_efficiency",
            "progressive_disclosure",
            "type_alignment",
        ];
        assert_eq!(conventions, documented);
        for result in grading["results"].as_array().expect("results") {
            let score = result["score"].as_i64().expect("a whole number");
            assert!((1..=5).contains(&score));
            assert_eq!(result["passed"], score >= 3, "derived, never set: {result}");
        }
    }
    let divider = json(&project, "out/grading/divider_v0_run1.json");
    assert_eq!(divider["execution_metrics"], json!({"steps": 3}), "what the agent counted");
    assert_eq!(divider["eval_feedback"], "empty: Silence would do.; The file is left as it was");
    let chart = json(&project, "out/grading/chart_v0_run1.json");
    assert_eq!((&chart["execution_metrics"], &chart["eval_feedback"]), (&json!({}), &json!("")));
    let page = read(&project, "page.html");
    assert!(page.contains("<details class=\"step tool\">"), "what the agent did is folded: {page}");
    let history = json(&project, "out/history.json");
    assert_eq!(history["current_version"], 0);
    let version: Vec<&String> = history["versions"][0].as_object().expect("a version").keys().collect();
    let documented = ["version", "timestamp", "description", "git_hash", "path", "average_score"];
    assert_eq!(version, documented);
    assert_eq!(history["versions"][0]["path"], "v0/skill");
    assert!(history["versions"][0]["average_score"].is_number());
}

#[test]
fn skill_creator_s_files_name_evals_as_their_authors_did() {
    let evals = r#"{"skill_name": "gull", "evals": [
        {"id": "leap-year", "prompt": "quiet", "expectations": ["The answer, however long it may be, says in which years February has one day more"]},
        {"id": 5, "name": "a cry", "prompt": "speak", "assertions": [{"type": "contains", "value": "kee"}]},
        {"id": 1, "prompt": "speak up", "assertions": [{"type": "contains", "value": "kee"}]}]}"#;
    let project = project();
    std::fs::remove_dir_all(project.path().join("evals")).expect("removed");
    project.write("gull/evals/evals.json", evals);
    project.write("agent.sh", &format!("echo made > output.txt\n{}", super::AGENT));
    let run = ["run", "gull", "-q", "-j", "4", "--agent", "own", "--no-judge", "--no-cache"];
    for (chosen, folder, written) in [
        (&[][..], "all", vec!["eval-1", "eval-2", "eval-5"]),
        (&["--case", "leap-year"], "text", vec!["eval-2"]),
        (&["--case", "5"], "number", vec!["eval-5"]),
    ] {
        let order = format!("skill-creator={folder}");
        let exit = if folder == "number" { 0 } else { 3 };
        project.run(&[&run[..], chosen, &["--report", &order]].concat()).exits(exit);
        let found: Vec<String> = std::fs::read_dir(project.path().join(folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("eval-"))
            .collect();
        let found = std::collections::BTreeSet::from_iter(found);
        assert_eq!(found.iter().collect::<Vec<_>>(), written, "{folder}");
    }
    for (eval, id, name) in [("eval-1", 1, "1"), ("eval-2", 2, "leap-year"), ("eval-5", 5, "a cry")] {
        let metadata = json(&project, &format!("all/{eval}/eval_metadata.json"));
        assert_eq!((&metadata["eval_id"], &metadata["eval_name"]), (&json!(id), &json!(name)));
    }
    let metadata = json(&project, "all/eval-2/eval_metadata.json");
    let statement = metadata["assertions"][0].as_str().expect("a text");
    assert!(statement.ends_with("February has one day more"), "{statement}");
    let benchmark = json(&project, "all/benchmark.json");
    assert_eq!(benchmark["metadata"]["evals_run"], json!([1, 2, 5]));
    let of_five = benchmark["runs"].as_array().expect("runs").iter().find(|run| run["eval_id"] == 5);
    assert_eq!(of_five.expect("a run")["eval_name"], "a cry");
    // What the agent wrote and what it said are two things.
    let outputs = "all/eval-5/with_skill/run-1/outputs";
    assert_eq!(read(&project, &format!("{outputs}/output.txt")), "made\n");
    assert_eq!(read(&project, &format!("{outputs}/final-answer.txt")).trim(), "kee-ow");
}

#[test]
fn a_trigger_set_beside_evals_leaves_them_their_layout() {
    let project = Project::new(&[]);
    let example = format!("{}/examples/skill-creator/.", env!("CARGO_MANIFEST_DIR"));
    assert!(Command::new("cp").arg("-r").arg(example).arg(project.path()).status().expect("cp").success());
    let run = ["run", "plain-contract", "--agent", "builtin", "--script", "script.yaml", "-q"];
    let ran = project.run(&[&run[..], &["--report", "skill-creator=out"]].concat()).exits(0);
    let note = "note: skill-creator: plain-contract-trigger-set only measures activation";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    assert!(project.path().join("out/eval-1/with_skill/run-1/grading.json").is_file());
    let metadata = &json(&project, "out/benchmark.json")["metadata"];
    assert_eq!(metadata["evals_run"], json!([1, 2]));
    let model = metadata["executor_model"].as_str().expect("a model");
    assert!(model.starts_with("claude-"), "it is who was seen, not {model}");
    // Alone they are written, as there is nothing that they would be in the way of.
    let args = [&run[..], &["--only", "activation", "--report", "skill-creator=alone"]].concat();
    project.run(&args).exits(0);
    assert!(project.path().join("alone/benchmark.json").is_file());
}
