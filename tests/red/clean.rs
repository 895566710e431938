//! `clean` in a project whose `.practicum` folder came with it.

use crate::common::Project;
use crate::{link, project};

const RUN: &str = "20260102-030405678-abcdef";

/// Writes the record of a killed run whose workspaces are said to be in `rooms`.
fn write_killed_run(project: &Project, id: &str, rooms: &str) {
    project.write(&format!(".practicum/runs/{id}/run.json"), "{}");
    let live = format!("{{\"schema_version\":1,\"pid\":4194999,\"began\":1,\"rooms\":\"{rooms}\"}}");
    project.write(&format!(".practicum/runs/{id}/live.json"), &live);
}

#[test]
fn clean_deletes_a_folder_that_a_record_names() {
    let project = Project::new(&[("thesis/chapter.txt", "years of work")]);
    let thesis = project.path().join("thesis");
    write_killed_run(&project, RUN, &thesis.display().to_string());
    // A folder that no id of a run could be leads nowhere else either.
    write_killed_run(&project, "x", &thesis.display().to_string());
    project.run(&["clean"]).exits(0);
    assert!(thesis.join("chapter.txt").is_file());
}

#[test]
fn clean_still_deletes_the_workspaces_of_a_killed_run() {
    let project = project();
    let tail = &uuid::Uuid::new_v4().simple().to_string()[..6];
    let id = format!("20260102-030405679-{tail}");
    let rooms = std::path::PathBuf::from(format!("/tmp/practicum-{id}"));
    std::fs::create_dir_all(rooms.join("a/b")).expect("create");
    write_killed_run(&project, &id, &rooms.display().to_string());
    let ran = project.run(&["clean"]).exits(0);
    assert!(ran.stdout.contains("1 killed run"), "{}", ran.stdout);
    assert!(!rooms.exists());
}

#[test]
fn clean_follows_a_link_in_place_of_workspaces() {
    let project = Project::new(&[("thesis/chapter.txt", "years of work")]);
    let tail = &uuid::Uuid::new_v4().simple().to_string()[..6];
    let id = format!("20260102-030405680-{tail}");
    let rooms = format!("/tmp/practicum-{id}");
    link(project.path().join("thesis"), &rooms);
    write_killed_run(&project, &id, &rooms);
    project.run(&["clean"]).exits(0);
    std::fs::remove_file(&rooms).expect("the link is not the program's");
    assert!(project.path().join("thesis/chapter.txt").is_file());
}

#[test]
fn clean_truncates_a_file_through_a_link_in_the_cache() {
    let project = Project::new(&[("keys.txt", "a key"), (".practicum/cache/trials/notes.txt", "notes")]);
    let cache = project.path().join(".practicum/cache/trials");
    link(project.path().join("keys.txt"), cache.join("ab.jsonl"));
    project.run(&["clean"]).exits(0);
    let text = |path: &str| std::fs::read_to_string(project.path().join(path)).expect("a file");
    assert_eq!(text("keys.txt"), "a key");
    assert_eq!(text(".practicum/cache/trials/notes.txt"), "notes");
}

#[test]
fn clean_deletes_the_records_of_another_project_through_a_link() {
    let other = project();
    write_killed_run(&other, RUN, "/nowhere");
    other.write(".practicum/cache/trials/ab.jsonl", "");
    std::fs::remove_file(other.path().join(format!(".practicum/runs/{RUN}/live.json"))).expect("removed");
    for linked in [".practicum", ".practicum/runs", ".practicum/cache", ".practicum/cache/trials"] {
        let project = Project::new(&[]);
        let at = project.path().join(linked);
        std::fs::create_dir_all(at.parent().expect("a parent")).expect("create");
        link(other.path().join(linked), &at);
        let ran = project.run(&["clean", "--keep", "0", "--cache"]).exits(3);
        assert!(ran.stderr.contains("it is a link"), "{}", ran.stderr);
        assert!(other.path().join(format!(".practicum/runs/{RUN}/run.json")).is_file(), "{linked}");
        assert!(other.path().join(".practicum/cache/trials/ab.jsonl").is_file(), "{linked}");
    }
}

#[test]
fn clean_deletes_folders_that_are_no_records() {
    let project = Project::new(&[(".practicum/runs/thesis/run.json", "{}")]);
    project.write(&format!(".practicum/runs/{RUN}/run.json"), "{}");
    project.run(&["clean", "--keep", "0"]).exits(0);
    assert!(project.path().join(".practicum/runs/thesis/run.json").is_file());
    assert!(!project.path().join(".practicum/runs").join(RUN).exists(), "a record of the program is deleted");
}

#[test]
fn a_run_writes_its_records_through_a_link() {
    let project = project();
    let outside = tempfile::tempdir().expect("a folder");
    link(outside.path(), project.path().join(".practicum"));
    let ran = project.run(&["run", "evals"]).exits(3);
    assert!(ran.stderr.contains("it is a link"), "{}", ran.stderr);
    assert_eq!(std::fs::read_dir(outside.path()).expect("a folder").count(), 0);
}

#[test]
fn a_run_appends_to_a_file_through_a_link_in_the_cache() {
    let project = project();
    project.write("keys.txt", "a key");
    std::fs::create_dir_all(project.path().join(".practicum/cache/trials")).expect("create");
    for part in 0..256 {
        let at = project.path().join(format!(".practicum/cache/trials/{part:02x}.jsonl"));
        link(project.path().join("keys.txt"), at);
    }
    project.run(&["run", "evals"]);
    assert_eq!(std::fs::read_to_string(project.path().join("keys.txt")).expect("a file"), "a key");
}
