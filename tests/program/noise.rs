//! What varies by itself: measured, forgiven, and not paid for.

use crate::common::Project;
use serde_json::{Value, json};

/// Passes or fails as the prompt says, or every other time.
const AGENT: &str = r#"
case "$1" in
  *flaky*) echo x >>"$COUNT"; n=$(wc -l <"$COUNT"); [ $((n % 2)) = 0 ] && echo good || echo bad ;;
  *fails*) echo bad ;;
  *) echo good ;;
esac
"#;

fn project(cases: &[&str]) -> Project {
    let cases: String = cases
        .iter()
        .map(|id| format!("  - {{ id: {id}, prompt: it {id}, checks: [{{ contains: good }}] }}\n"))
        .collect();
    let project = Project::new(&[
        ("agent.sh", AGENT),
        (
            "evals/e.practicum.yaml",
            &format!("practicum: 1\nworkspace: empty\nrun: {{ agents: [own] }}\ncases:\n{cases}"),
        ),
    ]);
    let at = |name: &str| project.path().join(name).display().to_string();
    project.write(
        "practicum.toml",
        &format!(
            "[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\nenv = {{ COUNT = \"{}\" }}\n",
            at("agent.sh"),
            at("count")
        ),
    );
    project
}

const ALONE: [&str; 5] = ["--sandbox", "off", "-j", "1", "--json"];

#[test]
fn a_flaky_case_is_named_and_cannot_fail_a_gate_alone() {
    let project = project(&["steady", "flaky"]);
    let found = project.run(&[&["noise", "evals"], &ALONE[..]].concat()).exits(0).json();
    let schema = practicum::schema::schema("noise").expect("a schema");
    assert!(jsonschema::draft202012::validate(schema, &found).is_ok());
    let stored: Value = serde_json::from_slice(
        &std::fs::read(project.path().join(".practicum/noise.json")).expect("noise.json"),
    )
    .expect("JSON");
    assert_eq!(stored, found);
    let of = |id: &str| {
        let cases = found["cases"].as_array().expect("cases").clone();
        cases.into_iter().find(|case| case["id"] == id).expect("a case")
    };
    assert_eq!((&of("steady")["flip_rate"], &of("steady")["runs"]), (&json!(0.0), &json!(10)));
    assert_eq!((&of("flaky")["passed"], &of("flaky")["flip_rate"]), (&json!(5), &json!(25.0 / 45.0)));

    let run = |more: &[&str]| {
        project.run(&[&["run", "evals", "--repeat", "4", "--no-cache"], more, &ALONE[..]].concat())
    };
    let gate = run(&[]).exits(0).json()["gates"][0].clone();
    assert_eq!(
        (&gate["ok"], &gate["value"], &gate["spared"]),
        (&json!(true), &json!(0.5), &json!(["flaky"]))
    );
    let text = project.run(&["show"]).exits(0).stdout;
    assert!(text.contains("known to be flaky: flaky"), "{text}");
    assert_eq!(run(&["--count-flaky"]).exits(1).json()["gates"][0]["spared"], Value::Null);

    let words = project.run(&["noise", "evals", "--repeat", "2", "--sandbox", "off", "-j", "1"]).exits(0);
    assert!(words.stdout.contains("flaky: flaky of e (own): 1/2 passed"), "{}", words.stdout);
}

#[test]
fn a_case_that_is_worse_than_its_noise_still_fails() {
    let project = project(&["steady", "flaky"]);
    project.run(&[&["noise", "evals"], &ALONE[..]].concat()).exits(0);
    project.write("agent.sh", "case \"$1\" in *flaky*) echo bad ;; *) echo good ;; esac\n");
    let run = ["run", "evals", "--repeat", "10", "--no-cache"];
    let gate = project.run(&[&run[..], &ALONE[..]].concat()).exits(1).json()["gates"][0].clone();
    assert_eq!((&gate["ok"], &gate["spared"]), (&json!(false), &Value::Null));
}

/// A single run of a case can never be clearly worse than what is known of it; eight can.
#[test]
fn flaky_cases_that_fail_all_at_once_fail_the_gate() {
    let ids: Vec<String> = (1..=8).map(|n| format!("flaky{n}")).chain(["steady".to_owned()]).collect();
    let project = project(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let known = |id: &String| {
        let passed = if id == "steady" { 10 } else { 8 };
        json!({"suite": "e", "id": id, "agent": "own", "model": null, "mode": "baseline", "arm": "with",
               "runs": 10, "passed": passed, "flip_rate": 0.3})
    };
    let noise = json!({"schema_version": 1, "cases": ids.iter().map(known).collect::<Vec<_>>()});
    project.write(".practicum/noise.json", &noise.to_string());
    let foreign = project.run(&["run", "evals", "--gate", "pass_rate=0.9", "--sandbox", "off", "-j", "1"]);
    assert!(foreign.stderr.contains("so no case counts as flaky"), "{}", foreign.stderr);
    project.run(&["import", "noise"]).exits(0);
    let run = |agent: &str| {
        project.write("agent.sh", agent);
        project.run(&["run", "evals", "--gate", "pass_rate=0.9", "--no-cache", "--sandbox", "off", "-j", "1"])
    };
    let one = run("case \"$1\" in *flaky8*) echo bad ;; *) echo good ;; esac\n").exits(0);
    assert!(one.stdout.contains("without what is known to be flaky: flaky8) holds"), "{}", one.stdout);
    let all = run("case \"$1\" in *flaky*) echo bad ;; *) echo good ;; esac\n").exits(1);
    let message = "more of what is known to be flaky failed than usual: flaky1, flaky2";
    assert!(all.stdout.contains(message) && all.stdout.contains("FAIL"), "{}", all.stdout);
}

#[test]
fn nothing_but_noise_is_no_measurement() {
    let project = project(&["steady"]);
    let ran = project.run(&["noise", "evals", "--repeat", "1", "--sandbox", "off"]).exits(3);
    assert!(ran.stderr.contains("nothing is known of noise"), "{}", ran.stderr);
    assert!(!project.path().join(".practicum/noise.json").exists());
    project.write(".practicum/noise.json", "{");
    let ran = project.run(&["run", "evals"]).exits(2);
    assert!(ran.stderr.contains("practicum noise measures it again"), "{}", ran.stderr);
}

#[test]
fn only_undecided_cases_are_run_again() {
    let project = project(&["steady", "fails", "flaky"]);
    let run = ["run", "evals", "--repeat", "12", "--stop-early"];
    let summary = project.run(&[&run[..], &ALONE[..]].concat()).exits(1).json();
    let trials = |at: usize| {
        let case = &summary["cases"][at];
        case["passed"].as_u64().expect("a count") + case["failed"].as_u64().expect("a count")
    };
    // Seven passes, or two failures, tell; a case in between has a failure, a pass and a failure.
    assert_eq!([trials(0), trials(1), trials(2)], [7, 2, 3]);
    assert_eq!(summary["left_out"], 36 - 12);
    // Seven passes have an interval that holds at every number of runs, wider than that of a fixed number.
    let low = summary["cases"][0]["pass_rate"]["low"].as_f64().expect("a bound");
    assert!(low > 0.4 && low < 0.59, "{low}");
    assert_eq!(summary["gates"][0]["low"], Value::Null, "the share of cases that pass has none");
    assert!(summary["pass_rate"]["low"].is_number());
    let few = ["run", "evals", "--repeat", "3", "--stop-early", "--case", "steady"];
    let summary = project.run(&[&few[..], &ALONE[..]].concat()).exits(0).json();
    assert_eq!(summary["totals"]["trials"], 3, "never more than was asked for");
}
