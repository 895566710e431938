//! The versions of a skill: kept, listed, put back.

use std::process::Command;

use crate::common::Project;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: gull\ndescription: Speaks.\n---\n\nSay kee-ow.\n";

fn project() -> Project {
    Project::new(&[("gull/SKILL.md", SKILL), ("gull/evals/evals.json", "{}")])
}

#[track_caller]
fn fits(name: &str, document: &Value) {
    let schema = practicum::schema::schema(name).expect("a schema");
    if let Err(error) = jsonschema::draft202012::validate(schema, document) {
        panic!("{name}: {error} at {}\n{document:#}", error.instance_path());
    }
}

fn history(project: &Project) -> Value {
    let path = project.path().join("gull-workspace/history.json");
    serde_json::from_slice(&std::fs::read(path).expect("a history")).expect("JSON")
}

#[test]
fn a_skill_is_kept_listed_and_put_back() {
    let project = project();
    let ran = project.run(&["versions", "gull"]).exits(0);
    assert!(ran.stdout.contains("no versions yet"), "{}", ran.stdout);
    let ran = project.run(&["snapshot", "gull"]).exits(0);
    assert!(ran.stdout.starts_with("v0 kept in"), "{}", ran.stdout);
    project.write("gull/SKILL.md", &SKILL.replace("kee-ow", "hello"));
    project.run(&["snapshot", "gull", "-m", "politer \u{1b}[31m"]).exits(0);
    let ran = project.run(&["snapshot", "gull/SKILL.md"]).exits(0);
    assert!(ran.stdout.contains("as in v1"), "{}", ran.stdout);

    let history = history(&project);
    fits("history", &history);
    assert_eq!(history["current_version"], 1);
    assert_eq!(history["versions"][0]["description"], "baseline");
    assert_eq!(history["versions"][1]["git_hash"], Value::Null);
    assert_eq!(history["versions"][1]["path"], "v1/skill");
    assert!(!project.path().join("gull-workspace/v0/skill/evals").exists());

    project.write("gull/SKILL.md", &SKILL.replace("kee-ow", "something new"));
    let listed = project.run(&["versions", "gull", "--json"]).exits(0).json();
    fits("versions", &listed);
    assert_eq!((&listed["changed"], &listed["best"]), (&json!(true), &Value::Null));
    let ran = project.run(&["versions", "gull"]).exits(0);
    assert!(ran.stdout.contains("* v1") && !ran.stdout.contains('\u{1b}'), "{:?}", ran.stdout);

    let ran = project.run(&["restore", "gull", "v0"]).exits(0);
    assert!(ran.stdout.contains("kept as v2") && ran.stdout.contains("is v0 again"), "{}", ran.stdout);
    let text = std::fs::read_to_string(project.path().join("gull/SKILL.md")).expect("the skill");
    assert_eq!(text, SKILL);
    assert!(project.path().join("gull/evals/evals.json").exists());
    let ran = project.run(&["restore", "gull", "v9"]).exits(2);
    assert!(ran.stderr.contains("no version v9"), "{}", ran.stderr);
    project.run(&["restore", "gull", "yesterday"]).exits(2);
    let ran = project.run(&["snapshot", "nowhere"]).exits(2);
    assert!(ran.stderr.contains("no skill"), "{}", ran.stderr);
}

#[test]
fn a_version_names_its_commit_only_if_it_is_the_commit() {
    let project = project();
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let ran = Command::new("git").current_dir(project.path()).args(own).args(args).output().expect("git");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "gull"]);
    git(&["commit", "-qm", "one"]);
    project.run(&["snapshot", "gull"]).exits(0);
    project.write("gull/SKILL.md", &SKILL.replace("kee-ow", "hello"));
    project.run(&["snapshot", "gull"]).exits(0);
    let history = history(&project);
    assert_eq!(history["versions"][0]["git_hash"].as_str().map(str::len), Some(40));
    assert_eq!(history["versions"][1]["git_hash"], Value::Null);
}
