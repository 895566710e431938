//! `run --changed`: only suites of which something changed since a commit.

use std::process::Command;

use crate::common::Project;

const SKILL: &str = "---\nname: NAME\ndescription: Speaks like a NAME.\n---\n\nSay kee-ow.\n";
const SCRIPT: &str = "practicum_script: 1\ndefault: kee-ow\n";

fn git(project: &Project, args: &[&str]) {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").arg("-C").arg(project.path()).args(own).args(args).output().expect("git");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Makes a repository with three skills, each with evals, on the branch `main`, and checks out a new branch.
fn repository() -> Project {
    let project = Project::new(&[("shared/data.txt", "data\n"), ("notes.md", "Notes.\n")]);
    for name in ["gull", "crow", "wren"] {
        project.write(&format!("skills/{name}/SKILL.md"), &SKILL.replace("NAME", name));
        project.write(&format!("evals/{name}/script.yaml"), SCRIPT);
        let given =
            if name == "wren" { "files: [{ from: ../../shared/data.txt, to: data.txt }], " } else { "" };
        let evals = format!(
            "practicum: 1\nskill: ../../skills/{name}\nrun: {{ agents: [builtin], script: script.yaml }}\n\
             cases:\n  - {{ id: speaks, prompt: speak, {given}checks: [{{ contains: kee-ow }}] }}\n"
        );
        project.write(&format!("evals/{name}/{name}.practicum.yaml"), &evals);
    }
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    git(&project, &["checkout", "-qb", "work"]);
    project
}

/// Gives the names of the suites that would be run.
#[track_caller]
fn planned(project: &Project, args: &[&str]) -> Vec<String> {
    let ran = project.run(&[&["run", "evals", "--dry-run", "--json", "--sandbox", "off"], args].concat());
    let ran = ran.exits(0);
    if ran.stdout.trim().is_empty() {
        return Vec::new();
    }
    let document = ran.json();
    let suites = document["suites"].as_array().expect("suites");
    suites.iter().map(|suite| suite["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn nothing_is_run_when_nothing_changed() {
    let project = repository();
    assert_eq!(planned(&project, &["--changed", "main"]), [""; 0]);
    let ran = project.run(&["run", "evals", "--changed", "main", "--sandbox", "off"]).exits(0);
    assert!(ran.stderr.contains("3 of 3 suites have not changed since main"), "{}", ran.stderr);
    project.write("notes.md", "Other notes.\n");
    assert_eq!(planned(&project, &["--changed", "main"]), [""; 0]);
}

#[test]
fn a_changed_skill_eval_or_given_file_runs_its_suite_and_no_other() {
    let project = repository();
    // A new file of a skill that is not committed yet.
    project.write("skills/crow/references/more.md", "More.\n");
    assert_eq!(planned(&project, &["--changed", "main"]), ["crow"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "second"]);
    assert_eq!(planned(&project, &["--changed", "main"]), ["crow"]);
    // A file that only one suite gives to agents.
    project.write("shared/data.txt", "other data\n");
    assert_eq!(planned(&project, &["--changed", "main"]), ["crow", "wren"]);
    let ran = project.run(&["run", "evals", "--changed", "main", "--sandbox", "off"]).exits(0);
    assert!(ran.stderr.contains("wren is run: shared/data.txt has changed"), "{}", ran.stderr);
    assert!(ran.stdout.contains("2 of 2 trials passed"), "{}", ran.stdout);
    // A file that is gone.
    std::fs::remove_file(project.path().join("evals/gull/script.yaml")).expect("removed");
    project.write(
        "evals/gull/gull.practicum.yaml",
        "practicum: 1\nskill: ../../skills/gull\nrun: { agents: [builtin] }\n\
        cases:\n  - { id: speaks, prompt: speak, checks: [{ contains: kee-ow }] }\n",
    );
    assert_eq!(planned(&project, &["--changed", "main"]), ["crow", "gull", "wren"]);
}

#[test]
fn settings_concern_every_suite() {
    let project = repository();
    project.write("practicum.toml", "repeat = 2\n");
    assert_eq!(planned(&project, &["--changed", "main"]).len(), 3);
}

#[test]
fn only_what_this_branch_did_counts() {
    let project = repository();
    git(&project, &["checkout", "-q", "main"]);
    project.write("skills/gull/SKILL.md", &SKILL.replace("NAME", "gull").replace("kee-ow", "kee-OW"));
    git(&project, &["commit", "-qam", "on main"]);
    git(&project, &["checkout", "-q", "work"]);
    project.write("skills/crow/SKILL.md", &SKILL.replace("NAME", "crow").replace("kee-ow", "kaa"));
    assert_eq!(planned(&project, &["--changed", "main"]), ["crow"]);
    // Without a ref it is the default branch.
    assert_eq!(planned(&project, &["--changed"]), ["crow"]);
}

#[test]
fn a_ref_that_git_does_not_know_is_an_error_and_not_an_empty_run() {
    let project = repository();
    let ran = project.run(&["run", "evals", "--changed", "no-such-branch"]).exits(2);
    assert!(ran.stderr.contains("git knows no commit \"no-such-branch\""), "{}", ran.stderr);
    let outside = Project::new(&[("evals/e.practicum.yaml", "practicum: 1\nskill: ..\ncases: []\n")]);
    outside.run(&["run", "evals", "--changed", "main"]).exits(2);
    // A ref cannot be an option of git.
    project.run(&["run", "evals", "--changed=--output=/tmp/x"]).exits(2);
}

/// An ignored fixture is in no commit, so git cannot say that it is unchanged.
#[test]
fn a_suite_whose_files_git_does_not_know_is_run() {
    let project = repository();
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::create_dir_all(elsewhere.path().join("owl")).expect("a folder");
    std::fs::write(elsewhere.path().join("owl/SKILL.md"), SKILL.replace("NAME", "owl")).expect("written");
    let skill = elsewhere.path().join("owl").display().to_string();
    assert_eq!(planned(&project, &["--changed", "main", "--skill", &skill]).len(), 3);
}
