//! Pipes, devices and endless folders in place of files.

use std::path::Path;
use std::process::Command;

use crate::common::Project;
use crate::{link, project, run_bounded, set_agent};

const COMMANDS: [&[&str]; 6] =
    [&["check"], &["list"], &["lint"], &["doctor"], &["runs"], &["run", "evals", "--no-probe"]];

/// Puts something that cannot be read to its end in place of a file.
fn put(kind: &str, at: &Path) {
    let _ = std::fs::remove_file(at);
    std::fs::create_dir_all(at.parent().expect("a parent")).expect("create");
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(at).status().expect("mkfifo").success()),
        device => link(device, at),
    }
}

fn hangs_nothing(path: &str) {
    for kind in ["pipe", "/dev/zero"] {
        let project = project();
        put(kind, &project.path().join(path));
        for args in COMMANDS {
            run_bounded(&project, args);
        }
    }
}

#[test]
fn a_pipe_or_device_as_skill_file_hangs_a_command() {
    hangs_nothing("skills/gull/SKILL.md");
}

#[test]
fn a_pipe_or_device_beside_a_skill_file_hangs_a_command() {
    hangs_nothing("skills/gull/references/notes.md");
    hangs_nothing("skills/gull/scripts/run.sh");
}

#[test]
fn a_pipe_or_device_as_eval_file_hangs_a_command() {
    hangs_nothing("evals/e.practicum.yaml");
    hangs_nothing("evals/evals.json");
}

#[test]
fn a_pipe_or_device_as_settings_file_hangs_a_command() {
    hangs_nothing("practicum.toml");
    hangs_nothing(".practicum/noise.json");
}

#[test]
fn a_pipe_or_device_as_ignore_file_hangs_a_command() {
    hangs_nothing(".gitignore");
    hangs_nothing("evals/.gitignore");
    hangs_nothing("skills/gull/.ignore");
}

#[test]
fn a_pipe_or_device_as_fixture_hangs_a_command() {
    hangs_nothing("evals/given.txt");
}

#[test]
fn a_pipe_or_device_in_a_plugin_hangs_a_command() {
    hangs_nothing(".claude-plugin/plugin.json");
    hangs_nothing("skills/gull/.claude-plugin/plugin.json");
}

/// Gives the folder of the only trial of the only run.
fn only_trial(project: &Project) -> std::path::PathBuf {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    trials.flatten().next().expect("a trial").path()
}

#[test]
fn a_pipe_or_device_in_a_record_hangs_a_command() {
    let of_run = ["run.json", "events.jsonl", "summary.json", "live.json", "labels.jsonl"];
    let of_trial = ["checks.json", "output.txt", "facts.json", "transcript.jsonl", "files/x"];
    for kind in ["pipe", "/dev/zero"] {
        for (name, is_of_trial) in
            of_run.map(|name| (name, false)).into_iter().chain(of_trial.map(|name| (name, true)))
        {
            let project = project();
            project.run(&["run", "evals"]).exits(0);
            let folder = if is_of_trial { only_trial(&project) } else { project.only_run() };
            let id = project.only_run().file_name().expect("a name").to_string_lossy().into_owned();
            put(kind, &folder.join(name));
            let commands: [&[&str]; 8] = [
                &["show", &id],
                &["show", &id, "x"],
                &["runs"],
                &["list"],
                &["report", "--format", "junit"],
                &["grade", &id],
                &["run", "evals"],
                &["clean"],
            ];
            for args in commands {
                run_bounded(&project, args);
            }
        }
    }
}

#[test]
fn an_agent_leaves_pipes_devices_and_endless_folders() {
    let project = project();
    let deep = "perl -e 'for (1..16000) { mkdir \"d\"; chdir \"d\" }'";
    set_agent(&project, &format!("rm -f given.txt; mkfifo given.txt pipe; ln -s /dev/zero zero; {deep}"));
    let before = workspaces();
    let ran = run_bounded(&project, &["run", "evals", "--no-probe"]);
    assert!(ran.stdout.contains("gull") || ran.stderr.contains("trial"), "{}\n{}", ran.stdout, ran.stderr);
    let id = project.only_run().file_name().expect("a name").to_string_lossy().into_owned();
    let left: Vec<String> = workspaces().into_iter().filter(|name| !before.contains(name)).collect();
    assert!(!left.iter().any(|name| name.contains(&id)), "the workspace is deleted: {left:?}");
}

fn workspaces() -> Vec<String> {
    let entries = std::fs::read_dir("/tmp").expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
