//! Files of writing-skills and skill-creator.

use std::process::Command;

use serde_json::{Value, json};

use super::common::{Project, Ran, claude, path_with};

/// One of the examples, in a project of its own.
fn example(name: &str) -> Project {
    let project = Project::new(&[]);
    let folder = format!("{}/examples/{name}/.", env!("CARGO_MANIFEST_DIR"));
    let copied = Command::new("cp").arg("-r").arg(folder).arg(project.path()).status();
    assert!(copied.expect("cp").success());
    project
}

fn read(project: &Project, path: &str) -> Value {
    let text = std::fs::read_to_string(project.path().join(path));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{path}: {error}"))).expect("JSON")
}

const RUN: [&str; 6] = ["run", ".", "--agent", "builtin", "--script", "script.yaml"];

#[test]
fn a_file_in_the_workspace_of_the_skill_is_not_missing() {
    let project = example("writing-skills");
    let fixtures = project.path().join("skills/alt-text/evals/fixtures");
    let workspace = project.path().join("skills/alt-text-workspace");
    std::fs::create_dir_all(&workspace).expect("create");
    std::fs::rename(fixtures, workspace.join("fixtures")).expect("moved");
    let checked = project.run(&["check", "skills/alt-text", "--json"]).exits(0).json();
    assert_eq!(checked["files"][0]["problems"], json!([]), "{checked}");
    project.run(&RUN).exits(0);
}

#[test]
fn scores_from_1_to_5_are_not_only_passed_or_failed() {
    let project = example("writing-skills");
    let summary = project.run(&[&RUN[..], &["--json"]].concat()).exits(0).json();
    let of = |summary: &Value, id: &str| -> Value {
        let cases = summary["cases"].as_array().expect("cases").iter();
        let mut checks = cases.flat_map(|case| case["checks"].as_array().expect("checks"));
        let check = checks.find(|check| check["id"] == id).expect("a check");
        json!([check["scale"], check["mean_score"], check["min_score"], check["max_score"]])
    };
    assert_eq!(of(&summary, "length"), json!(["1-5", 4.0, 4.0, 4.0]));
    assert_eq!(of(&summary, "message"), json!(["1-5", 5.0, 5.0, 5.0]));
    let shown = project.run(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("mean scores from 1 to 5: message 5.0, length 4.0, no-decoration 5.0"), "{shown}");
    let trial = project.run(&["show", "latest", "chart"]).exits(0).stdout;
    assert!(trial.contains("length (score 4, passes from 3): "), "{trial}");
}

#[test]
fn a_version_that_was_graded_is_not_lost() {
    let project = example("writing-skills");
    let graded = [&RUN[..], &["--report", "writing-skills=graded"]].concat();
    project.run(&graded).exits(0);
    let skill = std::fs::read_to_string(project.path().join("skills/alt-text/SKILL.md")).expect("a skill");
    project.write("skills/alt-text/SKILL.md", &format!("{skill}\nBe brief.\n"));
    project.run(&graded).exits(0);
    let history = read(&project, "graded/history.json");
    let described: Vec<&str> = history["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .filter_map(|version| version["description"].as_str())
        .collect();
    assert_eq!(described, ["baseline", "graded"], "{history}");
    for (version, brief) in [("v0", false), ("v1", true)] {
        let kept = project.path().join(format!("graded/{version}/skill/SKILL.md"));
        let text = std::fs::read_to_string(kept).expect("the files of the version");
        assert_eq!(text.contains("Be brief."), brief, "{version}");
        assert!(!project.path().join(format!("graded/{version}/skill/evals")).exists());
    }
}

#[test]
fn a_second_init_is_not_a_failure() {
    let project = example("writing-skills");
    for dialect in ["writing-skills", "native"] {
        for _ in 0..2 {
            project.run(&["init", "skills/alt-text", "--dialect", dialect]).exits(0);
        }
    }
    let history = read(&project, "skills/alt-text-workspace/history.json");
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(1), "{history}");
}

#[test]
fn the_average_is_not_a_different_mean_in_each_command() {
    let project = example("writing-skills");
    project.run(&[&RUN[..], &["--report", "writing-skills=graded"]].concat()).exits(0);
    // The chart has the scores 5, 4, 5, the divider 5: each case counts once.
    assert_eq!(read(&project, "graded/history.json")["versions"][0]["average_score"], json!(4.83));
    let schema = project.run(&["schema", "history"]).exits(0).stdout;
    assert!(schema.contains("mean over the cases"), "{schema}");
    project.run(&["snapshot", "skills/alt-text"]).exits(0);
    let listed = project.run(&["versions", "skills/alt-text"]).exits(0).stdout;
    assert!(listed.contains("mean score"), "{listed}");
}

/// Where skill-creator's viewer looks for the prompt of a run: in its folder, then in the one above.
fn prompt_for_the_viewer(project: &Project, run: &str) -> String {
    let above = run.rsplit_once('/').expect("a folder above").0;
    let found = [run, above]
        .into_iter()
        .find(|folder| project.path().join(folder).join("eval_metadata.json").is_file());
    let metadata = read(project, &format!("{}/eval_metadata.json", found.expect("metadata")));
    metadata["prompt"].as_str().expect("a prompt").to_owned()
}

#[test]
fn skill_creator_s_viewer_does_not_say_that_there_is_no_prompt() {
    let project = example("skill-creator");
    let ran = project.run(&[&RUN[..], &["--json", "--report", "skill-creator=out"]].concat());
    assert!([0, 1].contains(&ran.code), "{}", ran.stderr);
    let benchmark = read(&project, "out/benchmark.json");
    let runs = benchmark["runs"].as_array().expect("runs");
    assert!(runs.len() > 1, "{benchmark}");
    for run in runs {
        let (eval, configuration) = (&run["eval_id"], run["configuration"].as_str().expect("one"));
        let folder = format!("out/eval-{eval}/{configuration}/run-{}", run["run_number"]);
        assert!(!prompt_for_the_viewer(&project, &folder).is_empty());
        assert_eq!(read(&project, &format!("out/eval-{eval}/eval_metadata.json"))["eval_id"], *eval);
        let timing = read(&project, &format!("{folder}/timing.json"));
        for key in ["executor_start", "executor_end", "grader_start", "grader_end"] {
            assert!(timing[key].as_str().is_some_and(|at| at.ends_with('Z')), "{key}: {timing}");
        }
        assert!(timing["grader_duration_seconds"].is_number(), "{timing}");
        let metrics = read(&project, &format!("{folder}/outputs/metrics.json"));
        for key in
            ["total_tool_calls", "total_steps", "errors_encountered", "output_chars", "transcript_chars"]
        {
            assert!(metrics[key].is_number(), "{key}: {metrics}");
        }
        let outputs = std::fs::read_dir(project.path().join(&folder).join("outputs")).expect("outputs");
        let created = outputs.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let created = created.filter(|name| !["output.txt", "metrics.json"].contains(&name.as_str())).count();
        assert_eq!(metrics["files_created"].as_array().map(Vec::len), Some(created), "{metrics}");
    }
    let notes = benchmark["notes"].as_array().expect("notes");
    assert!(notes[0].as_str().is_some_and(|note| note.starts_with("with_skill meets ")), "{notes:?}");
    assert_ne!(benchmark["metadata"]["analyzer_model"], "");
}

#[test]
fn skill_creator_s_shapes_are_not_only_those_of_writing_skills() {
    let project = example("writing-skills");
    project.run(&["snapshot", "skills/alt-text"]).exits(0);
    let history = read(&project, "skills/alt-text-workspace/skill-creator/history.json");
    assert_eq!(history["skill_name"], "alt-text");
    assert_eq!(history["iterations"][0]["version"], "v0");
    assert_eq!(history["iterations"][0]["parent"], Value::Null);
    let keys: Vec<&String> = history["iterations"][0].as_object().expect("an object").keys().collect();
    let documented = ["expectation_pass_rate", "grading_result", "is_current_best", "parent", "version"];
    let mut keys: Vec<&str> = keys.into_iter().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, documented);

    let dimensions = [
        "description_quality",
        "convention_compliance",
        "type_specific_quality",
        "token_efficiency",
        "content_value",
    ];
    let scores: serde_json::Map<String, Value> =
        dimensions.iter().map(|name| ((*name).to_owned(), json!({"A": 8, "B": 6}))).collect();
    let input = json!({"winner": "A", "reasoning": "It is clearer.", "quote": "one", "scores": scores});
    let steps = json!([{"tools": [{"name": "report_comparison", "input": input}]}]);
    let script = json!({"practicum_script": 1, "scenarios": [{"name": "a", "to": "judge", "steps": steps}]});
    for (path, text) in [("judge.json", script.to_string().as_str()), ("a.md", "one"), ("b.md", "two")] {
        project.write(path, text);
    }
    project
        .run(&["compare", "a.md", "b.md", "--blind", "--request", "Write.", "--script", "judge.json"])
        .exits(0);
    let mut kept = std::fs::read_dir(project.path().join(".practicum/comparisons")).expect("kept").flatten();
    let folder = kept.next().expect("one").path().join("skill-creator");
    for number in [1, 2] {
        let text = std::fs::read_to_string(folder.join(format!("comparison-{number}.json"))).expect("a look");
        let look: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&look["winner"], &look["reasoning"]), (&json!("A"), &json!("It is clearer.")));
        assert_eq!(look["rubric"]["A"]["overall_score"], 8.0, "{look}");
        assert_eq!(look["rubric"]["B"]["structure_score"], 3.0, "{look}");
        assert_eq!(look["output_quality"]["A"]["strengths"].as_array().map(Vec::len), Some(5), "{look}");
    }
}

/// A project with two skills and no evals.
fn two_skills() -> Project {
    let project = Project::new(&[]);
    for name in ["dock", "other"] {
        let text =
            format!("---\nname: {name}\ndescription: Docks ships. Use for ships.\n---\nI am {name}.\n");
        project.write(&format!("skills/{name}/SKILL.md"), &text);
    }
    project.write("practicum.toml", "");
    project
}

const ONE_CASE: &str = r#"{"version": "1.0", "skill": "SKILL", "cases": [{"id": "a", "prompt": "p",
    "expectations": [{"criterion": "c", "description": "d", "required": true}]}]}"#;

#[test]
fn a_copied_skill_is_not_tested_as_its_original() {
    let project = two_skills();
    project.run(&["init", "skills/dock", "--dialect", "writing-skills"]).exits(0);
    assert_eq!(read(&project, "skills/dock/evals/evals.json")["skill"], "skills/dock");
    let original = project.path().join("skills/dock").display().to_string();
    for named in ["skills/other", "skills/dock", &original, "../../other/SKILL.md"] {
        project.write("skills/dock2/SKILL.md", "---\nname: dock2\ndescription: Docks. Use it.\n---\nCopy.\n");
        project.write("skills/dock2/evals/evals.json", &ONE_CASE.replace("SKILL\"", &format!("{named}\"")));
        let checked = project.run(&["check", "skills/dock2", "--json"]).exits(0).json();
        assert_eq!(checked["files"][0]["suite"], "dock2", "{named}: {checked}");
        let problem = &checked["files"][0]["problems"][0];
        assert_eq!(problem["code"], "skill-elsewhere", "{named}: {checked}");
        let message = problem["message"].as_str().expect("a message");
        assert!(message.contains("skills/dock2"), "both are named: {message}");
        let ran = project.run(&["run", "skills/dock2", "--agent", "builtin", "--no-judge", "--dry-run"]);
        assert!(ran.stderr.contains("which is the one under test"), "{}", ran.stderr);
    }
    // What lies in no skill goes by what it says, and a skill on the command line counts before all.
    project.write("evals/ships/evals.json", &ONE_CASE.replace("\"SKILL\"", "\"skills/other\""));
    let checked = project.run(&["check", "evals/ships", "--json"]).exits(0).json();
    assert_eq!(checked["files"][0]["suite"], "other", "{checked}");
    let named = ["check", "skills/dock2/evals/evals.json", "--skill", "skills/dock", "--json"];
    let checked = project.run(&named).exits(0).json();
    assert_eq!(checked["files"][0]["suite"], "dock", "{checked}");
}

#[test]
fn a_grading_does_not_judge_a_skill_that_changed_since() {
    let project = example("writing-skills");
    project.run(&RUN).exits(0);
    let skill = std::fs::read_to_string(project.path().join("skills/alt-text/SKILL.md")).expect("a skill");
    let compliance = |to: &str| {
        project.run(&["report", "latest", "--format", "writing-skills", "--output", to]).exits(0);
        let mut files =
            std::fs::read_dir(project.path().join(to).join("grading")).expect("gradings").flatten();
        let text = std::fs::read_to_string(files.next().expect("one").path()).expect("text");
        serde_json::from_str::<Value>(&text).expect("JSON")["convention_compliance"].clone()
    };
    assert!(!compliance("before").to_string().contains("unknown: "));
    project.write("skills/alt-text/SKILL.md", &format!("{skill}\nBe brief.\n"));
    let changed = compliance("after");
    for key in ["frontmatter", "description_field", "token_efficiency", "progressive_disclosure"] {
        assert_eq!(changed[key]["passed"], false, "{changed}");
        let details = changed[key]["details"].as_str().expect("details");
        assert!(details.starts_with("unknown: the skill has changed"), "{details}");
    }
}

#[test]
fn two_skills_are_not_versions_of_one() {
    let project = example("writing-skills");
    let (from, to) = (project.path().join("skills/alt-text"), project.path().join("skills/second"));
    assert!(Command::new("cp").arg("-r").args([&from, &to]).status().expect("cp").success());
    let skill = std::fs::read_to_string(to.join("SKILL.md")).expect("a skill");
    project.write("skills/second/SKILL.md", &skill.replace("name: alt-text", "name: second"));
    let run = ["run", "skills/alt-text", "skills/second", "--agent", "builtin", "--script", "script.yaml"];
    let ran = project.run(&[&run[..], &["--report", "writing-skills=out"]].concat());
    assert!([0, 1].contains(&ran.code), "{}", ran.stderr);
    for skill in ["alt-text", "second"] {
        let history = read(&project, &format!("out/{skill}/history.json"));
        assert_eq!(history["versions"].as_array().map(Vec::len), Some(1), "{history}");
    }
    assert!(!project.path().join("out/history.json").exists());
}

/// The names of the files in a folder, in order.
fn names_in(project: &Project, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(project.path().join(folder)).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn gradings_of_an_earlier_run_do_not_stand_among_those_of_the_latest() {
    let project = example("writing-skills");
    let graded = [&RUN[..], &["--report", "writing-skills=graded"]].concat();
    project.run(&[&graded[..], &["--repeat", "2"]].concat()).exits(0);
    let before = names_in(&project, "graded/grading");
    assert!(before.iter().any(|name| name.ends_with("_v0_run2.json")), "{before:?}");
    let again = project.run(&graded).exits(0);
    let after = names_in(&project, "graded/grading");
    assert!(after.iter().all(|name| name.ends_with("_v0_run1.json") || name == "earlier"), "{after:?}");
    assert_eq!(names_in(&project, "graded/grading/earlier"), before);
    let message = format!("{}{}", again.stdout, again.stderr);
    assert!(message.contains("of v0 from an earlier run moved to earlier"), "{message}");
    // Those of another version stay where they are.
    let skill = std::fs::read_to_string(project.path().join("skills/alt-text/SKILL.md")).expect("a skill");
    project.write("skills/alt-text/SKILL.md", &format!("{skill}\nBe brief.\n"));
    project.run(&graded).exits(0);
    let both = names_in(&project, "graded/grading");
    assert!(both.iter().any(|name| name.ends_with("_v0_run1.json")), "{both:?}");
    assert!(both.iter().any(|name| name.ends_with("_v1_run1.json")), "{both:?}");
}

#[test]
fn a_run_without_the_skill_is_not_a_history_of_it() {
    let project = example("writing-skills");
    let ran = project.run(&[&RUN[..], &["--arm", "without", "--report", "writing-skills=graded"]].concat());
    let message = format!("{}{}", ran.stdout, ran.stderr);
    assert!(message.contains("no gradings and no history are written"), "{message}");
    assert!(!project.path().join("graded/history.json").exists());
}

#[test]
fn changed_evals_in_a_skill_are_no_new_version_of_it() {
    let project = Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nkee-ow\n"),
        ("gull/tests/one.yaml", "timestamp: t\nname: n\nprompt: speak\nexpected: says kee\n"),
        ("gull/quality.json", r#"{"evals": [{"prompt": "p", "expectations": ["kee"]}]}"#),
        ("gull/.env", "K=1\n"),
        ("gull/data.json", r#"{"a": 1}"#),
    ]);
    project.run(&["snapshot", "gull"]).exits(0);
    for kept_out in ["tests/one.yaml", "quality.json", ".env"] {
        assert!(!project.path().join("gull-workspace/v0/skill").join(kept_out).exists(), "{kept_out}");
    }
    assert!(project.path().join("gull-workspace/v0/skill/data.json").exists());
    project.write("gull/tests/one.yaml", "timestamp: t\nname: n\nprompt: speak\nexpected: says ow\n");
    project.write("gull/.env", "K=2\n");
    let again = project.run(&["snapshot", "gull"]).exits(0);
    assert!(again.stdout.contains("as in v0"), "{}", again.stdout);
    // What is no part of a version is not taken away with it either.
    project.write("gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nhello\n");
    project.run(&["restore", "gull", "v0"]).exits(0);
    assert!(project.path().join("gull/.env").exists() && project.path().join("gull/tests/one.yaml").exists());
}

#[test]
fn a_graded_version_does_not_lose_its_files_when_the_skill_changes_before_the_report() {
    let project = example("writing-skills");
    project.run(&RUN).exits(0);
    let skill = std::fs::read_to_string(project.path().join("skills/alt-text/SKILL.md")).expect("a skill");
    project.write("skills/alt-text/.env", "K=1\n");
    project.write("skills/alt-text/SKILL.md", &format!("{skill}\nBe brief.\n"));
    project.run(&RUN).exits(0);
    project.write("skills/alt-text/SKILL.md", &format!("{skill}\nBe long.\n"));
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let mut runs: Vec<String> = runs.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    runs.sort();
    for run in &runs {
        project.run(&["report", run, "--format", "writing-skills", "-o", "graded"]).exits(0);
    }
    for (version, brief) in [("v0", false), ("v1", true)] {
        let kept = project.path().join(format!("graded/{version}/skill/SKILL.md"));
        let text = std::fs::read_to_string(kept).unwrap_or_else(|error| panic!("{version}: {error}"));
        assert_eq!((text.contains("Be brief."), text.contains("Be long.")), (brief, false), "{version}");
        assert!(!project.path().join(format!("graded/{version}/skill/.env")).exists());
    }
    // Graded again, the run has no copy of its own.
    project.run(&["grade", &runs[0], "--script", "script.yaml"]).exits(0);
    project.run(&["report", "latest", "--format", "writing-skills", "-o", "again"]).exits(0);
    assert!(project.path().join("again/v0/skill/SKILL.md").exists());
}

/// The same project with a judge that gives no scores.
fn silence_judge(project: &Project) {
    let script = std::fs::read_to_string(project.path().join("script.yaml")).expect("a script");
    let agent = script.split("  - name: the chart is judged").next().expect("the agent's part");
    let judge = "  - {name: silent, to: judge, when: {regex: .}, steps: [none, none, none]}\n";
    project.write("script.yaml", &format!("{agent}{judge}"));
}

fn edit_skill(project: &Project, line: &str) {
    let skill = std::fs::read_to_string(project.path().join("skills/alt-text/SKILL.md")).expect("a skill");
    project.write("skills/alt-text/SKILL.md", &format!("{skill}\n{line}\n"));
}

/// The ids of the stored runs, the oldest first.
fn runs(project: &Project) -> Vec<String> {
    names_in(project, ".practicum/runs")
}

#[test]
fn a_resumed_run_does_not_count_an_edited_skill_as_the_one_it_began_with() {
    let project = example("writing-skills");
    silence_judge(&project);
    let graded = [&RUN[..], &["--report", "writing-skills=graded"]].concat();
    project.run(&graded).exits(3);
    edit_skill(&project, "Be brief.");
    let message = project.run(&["run", "--resume", "latest"]).exits(2).stderr;
    assert!(message.contains("cannot be resumed, because the skill has changed since: "), "{message}");
    assert!(message.contains("skills/alt-text"), "{message}");
    let history = read(&project, "graded/history.json");
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(1), "{history}");
    // A run without the skill does not depend on it.
    let without = example("writing-skills");
    silence_judge(&without);
    without.run(&[&RUN[..], &["--arm", "without"]].concat()).exits(3);
    edit_skill(&without, "Be brief.");
    without.run(&["run", "--resume", "latest"]).exits(3);
}

#[test]
fn gradings_of_an_earlier_run_are_not_those_of_a_run_without_any() {
    let project = example("writing-skills");
    let graded = [&RUN[..], &["--report", "writing-skills=graded"]].concat();
    project.run(&graded).exits(0);
    let before = names_in(&project, "graded/grading");
    silence_judge(&project);
    let message = project.run(&[&graded[..], &["--no-cache"]].concat()).exits(3).stderr;
    assert!(message.contains("2 gradings of v0 from an earlier run moved to earlier"), "{message}");
    assert!(message.contains("no gradings are written"), "{message}");
    assert_eq!(names_in(&project, "graded/grading"), ["earlier"]);
    assert_eq!(names_in(&project, "graded/grading/earlier"), before);
    assert_eq!(read(&project, "graded/history.json")["versions"][0]["average_score"], Value::Null);
    // A run without the skill says nothing of its versions, so that theirs stay.
    let project = example("writing-skills");
    project.run(&graded).exits(0);
    project.run(&[&graded[..], &["--arm", "without"]].concat());
    assert_eq!(names_in(&project, "graded/grading"), before);
}

#[test]
fn the_report_of_an_older_run_does_not_replace_later_gradings() {
    let project = example("writing-skills");
    let graded = [&RUN[..], &["--no-cache", "--report", "writing-skills=graded"]].concat();
    project.run(&graded).exits(0);
    silence_judge(&project);
    project.run(&[&graded[..], &["--case", "chart"]].concat()).exits(3);
    let before = names_in(&project, "graded/grading");
    let report = |run: &str, to: &str| project.run(&["report", run, "--format", "writing-skills", "-o", to]);
    let older = runs(&project)[0].clone();
    let message = report(&older, "graded").exits(2).stderr;
    assert!(message.contains(&format!("later than those of run {older}; name another folder")), "{message}");
    assert_eq!(names_in(&project, "graded/grading"), before);
    report(&older, "elsewhere").exits(0);
    // Grading old trials again does not make them later ones.
    project.run(&["grade", &older, "--no-judge"]).exits(3);
    let message = report("latest", "graded").exits(2).stderr;
    assert!(message.contains(&format!("which graded the trials of {older} again")), "{message}");
    report("latest", "elsewhere").exits(0);
    report(&older, "elsewhere").exits(2);
}

#[test]
fn a_run_that_is_reported_twice_is_not_an_earlier_one() {
    let project = example("writing-skills");
    project.run(&RUN).exits(0);
    for _ in 0..2 {
        let message =
            project.run(&["report", "latest", "--format", "writing-skills", "-o", "graded"]).exits(0);
        assert!(!message.stderr.contains("moved to earlier"), "{}", message.stderr);
    }
    assert_eq!(names_in(&project, "graded/grading").len(), 2);
}

#[test]
fn two_skills_that_run_one_after_the_other_are_not_versions_of_one() {
    let project = example("writing-skills");
    let (from, to) = (project.path().join("skills/alt-text"), project.path().join("skills/second"));
    assert!(Command::new("cp").arg("-r").args([&from, &to]).status().expect("cp").success());
    for (skill, written) in [("alt-text", true), ("second", false), ("alt-text", true)] {
        let path = format!("skills/{skill}");
        project.run(&["run", &path, "--agent", "builtin", "--script", "script.yaml"]);
        let message = project.run(&["report", "latest", "--format", "writing-skills", "-o", "out"]);
        assert_eq!(message.code, if written { 0 } else { 2 }, "{skill}: {}", message.stderr);
        assert_eq!(
            message.stderr.contains("the versions of the skill alt-text"),
            !written,
            "{}",
            message.stderr
        );
    }
    let history = read(&project, "out/history.json");
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(1), "{history}");
}

#[test]
fn a_skill_that_is_edited_during_a_run_is_not_the_one_that_the_run_began_with() {
    let project = Project::new(&[
        ("gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nkee-ow\n"),
        (
            "gull/evals/e.practicum.yaml",
            "practicum: 1\nskill: gull\nworkspace: empty\nrun: {agents: [own]}\ncases:\n  - {id: a, prompt: edit, checks: [{contains: done}]}\n  - {id: b, prompt: look, checks: [{contains: done}]}\n",
        ),
    ]);
    let skill = project.path().join("gull/SKILL.md");
    let agent = format!("if [ \"$1\" = edit ]; then echo More. >> {}; fi\necho done\n", skill.display());
    project.write("agent.sh", &agent);
    let command = project.path().join("agent.sh");
    let settings = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n",
        command.display()
    );
    project.write("practicum.toml", &settings);
    let run = ["run", "gull", "--skill", "gull", "--no-probe", "-j", "1", "--json"];
    let summary = project.run(&run).exits(3).json();
    assert_eq!((&summary["totals"]["passed"], &summary["totals"]["not_scored"]), (&json!(1), &json!(1)));
    let why = summary["cases"][1]["not_scored_because"][0].as_str().expect("why").to_owned();
    assert!(why.contains("was changed while the run was going on"), "{why}");
    // The run without the skill does not depend on it.
    let without = project.run(&[&run[..], &["--arm", "without", "--no-cache"]].concat()).json();
    assert_eq!(without["totals"]["not_scored"], 0, "{without}");
}

#[test]
fn a_changed_fixture_and_an_open_criterion_are_not_told_in_some_reports_only() {
    let project = example("writing-skills");
    let script = std::fs::read_to_string(project.path().join("script.yaml")).expect("a script");
    let read = "- tools: [{ name: Read, input: { file_path: \"{{workspace}}/fixtures/chart.md\" } }]";
    let write =
        "- tools: [{ name: Write, input: { file_path: \"{{workspace}}/fixtures/chart.md\", content: x } }]";
    let criterion = script.find("                - id: no-decoration").expect("a criterion");
    let next = script.find("  - name: the divider is judged").expect("a scenario");
    let script = format!("{}{}", &script[..criterion], &script[next..]).replacen(read, write, 1);
    project.write("script.yaml", &script);
    let files = ["md", "html", "junit", "csv", "json", "text", "github", "github-comment"];
    let folders = ["skill-creator", "agentskills", "writing-skills"];
    let orders: Vec<String> = files.iter().chain(&folders).map(|name| format!("{name}=out/{name}")).collect();
    let orders = orders.iter().flat_map(|order| ["--report", order.as_str()]);
    let ran = project.run(&RUN.into_iter().chain(orders).collect::<Vec<&str>>()).exits(0);
    let text = |path: &str| {
        std::fs::read_to_string(project.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let in_folders = [
        "out/skill-creator/benchmark.json",
        "out/agentskills/benchmark.json",
        "out/writing-skills/grading/chart_v0_run1.json",
    ];
    let message = files.map(|name| (name, text(&format!("out/{name}"))));
    let message =
        message.into_iter().chain(in_folders.map(|path| (path, text(path)))).chain([("summary", ran.stdout)]);
    for (name, message) in message {
        assert!(message.contains("the agent changed fixtures/chart.md"), "{name}: {message}");
        let names_criterion = ["no-decoration", "neither the colour", "1 expectation without an answer"];
        assert!(names_criterion.iter().any(|words| message.contains(words)), "{name}: {message}");
    }
}

/// Both agents have a run 1 of the case. Only Claude Code sets the variable.
#[test]
fn the_gradings_of_two_agents_are_not_those_of_one() {
    let project = two_skills();
    project.write("skills/dock/evals/evals.json", &ONE_CASE.replace("\"SKILL\"", "\"skills/dock\""));
    let judge_steps = |score: u32| {
        let result = json!({"id": "c", "score": score, "evidence": ["The end."], "reasoning": "r"});
        json!([{"tools": [{"name": "report_marks", "input": {"results": [result]}}]}])
    };
    let echo = json!({"tools": [{"name": "Bash", "input": {"command": "echo agent-$CLAUDECODE-here"}}]});
    let script = json!({"practicum_script": 1, "scenarios": [
        {"name": "agent", "steps": [echo, "The end."]},
        {"name": "claude", "to": "judge", "when": "agent-1-here", "steps": judge_steps(5)},
        {"name": "other", "to": "judge", "when": "agent--here", "steps": judge_steps(3)},
        {"name": "skill", "to": "judge", "steps": ["no"]},
    ]});
    project.write("script.yaml", &script.to_string());
    let mut command = project.practicum(&["run", "skills/dock", "--agent", "builtin", "--agent", "claude"]);
    command.args(["--script", "script.yaml", "--no-probe", "--report", "writing-skills=out"]);
    command.env("PATH", path_with(&claude()));
    Ran::of(command.output().expect("practicum starts")).exits(0);
    for (agent, score) in [("builtin", 3.0), ("claude", 5.0)] {
        let folder = format!("out/{agent}");
        assert_eq!(names_in(&project, &format!("{folder}/grading")), ["a_v0_run1.json"]);
        let grading = read(&project, &format!("{folder}/grading/a_v0_run1.json"));
        assert_eq!(grading["overall_score"], score, "{grading}");
        assert_eq!(read(&project, &format!("{folder}/history.json"))["versions"][0]["average_score"], score);
    }
}

#[test]
fn a_trial_with_some_scores_is_not_said_to_have_none() {
    let project = example("writing-skills");
    let script = std::fs::read_to_string(project.path().join("script.yaml")).expect("a script");
    let (message, length) =
        (script.find("                - id: message"), script.find("                - id: length"));
    let script =
        format!("{}{}", &script[..message.expect("a criterion")], &script[length.expect("another")..]);
    project.write("script.yaml", &script);
    let ran =
        project.run(&[&RUN[..], &["--case", "chart", "--report", "writing-skills=out"]].concat()).exits(3);
    assert!(!ran.stderr.contains("has scores from 1 to 5"), "{}", ran.stderr);
    assert!(ran.stderr.contains("every trial lacks the score of a required criterion"), "{}", ran.stderr);
}

#[test]
fn a_skill_that_is_named_is_not_said_to_be_missing() {
    let project = two_skills();
    let evals =
        ONE_CASE.replace("\"skill\": \"SKILL\"", "\"skill_name\": \"dock\"").replace("cases", "evals");
    project.write("skills/dock/evals/evals.json", &evals);
    let checked = project.run(&["check", "skills/dock", "--json"]).exits(0).json();
    assert_eq!(checked["files"][0]["problems"], json!([]), "{checked}");
}
