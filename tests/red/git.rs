//! Repositories whose configuration names programs.

use std::path::Path;
use std::process::Command;

use crate::SKILL;
use crate::common::Project;

fn git(folder: &Path, args: &[&str]) {
    let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
    let ran = Command::new("git").current_dir(folder).args(own).args(args).output().expect("git");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Makes a repository with a skill, and a program that leaves a file `started` when it is started.
fn repository() -> Project {
    let project = crate::project();
    let program = project.path().join("program.sh");
    let started = project.path().join("started");
    project.write("program.sh", &format!("#!/bin/sh\ntouch {}\ncat\n", started.display()));
    git(project.path(), &["init", "-q", "-b", "main"]);
    git(project.path(), &["add", "skills", "evals"]);
    git(project.path(), &["commit", "-qm", "one"]);
    let made = Command::new("chmod").arg("+x").arg(program).status();
    assert!(made.expect("chmod").success());
    project
}

/// Uses all commands that ask git something, and fails if the program was started.
#[track_caller]
fn starts_nothing(project: &Project) {
    project.run(&["snapshot", "skills/gull"]).exits(0);
    let compare = ["compare", "evals", "--against", "main", "--sandbox", "off", "--repeat", "1"];
    let ran = project.run(&compare);
    assert!(ran.stderr.contains("the skill at main") && ran.stderr.contains("passed"), "{}", ran.stderr);
    assert!(!project.path().join("started").exists());
}

#[test]
fn a_file_monitor_of_a_repository_is_started() {
    let project = repository();
    let program = project.path().join("program.sh");
    git(project.path(), &["config", "core.fsmonitor", program.to_str().expect("text")]);
    starts_nothing(&project);
}

#[test]
fn filters_of_a_repository_are_started() {
    let project = repository();
    let program = project.path().join("program.sh");
    project.write(".gitattributes", "* filter=evil\n");
    project.write(".git/info/attributes", "* filter=evil\n");
    for key in ["filter.evil.clean", "filter.evil.smudge"] {
        git(project.path(), &["config", key, program.to_str().expect("text")]);
    }
    // The same content with another time: git would have to read the file to know that it is the same.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    project.write("skills/gull/SKILL.md", SKILL);
    starts_nothing(&project);
    let history = std::fs::read_to_string(project.path().join("skills/gull-workspace/history.json"));
    assert!(history.expect("a history").contains("\"git_hash\": \""), "the commit is still known");
}

#[test]
fn a_bare_repository_made_of_skill_files_is_used() {
    let project = crate::project();
    let skill = project.path().join("skills/gull");
    let program = project.path().join("program.sh");
    let started = project.path().join("started");
    project.write("program.sh", &format!("#!/bin/sh\ntouch {}\n", started.display()));
    assert!(Command::new("chmod").arg("+x").arg(&program).status().expect("chmod").success());
    git(&skill, &["init", "-q", "-b", "main"]);
    git(&skill, &["add", "."]);
    git(&skill, &["commit", "-qm", "one"]);
    git(&skill, &["config", "core.worktree", "."]);
    git(&skill, &["config", "core.fsmonitor", program.to_str().expect("text")]);
    for entry in std::fs::read_dir(skill.join(".git")).expect("a repository").flatten() {
        std::fs::rename(entry.path(), skill.join(entry.file_name())).expect("moved");
    }
    std::fs::remove_dir(skill.join(".git")).expect("removed");
    // Without the protection, git takes the folder for a repository.
    let query = |setting: &str| {
        let mut command = Command::new("git");
        command.args(["-c", setting, "rev-parse", "--git-dir"]).current_dir(&skill);
        command.output().expect("git").status.success()
    };
    assert!(query("safe.bareRepository=all") && !query("safe.bareRepository=explicit"));
    project.run(&["snapshot", "skills/gull"]).exits(0);
    assert!(!started.exists());
}
