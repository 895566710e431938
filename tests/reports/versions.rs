//! Which version of a skill the gradings of writing-skills are of, and what becomes of its history.

use std::process::Command;

use serde_json::Value;

use super::common::Project;
use super::foreign::alt_text;
use super::{files, json, read};

/// A history of two versions, both committed, of which the second is graded.
fn two_versions() -> Project {
    let project = alt_text();
    git(&project, &["init", "-q"]);
    for (line, message) in [("", "base"), ("\nKeep it short.\n", "second")] {
        project.write("skills/alt-text/SKILL.md", &format!("{}{line}", read(&project, SKILL)));
        git(&project, &["add", "skills"]);
        git(&project, &["commit", "-qm", message]);
        project.run(&["snapshot", "skills/alt-text", "-m", message]).exits(0);
    }
    project
}

const SKILL: &str = "skills/alt-text/SKILL.md";
const WORKSPACE: &str = "skills/alt-text-workspace";

fn git(project: &Project, args: &[&str]) -> String {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").arg("-C").arg(project.path()).args(own).args(args).output().expect("git");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

fn graded_into(project: &Project, folder: &str) {
    project.run(&["run", ".", "-q", "--agent", "builtin", "--script", "script.yaml"]).exits(0);
    reported_into(project, folder);
}

fn reported_into(project: &Project, folder: &str) {
    project.run(&["report", "latest", "--format", "writing-skills", "-o", folder]).exits(0);
}

/// Of each version: number, description, whether it has a commit, whether it has a score.
fn versions(project: &Project, folder: &str) -> Vec<(u64, String, bool, bool)> {
    let history = json(project, &format!("{folder}/history.json"));
    let of = |version: &Value| {
        let number = version["version"].as_u64().expect("a number");
        let description = version["description"].as_str().expect("words").to_owned();
        (number, description, version["git_hash"].is_string(), version["average_score"].is_number())
    };
    history["versions"].as_array().expect("versions").iter().map(of).collect()
}

fn version(number: u64, description: &str, committed: bool, scored: bool) -> (u64, String, bool, bool) {
    (number, description.to_owned(), committed, scored)
}

#[test]
fn a_grading_is_of_the_version_that_ran_and_the_history_loses_nothing() {
    let project = two_versions();
    graded_into(&project, WORKSPACE);
    let (base, second) = (version(0, "base", true, false), version(1, "second", true, true));
    assert_eq!(versions(&project, WORKSPACE), [base.clone(), second.clone()]);
    let grading = json(&project, &format!("{WORKSPACE}/grading/chart_v1_run1.json"));
    assert_eq!(grading["version"], 1);
    assert_eq!(files(&project, &format!("{WORKSPACE}/grading"), ".json").len(), 2);
    // Elsewhere it is the same version, too, and in the same place.
    reported_into(&project, "elsewhere");
    assert_eq!(versions(&project, "elsewhere"), [base.clone(), second.clone()]);
    assert!(project.path().join("elsewhere/grading/chart_v1_run1.json").is_file());

    // What ran counts, not what the skill has become since.
    project.write(SKILL, &format!("{}\nThird.\n", read(&project, SKILL)));
    reported_into(&project, WORKSPACE);
    assert_eq!(versions(&project, WORKSPACE), [base.clone(), second.clone()]);
    project.run(&["snapshot", "skills/alt-text", "-m", "third"]).exits(0);
    reported_into(&project, WORKSPACE);
    assert_eq!(versions(&project, WORKSPACE), [base, second, version(2, "third", false, false)]);
    assert_eq!(json(&project, &format!("{WORKSPACE}/history.json"))["current_version"], 2);
    project.run(&["grade", "latest", "--script", "script.yaml"]).exits(0);
    reported_into(&project, "again");
    let scored: Vec<u64> = versions(&project, "again").iter().filter(|of| of.3).map(|of| of.0).collect();
    assert_eq!(scored, [1], "graded again");
}

#[test]
fn a_skill_that_nobody_kept_is_a_version_of_its_own_and_known_again() {
    let project = two_versions();
    project.write(SKILL, &format!("{}\nThird.\n", read(&project, SKILL)));
    let known = [version(0, "base", true, false), version(1, "second", true, false)];
    for _ in 0..2 {
        graded_into(&project, WORKSPACE);
        let third = version(2, "graded", false, true);
        assert_eq!(versions(&project, WORKSPACE), [&known[..], &[third]].concat());
        assert!(read(&project, &format!("{WORKSPACE}/v2/skill/SKILL.md")).contains("Third."));
    }
    project.run(&["snapshot", "skills/alt-text", "-m", "third"]).exits(0);
    let third = version(2, "third", false, true);
    assert_eq!(versions(&project, WORKSPACE), [&known[..], &[third]].concat());
    assert!(read(&project, &format!("{WORKSPACE}/v2/skill/SKILL.md")).contains("Third."));
}

#[test]
fn a_skill_without_versions_has_its_commit_named_while_it_is_just_that() {
    let project = alt_text();
    git(&project, &["init", "-q"]);
    git(&project, &["add", "skills"]);
    git(&project, &["commit", "-qm", "one"]);
    graded_into(&project, "out");
    assert_eq!(
        json(&project, "out/history.json")["versions"][0]["git_hash"],
        git(&project, &["rev-parse", "HEAD"])
    );
    project.write(SKILL, &format!("{}\nMore.\n", read(&project, SKILL)));
    graded_into(&project, "out");
    let expected = [version(0, "baseline", true, true), version(1, "graded", false, true)];
    assert_eq!(versions(&project, "out"), expected);
}

#[test]
fn a_skill_that_changed_since_is_kept_as_it_was_graded() {
    let project = alt_text();
    project.run(&["run", ".", "-q", "--agent", "builtin", "--script", "script.yaml"]).exits(0);
    project.write(SKILL, &format!("{}\nMore.\n", read(&project, SKILL)));
    reported_into(&project, "out");
    assert_eq!(versions(&project, "out"), [version(0, "baseline", false, true)]);
    let kept = read(&project, "out/v0/skill/SKILL.md");
    assert!(!kept.contains("More."), "these are not the files that were graded");
}

#[test]
fn a_history_that_cannot_be_read_is_not_written_over() {
    let project = alt_text();
    project.write("out/history.json", "{\"versions\": \"many\"}");
    project.run(&["run", ".", "-q", "--agent", "builtin", "--script", "script.yaml"]).exits(0);
    let message = project.run(&["report", "latest", "--format", "writing-skills", "-o", "out"]);
    assert!(message.stderr.contains("is not a history of versions"), "{}", message.stderr);
    assert_eq!(read(&project, "out/history.json"), "{\"versions\": \"many\"}");
}

#[test]
fn criteria_that_share_a_label_keep_it_in_a_grading() {
    let project = alt_text();
    let evals = "skills/alt-text/evals/evals.json";
    let both = read(&project, evals).replace("\"criterion\": \"no-decoration\"", "\"criterion\": \"length\"");
    project.write(evals, &both);
    project.write("script.yaml", &read(&project, "script.yaml").replace("id: no-decoration", "id: length-2"));
    graded_into(&project, "out");
    let grading = json(&project, "out/grading/chart_v0_run1.json");
    let labels: Vec<&Value> =
        grading["results"].as_array().expect("results").iter().map(|result| &result["criterion"]).collect();
    assert_eq!(labels.iter().filter(|label| ***label == "length").count(), 2, "{labels:?}");
}
