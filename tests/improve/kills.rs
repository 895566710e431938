//! A kill at any moment: the same command goes on, ends the same, and pays for nothing twice.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::common::{Project, Ran, wait_until};
use super::ferry::{IMPROVE, ONCE, SKILL, diligent, evals, project, read, script, skill, usual_cases};
use super::wire::Wire;

/// A project whose model is at the other end of a wire. Each case also has a statement to judge, and its
/// room holds the project, in which the loop keeps its own records.
fn wired() -> (Project, Wire) {
    let mut evals = evals(&usual_cases());
    evals.as_object_mut().expect("a mapping").remove("workspace");
    evals["run"] = json!({"agents": ["builtin"]});
    for case in evals["cases"].as_array_mut().expect("cases") {
        let judged =
            json!({"id": "plain", "judge": {"statement": "The plan is in plain words.", "required": false}});
        case["checks"].as_array_mut().expect("checks").push(judged);
    }
    let project =
        Project::new(&[("ferry/SKILL.md", SKILL), ("ferry/evals/trips.practicum.yaml", &evals.to_string())]);
    let judge_verdict = json!({"id": "plain", "verdict": "pass", "evidence": ["Greeting"], "reasoning": "It is.", "weak": null});
    let mut script = script(&diligent());
    let scenarios = script["scenarios"].as_array_mut().expect("scenarios");
    scenarios.insert(
        0,
        json!({"name": "marks", "to": "judge", "when": "The record of the run", "steps": [
            {"tools": [{"name": "report_marks", "input": {"results": [judge_verdict]}}]}
        ]}),
    );
    // The criteria of these cases are their own.
    scenarios[1]["steps"][0]["tools"][0]["input"]["scores"] = json!({"plain": {"A": 6, "B": 5}});
    let wire = Wire::to(&project, &script);
    (project, wire)
}

fn improve(project: &Project) -> Command {
    project.practicum(&[&IMPROVE[..], &["-j", "1", "--judge-jobs", "1"]].concat())
}

/// What must be the same, however often it was killed. Runs have names of their own.
fn essence(project: &Project, improved: &Value) -> Value {
    let mut improved = improved.clone();
    for key in ["skill", "seconds", "cost_usd"] {
        improved.as_object_mut().expect("a mapping").remove(key);
    }
    let history = read(project, "ferry-workspace/history.json");
    let versions: Vec<Value> = history["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|version| json!([version["version"], version["description"], version["average_score"]]))
        .collect();
    let blind = read(project, "ferry-workspace/rounds/1/blind.json");
    let analysis = read(project, "ferry-workspace/rounds/1/analysis.json");
    let left: Vec<String> = ["", "ferry-workspace"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(project.path().join(folder)).expect("a folder").flatten())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".aside"))
        .collect();
    json!({"improved": improved, "versions": versions, "current": history["current_version"],
        "ties": blind["ties"], "analysis": analysis, "skill": skill(project), "left": left})
}

/// A trial takes three requests of the agent, and one of the judge. While one is with its agent, another
/// may be judged or kept.
const REQUESTS_OF_TRIALS: usize = 3 + 4;

#[test]
fn a_kill_while_anything_is_paid_for_is_gone_on_from_and_nothing_is_paid_twice() {
    let (whole, paid) = {
        let (project, wire) = wired();
        let improved = Ran::of(wire.at(improve(&project)).output().expect("it starts")).exits(0).json();
        assert_eq!((&improved["stopped"], &improved["best"]), (&json!("target"), &json!(2)), "{improved:#}");
        (essence(&project, &improved), wire.asked().len())
    };
    let (project, wire) = wired();
    let mut lost = 0;
    // Each is the phase that the kill falls into, by what is asked there: late, so that there is much to lose.
    for (phase, text, after, in_flight) in [
        ("baseline", "Plan trip", 13, REQUESTS_OF_TRIALS),
        ("marking", "The record of the run", 0, REQUESTS_OF_TRIALS),
        ("suggest", "Propose edits", 0, 1),
        ("examine", "Plan trip", 20, REQUESTS_OF_TRIALS),
        ("compare", "Which of the two outputs", 6, 1),
        ("confirm, the best version", "Plan trip", 20, REQUESTS_OF_TRIALS),
        ("confirm, the candidate", "Greeting: ahoy", 20, REQUESTS_OF_TRIALS),
        ("analyse", "Analyse why v1 did better than v0", 0, 1),
        ("marking again", "The record of the run", 4, REQUESTS_OF_TRIALS),
        ("compare again", "Which of the two outputs", 3, 1),
    ] {
        wire.kill_in(improve(&project), text, after);
        lost += in_flight;
        assert_eq!(skill(&project), SKILL, "{phase}");
    }
    let ran = Ran::of(wire.at(improve(&project)).output().expect("it starts")).exits(0);
    assert!(ran.stderr.contains("going on with the loop"), "{}", ran.stderr);
    assert_eq!(essence(&project, &ran.json()), whole);
    let again = wire.asked().len() - paid;
    assert!(again <= lost, "{again} requests were made again, and only {lost} could have been under way");
}

#[test]
fn what_a_killed_run_has_spent_is_held_against_the_limit() {
    let improve = |project: &Project, usd: &str| {
        let once = ["-j", "1", "--judge-jobs", "1", "--rounds", "1", "--max-cost", usd];
        project.practicum(&[&ONCE[..], &once].concat())
    };
    let ran = |wire: &Wire, project: &Project, usd: &str| {
        Ran::of(wire.at(improve(project, usd)).output().expect("it starts"))
    };
    let cost = |improved: &Value| improved["cost_usd"].as_f64().expect("known");
    let usual = {
        let (project, wire) = wired();
        cost(&ran(&wire, &project, "9").exits(0).json())
    };
    let (project, wire) = wired();
    // Four trials of the baseline have been judged by then.
    wire.kill_in(improve(&project, "9"), "The record of the run", 4);
    let asked = wire.asked().len();
    let stopped = ran(&wire, &project, "0.000001").exits(4).json();
    assert_eq!(stopped["stopped"], "cost", "{stopped:#}");
    assert_eq!(wire.asked().len(), asked, "nothing is left to be spent");
    let lost = cost(&stopped);
    let paid = cost(&ran(&wire, &project, "9").exits(0).json());
    assert!(lost > 0.0 && paid > usual - lost / 2.0, "{lost} were lost, {paid} paid, {usual} without a kill");
    assert!(paid < usual + 1e-9, "and nothing counts twice: {paid}, {usual}");
}

/// Between the phases that ask someone: kills as soon as the journal has a further step.
#[test]
fn a_kill_after_any_step_is_gone_on_from() {
    let whole = {
        let project = project(&usual_cases(), &diligent());
        let improved = project.run(&IMPROVE).exits(0).json();
        essence(&project, &improved)
    };
    let project = project(&usual_cases(), &diligent());
    let journal = project.path().join("ferry-workspace/improve.jsonl");
    // That a run begins, or what a killed one took, is no step.
    let is_step = |line: &&str| !line.starts_with("{\"running\"") && !line.starts_with("{\"lost\"");
    let lines = || std::fs::read_to_string(&journal).unwrap_or_default().lines().filter(is_step).count();
    let began = Instant::now();
    loop {
        let before = lines();
        let mut child = project
            .practicum(&IMPROVE)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("practicum starts");
        // The last line says that the loop is finished.
        while lines() == before && child.try_wait().expect("a state").is_none() {
            assert!(began.elapsed() < Duration::from_secs(300), "it does not get any further");
            std::thread::yield_now();
        }
        let _ = child.kill();
        let ran = Ran::of(child.wait_with_output().expect("gone"));
        if ran.code == 0 {
            assert_eq!(essence(&project, &ran.json()), whole);
            return;
        }
        let journal = std::fs::read_to_string(&journal).expect("a journal");
        if journal.ends_with("\"finished\"\n") {
            // It was killed with everything done but the telling.
            assert_eq!(essence(&project, &read(&project, "ferry-workspace/improve.json")), whole);
            return;
        }
    }
}

#[test]
fn two_loops_at_once_are_refused_and_other_evals_begin_another_loop() {
    let (project, wire) = wired();
    wire.kill_in(improve(&project), "Propose edits", 0);
    let other = [&IMPROVE[..], &["--repeat", "2", "-j", "1", "--judge-jobs", "1"]].concat();
    wire.kill_in(project.practicum(&other), "Propose edits", 0);
    let set_aside = project.path().join("ferry-workspace/improve-1.jsonl");
    assert!(set_aside.exists(), "results of three runs a case are not compared with those of two");

    let mut first =
        wire.at(improve(&project)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let journal = project.path().join("ferry-workspace/improve-2.jsonl");
    wait_until(|| journal.exists());
    let second = Ran::of(wire.at(improve(&project)).output().expect("it starts")).exits(2);
    assert!(second.stderr.contains("another loop is at work"), "{}", second.stderr);
    assert!(first.wait().expect("an end").success());
}
