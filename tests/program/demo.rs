//! The example that is inside the program.

use crate::common::Project;

#[test]
fn the_demo_runs_offline_and_writes_a_report() {
    let project = Project::new(&[("practicum.toml", "")]);
    let ran = project.run(&["demo", "first"]).exits(0);
    assert!(ran.stdout.contains("PASS  3 of 3 trials passed"), "{}", ran.stdout);
    let page = std::fs::read_to_string(project.path().join("first/report.html")).expect("a report");
    assert!(page.contains("notes-from-commits"));
    // The record is kept in the example, not in the project around it.
    assert!(project.path().join("first/.practicum/runs").is_dir());
    assert!(!project.path().join(".practicum").exists());
}

#[test]
fn the_demo_can_be_changed_and_run_again() {
    let project = Project::new(&[]);
    project.run(&["demo", "first"]).exits(0);
    project.run(&["check", "first"]).exits(0);
    let evals = project.path().join("first/release-notes/evals/release-notes.practicum.yaml");
    let text = std::fs::read_to_string(&evals).expect("evals");
    std::fs::write(&evals, text.replace("contains: [CSV, config.toml]", "contains: [CSV, no-such-word]"))
        .expect("written");
    let ran = project.run(&["run", "first"]).exits(1);
    assert!(ran.stdout.contains("no-such-word"), "{}", ran.stdout);
}

#[test]
fn the_demo_overwrites_nothing() {
    let project = Project::new(&[("mine/notes.txt", "Keep me.")]);
    let ran = project.run(&["demo", "mine"]).exits(2);
    assert!(ran.stderr.contains("not empty"), "{}", ran.stderr);
    let kept = std::fs::read_to_string(project.path().join("mine/notes.txt")).expect("kept");
    assert_eq!(kept, "Keep me.");
    project.run(&["demo", "mine/notes.txt"]).exits(2);
    std::fs::create_dir(project.path().join("empty")).expect("a folder");
    project.run(&["demo", "empty"]).exits(0);
}

/// The demo has the same files as the example of the repository, so that nobody maintains two.
#[test]
fn the_demo_has_every_file_of_its_example() {
    let project = Project::new(&[]);
    project.run(&["demo", "first"]).exits(0);
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/release-notes");
    for folder in ["", "evals", "evals/fixtures"] {
        for entry in std::fs::read_dir(example.join(folder)).expect("a folder") {
            let name = entry.expect("an entry").file_name();
            if !name.to_string_lossy().starts_with('.') {
                assert!(
                    project.path().join("first/release-notes").join(folder).join(&name).exists(),
                    "{name:?}"
                );
            }
        }
    }
}

/// A skill that is named by its path, from a folder that is no project: its fixtures belong to it.
#[test]
fn a_skill_outside_of_any_project_is_given_its_own_fixtures_and_no_others() {
    let (here, there) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/release-notes");
    let skill = there.path().join("release-notes");
    let copied = std::process::Command::new("cp").arg("-r").arg(example).arg(&skill).status();
    assert!(copied.expect("cp").success());
    let run = || {
        let program = std::process::Command::new(env!("CARGO_BIN_EXE_practicum"))
            .args(["run", &skill.display().to_string()])
            .current_dir(here.path())
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("HOME", &here.path().display().to_string())])
            .output();
        crate::common::Ran::of(program.expect("practicum starts"))
    };
    run().exits(0);
    std::fs::write(there.path().join("secret.txt"), "a secret").expect("written");
    let evals = skill.join("evals/release-notes.practicum.yaml");
    let text = std::fs::read_to_string(&evals).expect("evals");
    std::fs::write(&evals, text.replace("from: fixtures/commits.txt", "from: ../../secret.txt"))
        .expect("written");
    let ran = run().exits(2);
    assert!(ran.stderr.contains("is not a relative path inside the project"), "{}", ran.stderr);
}
