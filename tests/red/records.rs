//! Records of newer programs, runs that are resumed twice, and names that contain escape sequences.

use crate::common::wait_until;
use crate::{project, set_agent};

#[test]
fn a_record_of_a_newer_program_is_read_as_if_it_were_known() {
    let project = project();
    project.run(&["run", "evals"]).exits(0);
    let path = project.only_run().join("run.json");
    let text = std::fs::read_to_string(&path).expect("a record");
    let newer = text.replacen("\"schema_version\": 1", "\"schema_version\": 2", 1);
    assert_ne!(newer, text);
    std::fs::write(&path, newer).expect("write");
    let commands: [&[&str]; 7] = [
        &["show", "latest"],
        &["baseline", "latest"],
        &["grade", "latest"],
        &["report", "latest"],
        &["import", "latest"],
        &["show", "latest", "x"],
        &["run", "--resume", "latest"],
    ];
    for args in commands {
        let ran = project.run(args);
        assert!(ran.code > 1 && ran.stderr.contains("the record has version 2"), "{args:?} {}", ran.stderr);
    }
}

#[test]
fn two_processes_resume_one_run_at_the_same_moment() {
    let project = project();
    set_agent(&project, &format!("[ -e {}/quick ] || sleep 60", project.path().display()));
    let mut killed = project.practicum(&["run", "evals", "--no-probe"]).spawn().expect("starts");
    let has_begun = || {
        let runs = std::fs::read_dir(project.path().join(".practicum/runs")).into_iter().flatten().flatten();
        runs.into_iter().any(|run| run.path().join("events.jsonl").exists())
    };
    wait_until(has_begun);
    let ran = project.run(&["run", "--resume", "latest"]);
    let holder = format!("still going on in process {}", killed.id());
    assert!(ran.code > 1 && ran.stderr.contains(&holder), "{}", ran.stderr);
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    project.write("quick", "");
    // The other process has the lock and has not yet written that it is at work.
    let other = std::fs::File::open(project.only_run()).expect("the folder");
    other.try_lock().expect("a lock");
    let ran = project.run(&["run", "--resume", "latest"]);
    assert!(ran.code > 1 && ran.stderr.contains("still going on"), "{}", ran.stderr);
    drop(other);
    project.run(&["run", "--resume", "latest"]).exits(0);
}

#[test]
fn the_name_of_a_folder_or_an_agent_controls_the_terminal() {
    let project = project();
    let skill = "skills/gu\u{1b}[31mll";
    project.write(&format!("{skill}/SKILL.md"), crate::SKILL);
    let settings = std::fs::read_to_string(project.path().join("practicum.toml")).expect("settings");
    let agent = "[agents.\"o\\u001b]0;x\\u0007\"]\ncommand = [\"nothing\"]\ndecoder = \"practicum-jsonl\"\n";
    project.write("practicum.toml", &format!("{settings}{agent}"));
    let commands: [&[&str]; 6] =
        [&["init", skill], &["init", skill], &["snapshot", skill], &["list"], &["doctor"], &["list", skill]];
    for args in commands {
        let ran = project.run(args);
        assert!(
            !ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'),
            "{args:?} {ran:?}",
            ran = ran.stderr
        );
    }
    // A control character of eight bits, and a mark that turns the direction of a line: JSON need not escape them.
    let case = "  - { id: \"a\\u009b31m\\u202eb\", prompt: speak, checks: [{ contains: kee-ow }] }\n";
    project.write("evals/e.practicum.yaml", &format!("{}{case}", crate::EVALS));
    let commands: [&[&str]; 4] = [
        &["list", "evals", "--json"],
        &["check", "evals", "--json"],
        &["run", "evals", "--no-probe", "--json"],
        &["show", "latest", "--json"],
    ];
    for args in commands {
        let ran = project.run(args);
        let raw = |text: &str| text.contains(['\u{9b}', '\u{202e}']);
        assert!(!raw(&ran.stdout) && !raw(&ran.stderr), "{args:?} {} {}", ran.stdout, ran.stderr);
    }
}
