//! Records that were damaged: flipped bits, missing ends and foreign lines.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Project, Ran};

/// The files of a run that are damaged, with `*` for the folder of the trial.
const FILES: [&str; 9] = [
    "events.jsonl",
    "run.json",
    "summary.json",
    "run.json.mark",
    "*/transcript.jsonl",
    "*/checks.json",
    "*/facts.json",
    "*/digest.json",
    "*/output.txt",
];

const OFFSETS: usize = 50;

fn damaged_file(run: &Path, name: &str) -> PathBuf {
    match name.strip_prefix("*/") {
        None => run.join(name),
        Some(name) => {
            let mut trials = std::fs::read_dir(run.join("trials")).expect("trials").flatten();
            trials.next().expect("a trial").path().join(name)
        }
    }
}

/// Damages a text at one place, in one of three ways.
fn damage(bytes: &mut Vec<u8>, n: usize) -> String {
    let at = usize::try_from(super::random(n as u64)).expect("64 bits") % bytes.len().max(1);
    match n % 3 {
        0 => {
            bytes[at] ^= 1 << (n % 8);
            format!("bit {} of byte {at} flipped", n % 8)
        }
        1 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        _ => {
            let garbage = b"\n\xff\x00{\"event\":[[[[\n";
            bytes.splice(at..at, garbage.iter().copied());
            format!("garbage at {at}")
        }
    }
}

/// Copies a folder with all its files.
fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(status.expect("cp").success());
}

#[test]
fn damage_makes_a_failure_green_or_stops_the_program() {
    let original = Project::new(&[(
        "evals/e.practicum.yaml",
        "practicum: 1\nworkspace: empty\nrun: { agents: [own] }\ncases:\n  - { id: x, prompt: p, checks: [{ not_contains: kee-ow }] }\n",
    )]);
    super::set_agent(&original, "echo kee-ow\n");
    original.run(&["run", "evals"]).exits(1);
    let not_scored = AtomicUsize::new(0);
    let damaged = AtomicUsize::new(0);
    super::two_at_a_time(OFFSETS, |n| {
        let name = FILES[n % FILES.len()];
        let project = Project::new(&[]);
        copy(&original.path().join("."), project.path());
        let path = damaged_file(&project.only_run(), name);
        let mut bytes = std::fs::read(&path).expect("a file of the record");
        let what = format!("{n}: {name}, {}", damage(&mut bytes, n));
        std::fs::write(&path, bytes).expect("written");
        damaged.fetch_add(1, Ordering::Relaxed);
        let run = |args: &[&str]| -> Ran {
            let ran = project.run(args);
            super::ended_well(&ran, &format!("{what}: {args:?}"));
            ran
        };
        run(&["show", "latest"]);
        let report = run(&["report", "latest", "--format", "json"]);
        if report.code == 0 {
            assert_eq!(report.json()["totals"]["passed"], 0, "{what}");
        }
        let graded = run(&["grade", "latest"]);
        assert_ne!(graded.code, 0, "{what}: {}", graded.stdout);
        not_scored.fetch_add(usize::from(graded.code == 3), Ordering::Relaxed);
        // A run that reuses what is stored, and one that is resumed.
        assert_eq!(run(&["run", "evals"]).code, 1, "{what}");
    });
    println!(
        "{} damaged records: no panic, nothing became green, {} were not scored",
        damaged.into_inner(),
        not_scored.into_inner()
    );
}

#[test]
fn a_digit_of_the_summary_is_believed() {
    let project = super::project();
    project.run(&["run", "evals"]).exits(1);
    let path = project.only_run().join("summary.json");
    let text = std::fs::read_to_string(&path).expect("a summary");
    let mut changed = 0;
    for (at, _) in text.match_indices(['0', '1', '5']).step_by(text.len() / 300 + 1).take(20) {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        let report = project.run(&["report", "latest", "--format", "json"]);
        super::ended_well(&report, &format!("byte {at}"));
        let before: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(report.code != 0 || report.json() == before, "byte {at}: {}", report.stdout);
        changed += usize::from(report.code != 0);
    }
    assert!(changed > 0);
    std::fs::write(&path, &text).expect("written");
    project.run(&["report", "latest"]).exits(0);
    println!("20 changed digits of a summary: {changed} were noticed, none was shown");
}

#[test]
fn a_resumed_run_trusts_a_damaged_log() {
    let original = super::project();
    let expected = super::results(&original.run(&["run", "evals", "--no-cache", "--json"]).exits(1).json());
    super::two_at_a_time(12, |n| {
        let project = Project::new(&[]);
        copy(&original.path().join("."), project.path());
        // As a kill would leave the run: without its summary, and the log broken at some place.
        let run = project.only_run();
        std::fs::remove_file(run.join("summary.json")).expect("removed");
        let path = run.join("events.jsonl");
        let mut bytes = std::fs::read(&path).expect("a log");
        let what = damage(&mut bytes, n);
        std::fs::write(&path, bytes).expect("written");
        let mut command = project.practicum(&["run", "--resume", "latest", "--json"]);
        // All copies are one run, whose workspaces would be in one place.
        command.env("TMPDIR", project.path());
        let ran = Ran::of(command.output().expect("starts"));
        assert_eq!(ran.code, 1, "{what}: {}\n{}", ran.stdout, ran.stderr);
        assert_eq!(super::results(&ran.json()), expected, "{what}");
    });
    println!("12 damaged logs were resumed with equal results");
}
