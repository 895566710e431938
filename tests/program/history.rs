//! What many runs tell: runs, reindex, trend, audit, badge, export, and the estimate of a plan.

use crate::common::Project;
use serde_json::Value;

const EVALS: &str = "
practicum: 1
skill: echoes
workspace: empty
run: { agents: [echo], arms: [with, without], repeat: 3 }
cases:
  - { id: greets, prompt: hello, checks: [{ contains: hello, id: says }, { max_length: 1000, id: short }] }
  - { id: '=1+1', prompt: bye, checks: [{ contains: hello, id: says }] }
";

/// An agent that says what it was told.
fn project() -> Project {
    let project = Project::new(&[
        ("e.practicum.yaml", EVALS),
        (
            "echoes/SKILL.md",
            "---\nname: echoes\ndescription: Says it again. Use when asked to.\n---\n\nSay it again.\n",
        ),
    ]);
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\n[agents.echo]\ncommand = [\"/bin/echo\", \"{prompt}\"]\n",
    );
    project
}

fn run(project: &Project) -> Value {
    project.run(&["run", "e.practicum.yaml", "--no-cache", "--json"]).json()
}

#[test]
fn runs_are_listed_whatever_became_of_the_index() {
    let project = project();
    let ids: Vec<Value> = (0..2).map(|_| run(&project)["run"].clone()).collect();
    let index = project.path().join(".practicum/index.db");
    assert!(index.is_file(), "a run writes the index");
    for spoil in ["", "delete", "damage"] {
        match spoil {
            "delete" => std::fs::remove_file(&index).expect("removed"),
            "damage" => std::fs::write(&index, "x".repeat(5000)).expect("written"),
            _ => {}
        }
        let listed = project.run(&["runs", "--json"]).exits(0).json();
        let runs = listed["runs"].as_array().expect("runs");
        assert_eq!(runs.iter().map(|run| run["run"].clone()).collect::<Vec<_>>(), ids, "{spoil}");
        assert_eq!(runs[0]["totals"]["trials"], 12);
        assert_eq!(runs[0]["exit"], 1);
        assert_eq!(runs[0]["state"], "failed");
    }
    let ran = project.run(&["reindex"]).exits(0);
    assert_eq!(ran.stdout, "2 runs with 24 trials\n");
    assert_eq!(project.run(&["runs"]).exits(0).stdout.lines().count(), 2);
}

#[test]
fn runs_at_the_same_time_are_all_indexed() {
    let project = project();
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = project.practicum(&["run", "e.practicum.yaml", "--no-cache", "--json"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
            command.spawn().expect("starts")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("the index can no longer"));
    }
    let export = project.run(&["export"]).exits(0).stdout;
    assert_eq!(export.lines().count(), 36);
}

#[test]
fn a_plan_says_what_it_will_take_by_what_it_took() {
    let project = project();
    let dry = |project: &Project| {
        project.run(&["run", "e.practicum.yaml", "--no-cache", "--dry-run"]).exits(0).stderr
    };
    assert!(dry(&project).contains("estimate: cost and time unknown"), "{}", dry(&project));
    run(&project);
    let said = dry(&project);
    assert!(said.contains("estimate: cost unknown, about 1s, by the median of earlier trials"), "{said}");
    let other = project.run(&["run", "e.practicum.yaml", "--model", "m", "--dry-run"]).exits(0).stderr;
    assert!(other.contains("estimate: cost and time unknown"), "another model has another history: {other}");
}

#[test]
fn a_trend_follows_a_number() {
    let project = project();
    assert!(project.run(&["trend"]).exits(0).stdout.contains("no run has measured pass_rate"));
    let ids: Vec<Value> = (0..2).map(|_| run(&project)["run"].clone()).collect();
    let trend = project.run(&["trend", "--json"]).exits(0).json();
    let points = trend["points"].as_array().expect("points");
    assert_eq!(points.iter().map(|point| point["run"].clone()).collect::<Vec<_>>(), ids);
    assert_eq!((&points[0]["value"], &points[0]["n"]), (&Value::from(0.5), &Value::from(6)));
    let case = project.run(&["trend", "pass_rate", "--case", "greets", "--arm", "without", "--json"]).json();
    assert_eq!((&case["points"][1]["value"], &case["points"][1]["n"]), (&Value::from(1.0), &Value::from(3)));
    let nothing = project.run(&["trend", "f1", "--json"]).exits(0).json();
    assert_eq!(nothing["points"][0]["value"], Value::Null, "nothing measured is no number");
    let shown = project.run(&["trend", "--suite", "e"]).exits(0).stdout;
    assert!(shown.starts_with("pass_rate  ▅▅  0.50 → 0.50\n"), "{shown}");
    let last = project.run(&["trend", "--last", "1", "--agent", "echo", "--json"]).exits(0).json();
    assert_eq!(last["points"].as_array().map(Vec::len), Some(1));
    assert_eq!(last["points"][0]["run"], ids[1]);
    assert!(project.run(&["trend", "--agent", "nobody"]).exits(0).stdout.contains("no run has measured"));
    project.run(&["trend", "happiness"]).exits(2);
}

#[test]
fn an_audit_doubts_checks_with_evidence() {
    let project = project();
    run(&project);
    let few = project.run(&["audit", "--json", "--strict"]).exits(1).json();
    let concerns: Vec<(&str, &str, &str)> = few["doubts"]
        .as_array()
        .expect("doubts")
        .iter()
        .map(|doubt| {
            let text = |key: &str| doubt[key].as_str().expect("text");
            (text("case"), text("check"), text("concern"))
        })
        .collect();
    assert_eq!(concerns, [("greets", "says", "never_fails"), ("greets", "short", "never_fails")]);
    run(&project);
    let shown = project.run(&["audit"]).exits(0).stdout;
    for part in [
        "=1+1 of e\n  says: same without the skill (passed 0 of 6 with it, 0 of 6 without)\n",
        "  short: never fails (passed 12 of 12 in 2 runs)\n",
        "5 doubts about 3 checks\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let one = project.run(&["audit", "--last", "1"]).exits(0).stdout;
    assert!(one.contains("passed 6 of 6 in 1 run)"), "{one}");
    let other = project.run(&["audit", "--suite", "other"]).exits(0).stdout;
    assert_eq!(other, "0 doubts about 0 checks\n");
    let too_few_answers = project.run(&["audit", "--least", "100", "--strict"]).exits(0).stdout;
    assert_eq!(too_few_answers, "0 doubts about 3 checks, 3 with too few answers to say\n");
}

#[test]
fn a_check_that_finds_now_this_and_now_that_is_flaky() {
    let project = Project::new(&[(
        "e.practicum.yaml",
        "practicum: 1\nworkspace: empty\nrun: { agents: [coin], repeat: 6 }\ncases:\n  - { id: toss, prompt: p, checks: [{ contains: heads, id: heads }] }\n",
    )]);
    let count = project.path().join("count");
    let script = format!(
        "echo x >> {0}; [ $(( $(wc -l < {0}) % 2 )) = 0 ] && echo heads || echo tails",
        count.display()
    );
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\njobs = 1\n[agents.coin]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n"
        ),
    );
    run(&project);
    let shown = project.run(&["audit"]).exits(0).stdout;
    assert!(
        shown.contains("heads: flaky (in 1 of 1 repetitions the answers differed; passed 3 of 6)"),
        "{shown}"
    );
}

#[test]
fn badges_and_tables_are_made_for_others() {
    let project = project();
    assert!(project.run(&["badge"]).exits(0).stdout.contains("no runs"));
    let id = run(&project)["run"].as_str().expect("an id").to_owned();
    let svg = project.run(&["badge", "--label", "a<b"]).exits(0).stdout;
    assert!(svg.contains("a&lt;b: 3 of 6 passed") && svg.contains("#c62828"), "{svg}");
    let shields = project.run(&["badge", &id, "--format", "shields"]).exits(0).json();
    assert_eq!(
        shields,
        serde_json::json!({"schemaVersion": 1, "label": "practicum", "message": "3 of 6 passed", "color": "red", "isError": true})
    );
    project.run(&["badge", "-o", "b.svg"]).exits(0);
    assert!(project.path().join("b.svg").is_file());

    let lines = project.run(&["export", "latest"]).exits(0).stdout;
    let rows: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 12);
    assert!(rows.iter().all(|row| row["run"] == id.as_str() && row["schema_version"] == 1));
    assert_eq!(rows.iter().filter(|row| row["verdict"] == "pass").count(), 6);
    let csv =
        project.run(&["export", "--table", "checks", "--format", "csv", "--case", "=1+1"]).exits(0).stdout;
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("run,trial,suite,case,agent,model,arm,mode,attempt,check,required,judged,verdict,score")
    );
    let first = lines.next().expect("a row");
    assert!(first.contains(",'=1+1,"), "no formula reaches a spreadsheet: {first}");
    assert_eq!(lines.count(), 5);
    project.run(&["export", "--suite", "other", "-o", "none.jsonl"]).exits(0);
    assert_eq!(std::fs::read_to_string(project.path().join("none.jsonl")).expect("a file"), "");
    project.run(&["export", "nothing-like-it"]).exits(2);
}
