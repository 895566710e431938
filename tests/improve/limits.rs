//! What ends a loop before its time, and what keeps it from beginning.

use std::process::Stdio;

use serde_json::json;

use super::common::{self, wait_until};
use super::ferry::{IMPROVE, ONCE, SKILL, diligent, evals, project, read, script, skill, usual_cases};

#[test]
fn limits_and_interruptions_leave_something_to_go_on_with() {
    let project = project(&usual_cases(), &diligent());
    let improved = project.run(&[&IMPROVE[..], &["--max-time", "1ms"]].concat()).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["applied"]), (&json!("time"), &json!(false)), "{improved:#}");
    let child = project
        .practicum(&["improve", "ferry", "--sandbox", "off"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("practicum starts");
    let journal = project.path().join("ferry-workspace/improve.jsonl");
    wait_until(|| std::fs::read_to_string(&journal).unwrap_or_default().lines().count() >= 3);
    common::interrupt(&child);
    let ran = common::Ran::of(child.wait_with_output().expect("ends")).exits(130);
    assert!(ran.stdout.contains("the same command continues"), "{}", ran.stdout);
    let improved = project.run(&[&IMPROVE[..], &["--target", "0.5"]].concat()).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(1)), "{improved:#}");
    let anew =
        project.run(&[&IMPROVE[..], &["--anew", "--seed", "3", "--rounds", "1"]].concat()).exits(0).json();
    assert_eq!((&anew["baseline"], &anew["best"]), (&json!(1), &json!(2)));
}

#[test]
fn what_cannot_begin_is_told() {
    let project = project(&usual_cases(), &[]);
    let ran = project.run(&["improve", "ferry", "--evals", "nowhere", "--sandbox", "off"]).exits(2);
    assert!(ran.stderr.contains("there is no"), "{}", ran.stderr);
    project.run(&["improve", "nowhere"]).exits(2);
    let ran = project.run(&["improve", "ferry", "--dry-run"]).exits(0);
    assert!(ran.stderr.contains("18 trials"), "{}", ran.stderr);
    let ran = project.run(&["improve", "ferry", "--sandbox", "off"]).exits(3);
    assert!(ran.stdout.contains("the loop failed"), "{}", ran.stdout);
    assert_eq!(skill(&project), SKILL);
}

/// A limit that falls into a run: no more trials are begun, and what was done is not done again.
#[test]
fn time_ends_a_run_that_goes_on() {
    let project = project(&usual_cases(), &diligent());
    let path = "ferry/evals/script.yaml";
    let mut slow = read(&project, path);
    let agent = slow["scenarios"].as_array_mut().and_then(|all| all.last_mut()).expect("the agent");
    agent["steps"][0]["delay"] = json!("1500ms");
    project.write(path, &slow.to_string());
    let args = [&ONCE[..], &["-j", "1", "--max-time", "2500ms"]].concat();
    let improved = project.run(&args).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["baseline"]), (&json!("time"), &json!(null)), "{improved:#}");
    let log = std::fs::read_to_string(project.only_run().join("events.jsonl")).expect("a log");
    let finished = log.lines().filter(|line| line.contains("trial_finished")).count();
    assert!((1..6).contains(&finished), "{finished} of 6 trials");
    let again = project.run(&args).exits(0).json();
    assert_eq!(again["stopped"], "time", "the time of the first start counts, too");
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_begun() {
    let project = project(&usual_cases(), &[]);
    for (flags, part) in [
        (&["--description-only"][..], "no case checks whether the skill is activated"),
        (&["--record", "a.jsonl"], "a cassette holds one"),
    ] {
        let ran = project.run(&[&ONCE[..], flags].concat()).exits(2);
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
    // A proposer would see every case of these, and could change them.
    let mut suite = evals(&usual_cases());
    suite["skill"] = json!(".");
    project.write("ferry/cases.json", &suite.to_string());
    project.write("ferry/script.yaml", &script(&[]).to_string());
    let ran = project.run(&[&ONCE[..], &["--evals", "ferry/cases.json"]].concat()).exits(2);
    assert!(ran.stderr.contains("among the skill's own files"), "{}", ran.stderr);
    project.run(&["run", "ferry", "--evals", "ferry/cases.json", "--sandbox", "off"]).exits(1);
    let ran = project.run(&["suggest", "ferry"]).exits(2);
    assert!(ran.stderr.contains("among the skill's own files"), "{}", ran.stderr);
    assert!(!project.path().join("ferry-workspace").exists());
}
