//! Judges and readers of lists, as the program asks them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::common::{Project, Ran, claude, path_with};
use serde_json::Value;

const EVAL: &str = "\
practicum: 1
workspace: empty
run: { agents: [AGENT] }
cases:
  - id: venues
    prompt: Where to go?
    checks:
      - { id: named, judge: A park is named. }
";

const SECTIONS: &str = "      - id: list
        sections:
          - name: Venues
            tiers:
              - label: all
                min_entries: 2
                max_entries: 3
                fields:
                  - { id: venue_name, name: name }
                  - { id: venue_zip, name: zip, required: false, format: zip_us }
";

const SAID: &str = "  - { when: Where to go, steps: ['1. Park, 94103 2. Zoo, none'] }\n";

const JUDGE: &str = "    when: The statements to decide
    steps:
      - tools:
          - name: report_marks
            input:
              results: [{ id: named, verdict: pass, score: null, evidence: ['1. Park'], reasoning: It is., weak: any list has one }]
              uncovered: [whether the zips are right]
              claims: [{ claim: there is a zoo, verified: false, evidence: nothing was looked up }]
";

const READER: &str = "    when: What to read
    steps:
      - tools:
          - name: report_entries
            input:
              Venues: { all: [{ name: Park, zip: '94103' }, { name: Zoo, zip: none }] }
";

fn project(eval: &str, scenarios: &[&str]) -> Project {
    let eval = eval.replace("AGENT", "builtin");
    let project = Project::new(&[("evals/e.practicum.yaml", &eval)]);
    let judges: String = scenarios.iter().map(|scenario| format!("  - to: judge\n{scenario}")).collect();
    project.write("script.yaml", &format!("practicum_script: 1\nscenarios:\n{SAID}{judges}"));
    project
}

fn run(project: &Project, more: &[&str]) -> Ran {
    let path = path_with(&claude());
    let args = [&["run", "evals", "--script", "script.yaml", "--no-cache", "--json"], more].concat();
    Ran::of(project.practicum(&args).env("PATH", path).output().expect("practicum starts"))
}

/// The record of the only trial of the only run.
fn record(project: &Project) -> Value {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    let trial = trials.flatten().next().expect("a trial");
    let text = std::fs::read(trial.path().join("checks.json")).expect("a record");
    serde_json::from_slice(&text).expect("JSON")
}

/// The checks of a record with their verdicts.
fn verdicts(record: &Value) -> Vec<(&str, &str)> {
    let checks = record["checks"].as_array().expect("checks").iter();
    let words = checks.map(|check| (check["check"].as_str(), check["verdict"].as_str()));
    words.map(|(id, verdict)| (id.expect("an id"), verdict.unwrap_or("not_scored"))).collect()
}

#[test]
fn a_model_reads_the_list_and_code_marks_it() {
    let project = project(&format!("{EVAL}{SECTIONS}"), &[READER, JUDGE]);
    run(&project, &[]).exits(1);
    let record = record(&project);
    let expected = [
        ("named", "pass"),
        ("list/Venues/all/count", "pass"),
        ("list/Venues/all/count_max", "pass"),
        ("venue_name", "pass"),
        ("venue_zip", "fail"),
    ];
    assert_eq!(verdicts(&record), expected);
    assert_eq!(record["checks"][4]["evidence"][0], "entry 2: none");
}

#[test]
fn a_list_that_nobody_could_read_is_unscored_and_the_rest_is_not() {
    let broken = "    when: What to read\n    steps: [There is a park.]\n";
    for (reader, more) in [(broken, &[][..]), (READER, &["--no-judge"])] {
        let project = project(&format!("{EVAL}{SECTIONS}      - contains: Park\n"), &[reader, JUDGE]);
        run(&project, more).exits(3);
        let record = record(&project);
        let found = verdicts(&record);
        let judged = if more.is_empty() { "pass" } else { "not_scored" };
        assert_eq!(found[0], ("named", judged));
        assert!(found[1..5].iter().all(|(_, verdict)| *verdict == "not_scored"), "{found:?}");
        assert_eq!(found[5].1, "pass", "{found:?}");
    }
}

#[test]
fn what_a_judge_notices_is_kept_and_shown() {
    let project = project(EVAL, &[JUDGE]);
    run(&project, &[]).exits(0);
    let record = record(&project);
    assert_eq!(record["checks"][0]["weak"], "any list has one");
    assert_eq!(record["remarks"]["claims"][0]["verified"], false);
    let shown = project.run(&["show", "latest", "venues"]).exits(0).stdout;
    for part in [
        "weak check: any list has one",
        "not covered: whether the zips are right",
        "unconfirmed claim: there is a zoo",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let shown = project.run(&["show"]).exits(0).stdout;
    assert!(shown.contains("1 weak check, 1 uncovered behaviour, 1 unconfirmed claim"), "{shown}");
}

#[test]
fn a_cli_judges_where_the_user_or_a_variable_says_so() {
    let by_cli = |scenario: &str| scenario.replace("report_marks", "StructuredOutput");
    for (flag, variable, judge, expected) in [
        (&["--transport", "cli"][..], None, by_cli(JUDGE), 0),
        (&[], Some("cli"), by_cli(JUDGE), 0),
        (&["--transport", "api"], Some("cli"), JUDGE.to_owned(), 0),
        // What a script plays does not depend on what is installed.
        (&[], None, JUDGE.to_owned(), 0),
    ] {
        let project = project(EVAL, &[&judge]);
        let args = [&["run", "evals", "--script", "script.yaml", "--json"], flag].concat();
        let mut command = project.practicum(&args);
        command.env("PATH", path_with(&claude()));
        variable.map(|value| command.env("CLAUDITOR_TRANSPORT", value));
        Ran::of(command.output().expect("practicum starts")).exits(expected);
        assert_eq!(project.processes(), [""; 0]);
    }
}

#[test]
fn a_cli_that_is_not_there_is_no_judge() {
    let project = project(EVAL, &[JUDGE]);
    let args = ["run", "evals", "--script", "script.yaml", "--transport", "cli", "--json"];
    let why = project.run(&args).exits(2).stderr;
    assert!(why.contains("claude is not installed") && why.contains("nothing was started"), "{why}");
}

#[test]
fn votes_are_counted_and_kept() {
    let project = project(EVAL, &[JUDGE]);
    run(&project, &["--judge-votes", "3", "--judge-jobs", "1"]).exits(0);
    let check = record(&project)["checks"][0].clone();
    assert_eq!(check["votes"].as_array().map(Vec::len), Some(3), "{check}");
    let shown = project.run(&["show", "latest", "venues"]).exits(0).stdout;
    assert!(shown.contains("3 of 3 votes agree: 3 pass"), "{shown}");
    run(&project, &["--judge-votes", "2"]).exits(2);
    run(&project, &["--judge-jobs", "0"]).exits(2);
}

/// A gateway of its own, and a line for each request it got.
struct Model {
    process: Child,
    base_url: String,
    requests: Receiver<String>,
}

impl Model {
    fn start(project: &Project) -> Self {
        let mut command = project.practicum(&["gateway", "--script", "model.yaml"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address: Value = serde_json::from_str(&line).expect("JSON");
        let (sender, requests) = channel();
        let stderr = BufReader::new(process.stderr.take().expect("stderr"));
        std::thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .filter(|line| line.contains("anthropic-messages"))
                .all(|line| sender.send(line).is_ok())
        });
        let base_url = address["base_url"].as_str().expect("an address").to_owned();
        Self { process, base_url, requests }
    }

    /// So many requests came since this was last asked, and no more. A line may come a moment after
    /// its answer; one that comes later still is one too many for the next question.
    #[track_caller]
    fn was_asked(&self, times: usize, why: &str) {
        for _ in 0..times {
            self.requests.recv_timeout(Duration::from_secs(20)).expect(why);
        }
        assert!(self.requests.recv_timeout(Duration::from_millis(200)).is_err(), "{why}");
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_same_question_is_paid_for_once() {
    let project = Project::new(&[("evals/e.practicum.yaml", &EVAL.replace("AGENT", "shell"))]);
    project.write("agent.sh", "echo '1. Park'\n");
    let agent = project.path().join("agent.sh");
    let toml = format!("[agents.shell]\ncommand = [\"/bin/sh\", \"{}\"]\n", agent.display());
    project.write("practicum.toml", &toml);
    project.write("model.yaml", &format!("practicum_script: 1\nscenarios:\n  - name: judge\n{JUDGE}"));
    let model = Model::start(&project);
    let examine = |more: &[&str]| {
        let args = [&["run", "evals", "--transport", "api"], more].concat();
        let mut command = project.practicum(&args);
        command.env("ANTHROPIC_BASE_URL", &model.base_url).env("ANTHROPIC_API_KEY", "k");
        Ran::of(command.output().expect("practicum starts")).exits(0);
    };
    examine(&[]);
    model.was_asked(1, "it is a new question");
    // Another time limit is another trial, and the same question about it.
    examine(&["--timeout", "61s"]);
    model.was_asked(0, "it was answered before");
    examine(&["--timeout", "62s", "--judge-votes", "3"]);
    model.was_asked(2, "the first vote is known");
    examine(&["--no-cache"]);
    model.was_asked(1, "unless the user wants it asked again");
    examine(&["--timeout", "64s", "--max-cost", "5"]);
    model.was_asked(0, "a gateway that counts is no other judge");
    project.write("agent.sh", "echo 'See: 1. Park'\n");
    examine(&["--timeout", "63s"]);
    model.was_asked(1, "another record is another question");
    let kept = project.path().join(".practicum/cache/judge");
    assert!(std::fs::read_dir(&kept).expect("a folder").count() >= 4);
    project.run(&["clean", "--cache"]).exits(0);
    assert!(!kept.exists());
}

#[test]
fn an_agent_begins_while_a_judge_still_thinks() {
    let project = project(
        EVAL,
        &[&JUDGE.replace(
            "- tools:\n          - name: report",
            "- delay: 1s\n        tools:\n          - name: report",
        )],
    );
    run(&project, &["--repeat", "2", "-j", "1"]).exits(0);
    let events = std::fs::read_to_string(project.only_run().join("events.jsonl")).expect("events");
    let kinds: Vec<String> = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["event"].to_string())
        .filter(|kind| kind.contains("trial"))
        .collect();
    let expected = ["started", "started", "finished", "finished"].map(|end| format!("\"trial_{end}\""));
    assert_eq!(kinds, expected);
}
