//! What ends a loop before its time, and what keeps it from beginning.

use std::process::Stdio;

use serde_json::json;

use super::common::{self, wait_until};
use super::ferry::{ONCE, SKILL, diligent, project, skill, usual_cases};

#[test]
fn limits_and_interruptions_leave_something_to_go_on_with() {
    let project = project(&usual_cases(), &diligent());
    let improved = project.run(&[&ONCE[..], &["--max-time", "1ms"]].concat()).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["applied"]), (&json!("time"), &json!(false)), "{improved:#}");
    let child = project
        .practicum(&["improve", "ferry", "--sandbox", "off", "--repeat", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("practicum starts");
    let journal = project.path().join("ferry-workspace/improve.jsonl");
    wait_until(|| std::fs::read_to_string(&journal).unwrap_or_default().lines().count() >= 3);
    common::interrupt(&child);
    let ran = common::Ran::of(child.wait_with_output().expect("ends")).exits(130);
    assert!(ran.stdout.contains("the same command goes on"), "{}", ran.stdout);
    let improved = project.run(&[&ONCE[..], &["--target", "0.5"]].concat()).exits(0).json();
    assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(1)), "{improved:#}");
    let anew =
        project.run(&[&ONCE[..], &["--anew", "--seed", "3", "--rounds", "1"]].concat()).exits(0).json();
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
    assert!(ran.stdout.contains("could not go on"), "{}", ran.stdout);
    assert_eq!(skill(&project), SKILL);
}
