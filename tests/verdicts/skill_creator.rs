//! The reports of skill-creator and agentskills.io.

use serde_json::{Value, json};

use super::common::Project;

const SKILL: &str =
    "---\nname: dock\ndescription: Use when a Dockerfile is wanted.\n---\n\nWrite FROM first.\n";

/// What a judge says of each expectation, by its place.
fn marks(verdicts: &[&str]) -> Value {
    let ids = ["has-from", "has-cmd"];
    let results: Vec<Value> = ids
        .iter()
        .zip(verdicts)
        .map(|(id, verdict)| {
            json!({"id": id, "verdict": verdict, "evidence": ["FROM alpine"], "reasoning": "r"})
        })
        .collect();
    let step = json!({"tools": [{"name": "report_marks", "input": {"results": results}}]});
    json!({"to": "judge", "when": {"regex": "."}, "steps": [step, step]})
}

fn project(eval: &Value, agent: &Value, verdicts: &[&str]) -> Project {
    let evals = json!({"skill_name": "dock", "evals": [eval]}).to_string();
    let script = json!({"practicum_script": 1, "scenarios": [agent, marks(verdicts)]}).to_string();
    Project::new(&[("dock/SKILL.md", SKILL), ("dock/evals/evals.json", &evals), ("script.yaml", &script)])
}

fn eval() -> Value {
    json!({"id": 1, "prompt": "Make it", "expected_output": "A Dockerfile", "files": [],
        "expectations": ["Has FROM", "Has CMD"]})
}

fn answers() -> Value {
    json!({"when": "Make it", "steps": ["FROM alpine"]})
}

const RUN: [&str; 6] = ["run", ".", "--agent", "builtin", "--script", "script.yaml"];

fn read(project: &Project, path: &str) -> Value {
    let text = std::fs::read_to_string(project.path().join(path));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{path}: {error}"))).expect("JSON")
}

#[test]
fn a_run_with_an_expectation_without_an_answer_is_not_all_passed() {
    let project = project(&eval(), &answers(), &["pass"]);
    let graded = [&RUN[..], &["--report", "skill-creator=sc", "--report", "agentskills=as"]].concat();
    // What an earlier run left is not this run's.
    project.write("sc/eval-1/with_skill/run-1/grading.json", "{}");
    project.run(&graded).exits(3);
    for folder in ["sc/eval-1/with_skill/run-1", "sc/eval-1/without_skill/run-1", "as/eval-1/with_skill"] {
        assert!(project.path().join(folder).join("timing.json").exists(), "{folder}");
        assert!(!project.path().join(folder).join("grading.json").exists(), "{folder}");
    }
    for benchmark in [read(&project, "sc/benchmark.json"), read(&project, "as/benchmark.json")] {
        assert_eq!(benchmark["run_summary"], json!({}), "{benchmark}");
        let note = benchmark["notes"][0].as_str().expect("a note");
        assert!(note.starts_with("eval 1 (1), with_skill, run 1 is not scored: "), "{note}");
    }
}

#[test]
fn activation_is_no_difference_between_the_arms() {
    let mut eval = eval();
    eval["should_trigger"] = json!(false);
    let agent = json!({"when": "Make it",
        "steps": [{"tools": [{"name": "Skill", "input": {"skill": "dock"}}]}, "FROM alpine"]});
    let project = project(&eval, &agent, &["pass", "pass"]);
    let ran = project.run(&[&RUN[..], &["--json", "--report", "skill-creator=sc"]].concat());
    let summary = ran.json();
    assert_eq!(summary["arms"]["difference"]["value"], 0.0, "{}", summary["arms"]);
    let benchmark = read(&project, "sc/benchmark.json");
    assert_eq!(benchmark["run_summary"]["delta"]["pass_rate"], "+0.00", "{benchmark}");
}

#[test]
fn what_the_agent_counted_and_noted_is_not_lost_or_contradicted() {
    let write = |path: &str, content: &str| json!({"name": "Write", "input": {"file_path": path, "content": content}});
    let notes = "# Uncertainty\n- which tag\n\n# Needs Human Review\n- the port\n\n# Workarounds\n- none\n";
    let agent = json!({"when": "Make it", "steps": [{"tools": [
        write("outputs/Dockerfile", "FROM alpine\n"),
        write("outputs/metrics.json", "{\"total_tool_calls\": 77}"),
        write("user_notes.md", notes),
    ]}, "FROM alpine"]});
    let project = project(&eval(), &agent, &["pass", "pass"]);
    project.run(&[&RUN[..], &["--report", "skill-creator=sc"]].concat()).exits(0);
    let run = "sc/eval-1/with_skill/run-1";
    assert!(project.path().join(run).join("outputs/Dockerfile").exists());
    assert!(!project.path().join(run).join("outputs/outputs").exists());
    let grading = read(&project, &format!("{run}/grading.json"));
    let counted = json!({"total_tool_calls": 77});
    assert_eq!(grading["execution_metrics"], counted);
    assert_eq!(read(&project, &format!("{run}/outputs/metrics.json")), counted);
    let noted = &grading["user_notes_summary"];
    assert_eq!((&noted["uncertainties"], &noted["workarounds"]), (&json!(["which tag"]), &json!(["none"])));
    assert_eq!(noted["needs_review"][0], "the port");
    let timing = &grading["timing"];
    let seconds = |key: &str| timing[key].as_f64().unwrap_or_default();
    let sum = seconds("executor_duration_seconds") + seconds("grader_duration_seconds");
    assert!((seconds("total_duration_seconds") - sum).abs() < 0.002, "{timing}");
}

/// The files below a folder that viewers read, in order.
fn found_by_viewers(project: &Project, folder: &str) -> Vec<String> {
    let root = project.path().join(folder);
    let walk = ignore::WalkBuilder::new(&root).standard_filters(false).build().flatten();
    let files = walk.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let names = files.map(|entry| entry.path().strip_prefix(&root).expect("below").display().to_string());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with(".practicum-")).collect();
    names.sort();
    names
}

#[test]
fn files_of_an_earlier_run_are_not_results_of_the_latest() {
    let leaves = |file: &str| {
        let input = json!({"file_path": format!("outputs/{file}"), "content": "FROM alpine\n"});
        json!({"when": "Make it", "steps": [{"tools": [{"name": "Write", "input": input}]}, "FROM alpine"]})
    };
    for report in ["skill-creator", "agentskills"] {
        let first = project(&eval(), &leaves("old"), &["pass", "pass"]);
        let order = format!("{report}=out");
        first.run(&[&RUN[..], &["--repeat", "3", "--report", &order]].concat()).exits(0);
        first.write("out/feedback.json", "{}");
        first.write("out/eval-1/with_skill/mine.txt", "mine");
        assert!(found_by_viewers(&first, "out").iter().any(|path| path.ends_with("run-3/outputs/old")));
        let script = json!({"practicum_script": 1, "scenarios": [leaves("new"), marks(&["pass", "pass"])]});
        first.write("script.yaml", &script.to_string());
        let told = first.run(&[&RUN[..], &["--report", &order]].concat()).exits(0).stderr;
        assert!(told.contains(" of an earlier run replaced"), "{told}");
        first.run(&["report", "latest", "--format", report, "-o", "fresh"]).exits(0);
        let mut expected = found_by_viewers(&first, "fresh");
        // What somebody else put there stays.
        expected.extend(["feedback.json".to_owned(), "eval-1/with_skill/mine.txt".to_owned()]);
        expected.sort();
        assert_eq!(found_by_viewers(&first, "out"), expected, "{report}");
    }
}

#[test]
fn the_report_of_an_older_run_does_not_replace_a_later_one() {
    let project = project(&eval(), &answers(), &["pass", "pass"]);
    let run = [&RUN[..], &["--no-cache", "--report", "skill-creator=sc"]].concat();
    project.run(&run).exits(0);
    let older = project.only_run().file_name().expect("an id").to_string_lossy().into_owned();
    project.run(&[&run[..], &["--arm", "without"]].concat());
    assert!(
        !found_by_viewers(&project, "sc")
            .iter()
            .any(|path| path.contains("with_skill/run-1/grading") && !path.contains("without_skill"))
    );
    let before = found_by_viewers(&project, "sc");
    let report = |to: &str| project.run(&["report", &older, "--format", "skill-creator", "-o", to]);
    let told = report("sc").exits(2).stderr;
    assert!(told.contains(&format!("later than those of run {older}; name another folder")), "{told}");
    assert_eq!(found_by_viewers(&project, "sc"), before);
    report("elsewhere").exits(0);
}

#[test]
fn gradings_that_nobody_knows_are_not_shown_without_a_word() {
    let project = project(&eval(), &answers(), &["pass", "pass"]);
    project.write("sc/eval-1/with_skill/run-2/grading.json", "{}");
    let told = project.run(&[&RUN[..], &["--report", "skill-creator=sc"]].concat()).exits(0).stderr;
    let expected = "1 grading in the folder, such as eval-1/with_skill/run-2/grading.json";
    assert!(told.contains(expected), "{told}");
}

/// A project whose agent activates the skill and answers, with one eval that has these keys and this assertion.
fn activating_project(keys: &Value, assertion: &Value) -> Project {
    let mut eval = json!({"id": 1, "prompt": "Make it", "assertions": [assertion]});
    for (key, value) in keys.as_object().expect("keys") {
        eval[key] = value.clone();
    }
    let agent = json!({"when": "Make it",
        "steps": [{"tools": [{"name": "Skill", "input": {"skill": "dock"}}]}, "FROM alpine"]});
    project(&eval, &agent, &[])
}

const RUN_WITH: [&str; 8] = ["run", ".", "--agent", "builtin", "--script", "script.yaml", "--arm", "with"];

/// The key was ignored, and a skill that was activated where it must not be passed.
#[test]
fn a_negative_case_is_not_lost_by_how_its_key_is_spelt() {
    let assertion = json!({"name": "a", "type": "contains", "value": "FROM"});
    for keys in [
        json!({"should_not_trigger": true}),
        json!({"should_not_activate": true}),
        json!({"must_activate": false}),
        json!({"trigger": false}),
        json!({"negative": true}),
        json!({"shouldTrigger": false}),
        json!({"expected_skills": []}),
        json!({"expect": "no-trigger"}),
        json!({"should_fire": false}),
        json!({"should_use_skill": false}),
        json!({"must_not_activate": true}),
        json!({"expected_skill": "none"}),
        json!({"expected_activation": "none"}),
    ] {
        let ran = activating_project(&keys, &assertion).run(&RUN_WITH).exits(1);
        assert!(ran.stdout.contains("dock was activated, and must not be"), "{keys}: {}", ran.stdout);
    }
    for keys in
        [json!({"expected_skills": ["dock"]}), json!({"expect": "trigger"}), json!({"should_fire": true})]
    {
        activating_project(&keys, &assertion).run(&RUN_WITH).exits(0);
    }
}

/// What an eval asks for under an unknown key was a note at most, and none in a run.
#[test]
fn a_check_or_a_precondition_that_is_not_read_is_told_in_a_run() {
    let assertion = json!({"name": "a", "type": "contains", "value": "FROM"});
    for key in ["must_be", "expected_tools", "expected_files", "setup", "fixture", "preconditions", "fiels"] {
        let project = activating_project(&json!({key: ["x"]}), &assertion);
        for said in [project.run(&RUN_WITH).exits(0).stderr, project.run(&["check", "."]).exits(0).stdout] {
            let line = format!("warning[unknown-key]: an eval has a key \"{key}\"");
            assert!(said.contains(&line), "{key}: {said}");
        }
    }
}

/// The check was made the other way round, or on another text than the author named.
#[test]
fn an_assertion_is_not_checked_the_other_way_round_or_on_another_text() {
    let with = |more: Value| {
        let mut assertion = json!({"name": "a", "type": "contains", "value": "FROM"});
        for (key, value) in more.as_object().expect("keys") {
            assertion[key] = value.clone();
        }
        assertion
    };
    for (assertion, code) in [
        (with(json!({})), 0),
        (with(json!({"expect": "absent"})), 1),
        (with(json!({"negate": true})), 1),
        (with(json!({"expected": false})), 1),
        (with(json!({"type": "not_contains", "negate": true})), 0),
        (with(json!({"type": "regex", "value": "F.OM", "expect": "absent"})), 1),
        (with(json!({"type": "regex", "value": "Z.OM", "expect": "absent"})), 0),
        (with(json!({"type": "starts_with", "negate": true})), 2),
        (with(json!({"path": "Dockerfile"})), 1),
        (with(json!({"file": "Dockerfile"})), 1),
        (with(json!({"target": "a/Dockerfile"})), 1),
        (with(json!({"target": "output"})), 0),
        (with(json!({"target": "stderr"})), 2),
    ] {
        let ran = activating_project(&json!({}), &assertion).run(&RUN_WITH);
        assert_eq!(ran.code, code, "{assertion}: {}{}", ran.stdout, ran.stderr);
    }
}

/// The judge was asked for the name of the assertion, and not for what it says.
#[test]
fn what_a_judged_assertion_says_is_not_dropped() {
    for assertion in [
        json!({"name": "x", "type": "llm_judge", "value": "says zebra twice"}),
        json!({"name": "x", "type": "semantic", "criteria": ["says zebra twice"]}),
        json!({"name": "x", "type": "rubric", "rubric": "says zebra twice"}),
        json!({"name": "x", "check": "regex", "pattern": "says zebra twice"}),
        json!({"name": "x", "type": "tone", "value": "says zebra twice"}),
    ] {
        let project = activating_project(&json!({}), &assertion);
        let native = project.run(&["convert", "dock/evals/evals.json", "--to", "native"]);
        let said = native.stdout;
        let judged = said.lines().find(|line| line.contains("judge:")).unwrap_or_default();
        assert!(judged.contains("x: ") && judged.contains("says zebra twice"), "{assertion}: {said}");
    }
}

/// BMad runs with the skill only, skill-creator also without it. The folder of a skill tells; the type of an id does
/// not.
#[test]
fn a_format_that_was_guessed_is_not_kept_quiet_in_a_run() {
    let mut eval = eval();
    eval["id"] = json!("one");
    let project = project(&eval, &answers(), &["pass", "pass"]);
    let ran = project.run(&RUN).exits(0);
    assert!(!ran.stderr.contains("could also be"), "{}", ran.stderr);
    let evals = std::fs::read_to_string(project.path().join("dock/evals/evals.json")).expect("evals");
    project.write("elsewhere/evals.json", &evals);
    let run = ["run", "elsewhere", "--skill", "dock", "--agent", "builtin", "--script", "script.yaml"];
    let told = project.run(&run).exits(0).stderr;
    assert!(told.contains("read as skill-creator") && told.contains("it could also be bmad"), "{told}");
    let told = project.run(&[&run[..], &["--dialect", "skill-creator"]].concat()).exits(0).stderr;
    assert!(!told.contains("could also be"), "{told}");
}

#[test]
fn a_trial_without_the_skill_does_not_read_as_one_with_it() {
    let ran = project(&eval(), &answers(), &["pass", "pass"]).run(&RUN).exits(0);
    let finished = |arm: &str| ran.stderr.lines().filter(|line| line.contains(arm)).count();
    assert_eq!(
        (finished(" 1 #1 (builtin, without, "), finished(" 1 #1 (builtin, ")),
        (1, 2),
        "{}",
        ran.stderr
    );
}
