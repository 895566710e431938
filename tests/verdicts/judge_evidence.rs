//! A judge's pass needs a quote from the record, and the judge is shown every tool call.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::common::{Project, Ran};

const SAID: &str = "1. Park, 94103\n2. Zoo, closed";

/// A project with one case that has these statements: each an id and a scale.
fn project(statements: &[(&str, &str)]) -> Project {
    let checks: Vec<Value> = statements
        .iter()
        .map(|(id, scale)| json!({"id": id, "judge": {"statement": format!("It is {id}."), "scale": scale}}))
        .collect();
    let evals = json!({
        "practicum": 1, "workspace": "empty", "run": {"agents": ["builtin"]},
        "cases": [{"id": "venues", "prompt": "Where to go?", "checks": checks}],
    });
    Project::new(&[("evals/e.practicum.yaml", &evals.to_string())])
}

/// A script for the agent and for a judge that gives these answers one after the other.
fn answer(project: &Project, answers: &[Value]) {
    let step = |results: &Value| json!({"tools": [{"name": "report_marks", "input": {"results": results}}]});
    let steps: Vec<Value> = answers.iter().map(step).collect();
    let script = json!({"practicum_script": 1, "scenarios": [
        {"when": "Where to go", "steps": [SAID]},
        {"to": "judge", "steps": steps},
    ]});
    project.write("script.json", &script.to_string());
}

fn pass(id: &str, quotes: &[&str]) -> Value {
    json!({"id": id, "verdict": "pass", "score": null, "evidence": quotes, "reasoning": "So it is.", "weak": null})
}

fn score(id: &str, score: f64, quotes: &[&str]) -> Value {
    json!({"id": id, "verdict": null, "score": score, "evidence": quotes, "reasoning": "So it is.", "weak": null})
}

/// Makes a verdict with these quotes.
type GiveMark = fn(&[&str]) -> Value;

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "evals", "--script", "script.json", "--no-cache", "--json"], more].concat())
}

/// The checks of the latest run with their verdicts.
fn latest(project: &Project) -> Vec<(String, String)> {
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let newest = runs.max_by_key(std::fs::DirEntry::file_name).expect("a run").path();
    let trials = std::fs::read_dir(newest.join("trials")).expect("trials");
    let trial = trials.flatten().next().expect("a trial").path();
    let record = std::fs::read(trial.join("checks.json")).expect("a record");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    let checks = record["checks"].as_array().expect("checks").iter();
    let verdicts = checks.map(|check| {
        let verdict = check["verdict"].as_str().unwrap_or("not_scored").to_owned();
        (check["check"].as_str().expect("an id").to_owned(), verdict)
    });
    verdicts.collect()
}

#[track_caller]
fn verdict(project: &Project, expected: &str) {
    let found = latest(project);
    assert_eq!(found[0].1, expected, "{found:?}");
}

#[test]
fn a_pass_without_a_quote_from_the_record_is_not_a_pass() {
    let kinds: [(&str, GiveMark); 3] = [
        ("pass-fail", |quotes| pass("near", quotes)),
        ("1-5", |quotes| score("near", 4.0, quotes)),
        ("0-1", |quotes| score("near", 0.9, quotes)),
    ];
    for (scale, judge_verdict) in kinds {
        let project = project(&[("near", scale)]);
        for quotes in [&[][..], &["the beach is near"], &["a"], &["."], &[""]] {
            answer(&project, &[json!([judge_verdict(quotes)]), json!([judge_verdict(quotes)])]);
            let summary = run(&project, &[]).exits(3).json();
            assert_eq!(summary["cases"][0]["not_scored"], 1, "{scale} {quotes:?} {summary}");
            assert_eq!(summary["doubts"]["unsupported_marks"], 1, "{scale} {quotes:?}");
            verdict(&project, "not_scored");
        }
        // With the reason, the judge may find a quote or change its mind.
        answer(&project, &[json!([judge_verdict(&[])]), json!([judge_verdict(&["Park, 94103"])])]);
        run(&project, &[]).exits(0);
        // A quote as people quote: another case, another line break, a part left out.
        answer(&project, &[json!([judge_verdict(&["“1. PARK, 94103 … zoo, CLOSED”"])])]);
        run(&project, &[]).exits(0);
    }
}

/// The agent wrote an accent as a character of its own, as file names of some systems have it.
#[test]
fn a_quote_with_composed_letters_is_not_called_invented() {
    let project = project(&[("open", "pass-fail")]);
    answer(&project, &vec![json!([pass("open", &["Café and Zoo"])]); 2]);
    let script = std::fs::read_to_string(project.path().join("script.json")).expect("a script");
    project.write("script.json", &script.replace("Zoo, closed", "Cafe\u{301} and Zoo"));
    run(&project, &[]).exits(0);
    verdict(&project, "pass");
}

#[test]
fn a_fail_may_say_what_is_missing_without_a_quote() {
    let project = project(&[("near", "pass-fail")]);
    let fail = json!({"id": "near", "verdict": "fail", "score": null, "evidence": [], "reasoning": "No distance is given.", "weak": null});
    answer(&project, &[json!([fail])]);
    run(&project, &[]).exits(1);
    verdict(&project, "fail");
    answer(&project, &[json!([pass("near", &["nothing like it"])]), json!([fail])]);
    run(&project, &[]).exits(1);
    verdict(&project, "fail");
}

#[test]
fn an_invented_quote_beside_a_real_one_is_asked_about_and_then_flagged() {
    let project = project(&[("near", "pass-fail")]);
    let both = json!([pass("near", &["1. Park", "the beach"])]);
    answer(&project, &[both.clone(), both]);
    let summary = run(&project, &[]).exits(0).json();
    assert_eq!(summary["doubts"]["unsupported_marks"], 1);
    let shown = project.run(&["show", "latest", "venues"]).exits(0).stdout;
    assert!(shown.contains("quoted, but not in the record: the beach"), "{shown}");
    let text = project.run(&["show", "latest"]).exits(0).stdout;
    assert!(text.contains("doubts: 1 verdict without a quote"), "{text}");
}

#[test]
fn only_the_statements_without_support_are_asked_about_again() {
    let project = project(&[("near", "pass-fail"), ("cheap", "pass-fail")]);
    let first = json!([pass("near", &["1. Park"]), pass("cheap", &[])]);
    answer(&project, &[first.clone(), json!([pass("cheap", &["2. Zoo"])])]);
    run(&project, &[]).exits(0);
    // The second answer is about the other statement only, so the first keeps its verdict.
    answer(&project, &[first, json!([pass("near", &[])])]);
    run(&project, &[]).exits(3);
    let found = latest(&project);
    let expected =
        [("near", "pass"), ("cheap", "not_scored")].map(|(id, word)| (id.to_owned(), word.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn each_vote_needs_support() {
    let project = project(&[("near", "pass-fail")]);
    let votes = ["--judge-votes", "3", "--judge-jobs", "1"];
    // Every vote is a conversation of its own, and begins with the first answer.
    let (bare, quoted) = (json!([pass("near", &[])]), json!([pass("near", &["1. Park"])]));
    answer(&project, &[bare.clone(), bare.clone()]);
    run(&project, &votes).exits(3);
    verdict(&project, "not_scored");
    answer(&project, &[bare, quoted]);
    run(&project, &votes).exits(0);
    let shown = project.run(&["show", "latest", "venues"]).exits(0).stdout;
    assert!(shown.contains("3 of 3 votes agree: 3 pass"), "{shown}");
}

#[test]
fn a_user_may_accept_a_pass_without_support_and_sees_it_flagged() {
    let project = project(&[("near", "pass-fail")]);
    let bare = json!([pass("near", &[])]);
    answer(&project, &[bare.clone(), bare]);
    let summary = run(&project, &["--judge-unsupported", "accept"]).exits(0).json();
    assert_eq!(summary["doubts"]["unsupported_marks"], 1);
    run(&project, &[]).exits(3);
    project.write("practicum.toml", "[judge]\nunsupported = \"accept\"\n");
    run(&project, &[]).exits(0);
    run(&project, &["--judge-unsupported", "not-scored"]).exits(3);
    // Another setting is another trial: what was accepted is not taken over.
    let cached = ["run", "evals", "--script", "script.json", "--json"];
    project.run(&cached).exits(0);
    project.write("practicum.toml", "");
    project.run(&cached).exits(3);
    project.write("practicum.toml", "[judge]\nunsupported = \"maybe\"\n");
    run(&project, &[]).exits(2);
}

#[test]
fn a_run_that_is_graded_again_needs_support_too() {
    let project = project(&[("near", "pass-fail")]);
    answer(&project, &[json!([pass("near", &["1. Park"])])]);
    run(&project, &[]).exits(0);
    let bare = json!([pass("near", &["the beach"])]);
    answer(&project, &[bare.clone(), bare]);
    let regrade = ["grade", "latest", "--script", "script.json", "--no-cache", "--json"];
    assert_eq!(project.run(&regrade).exits(3).json()["summary"]["cases"][0]["not_scored"], 1);
    project.run(&[&regrade[..], &["--judge-unsupported", "accept"]].concat()).exits(0);
}

#[test]
fn a_captured_text_needs_support_too_and_says_what_was_left_out() {
    let project = project(&[("near", "pass-fail")]);
    project.write("out.txt", SAID);
    project.write("long.txt", &format!("{SAID}\n{}\n", "word ".repeat(100_000)));
    let grade = |file: &str, more: &[&str]| {
        let args = [
            "grade",
            "--output",
            file,
            "--spec",
            "evals/e.practicum.yaml",
            "--judge",
            "--script",
            "script.json",
        ];
        project.run(&[&args[..], more].concat())
    };
    let bare = json!([pass("near", &[])]);
    answer(&project, &[bare.clone(), bare]);
    assert_eq!(grade("out.txt", &["--json"]).exits(3).json()["results"][0]["verdict"], "not_scored");
    let text = grade("out.txt", &["--judge-unsupported", "accept"]).exits(0).stdout;
    assert!(text.contains("passed without a quote"), "{text}");
    answer(&project, &[json!([pass("near", &["1. Park"])])]);
    assert_eq!(grade("out.txt", &["--json"]).exits(0).json()["notes"], Value::Null);
    let text = grade("long.txt", &[]).exits(0).stdout;
    assert!(text.contains("note: case venues: the evidence was shortened for the judge: "), "{text}");
    assert!(grade("long.txt", &["--json"]).exits(0).json()["notes"][0].is_string());
}

#[test]
fn what_is_said_of_a_skill_needs_a_quote_from_its_text() {
    let evals = "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [builtin] }\n\
                 about_skill: [{ id: short, statement: The skill is short. }]\n\
                 cases: [{ id: hello, prompt: Say hello, checks: [{ contains: ahoy }] }]\n";
    let skill =
        "---\nname: greeter\ndescription: Greets people. Use when asked to greet.\n---\n\nSay ahoy.\n";
    let project = Project::new(&[("evals/e.practicum.yaml", evals), ("greeter/SKILL.md", skill)]);
    for (quote, expected) in [("Say ahoy.", "pass"), ("It has one line.", "not_scored")] {
        let step =
            json!({"tools": [{"name": "report_marks", "input": {"results": [pass("short", &[quote])]}}]});
        let script = json!({"practicum_script": 1, "scenarios": [
            {"when": "Say hello", "steps": ["ahoy"]},
            {"to": "judge", "steps": [step, step]},
        ]});
        project.write("script.json", &script.to_string());
        let summary = run(&project, &[]).exits(0).json();
        let verdict = &summary["skills_judged"][0]["checks"][0]["verdict"];
        assert_eq!(verdict.as_str().unwrap_or("not_scored"), expected, "{summary}");
    }
}

/// A model of its own, for answers that are kept.
struct Model {
    process: Child,
    base_url: String,
}

impl Model {
    fn start(project: &Project) -> Self {
        let mut command = project.practicum(&["gateway", "--script", "model.json"]);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the gateway starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
        let address: Value = serde_json::from_str(&line).expect("JSON");
        Self { process, base_url: address["base_url"].as_str().expect("an address").to_owned() }
    }

    /// Runs the evals with this model as their judge.
    fn examine(&self, project: &Project, more: &[&str]) -> Ran {
        let args = [&["run", "evals", "--transport", "api", "--json"], more].concat();
        let mut command = project.practicum(&args);
        command.env("ANTHROPIC_BASE_URL", &self.base_url).env("ANTHROPIC_API_KEY", "k");
        Ran::of(command.output().expect("practicum starts"))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn an_answer_without_support_that_is_kept_does_not_pass_later_and_the_second_question_is_paid_for() {
    let project = project(&[("near", "pass-fail")]);
    let evals = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
    project.write("evals/e.practicum.yaml", &evals.replace("builtin", "shell"));
    project.write("agent.sh", "echo '1. Park'\n");
    let agent = project.path().join("agent.sh");
    let toml = format!("[agents.shell]\ncommand = [\"/bin/sh\", \"{}\"]\n", agent.display());
    project.write("practicum.toml", &toml);
    let step = json!({"usage": {"input": 100, "output": 10},
        "tools": [{"name": "report_marks", "input": {"results": [pass("near", &[])]}}]});
    let script = json!({"practicum_script": 1, "scenarios": [{"steps": [step, step]}]});
    project.write("model.json", &script.to_string());
    let model = Model::start(&project);
    let summary = model.examine(&project, &["--judge-unsupported", "accept"]).exits(0).json();
    assert_eq!(summary["judging"]["tokens"]["output"], 20, "two questions: {summary}");
    let kept = std::fs::read_dir(project.path().join(".practicum/cache/judge")).expect("answers");
    assert_eq!(kept.count(), 1, "the answer is kept");
    model.examine(&project, &[]).exits(3);
}

/// An agent that calls a tool 80 times, with results that a judge's window cannot hold.
const BUSY: &str = r#"
echo '{"type":"start","schema_version":1,"skills":[]}'
pad=$(printf 'x%.0s' $(seq 1 7000))
for n in $(seq 1 80); do
  echo "{\"type\":\"tool\",\"id\":\"t$n\",\"name\":\"Bash\",\"input\":{\"command\":\"step-$n\"}}"
  echo "{\"type\":\"tool_result\",\"id\":\"t$n\",\"ok\":true,\"content\":\"$pad\"}"
done
echo '{"type":"text","text":"All done."}'
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn a_judge_sees_every_call_of_a_long_run_and_the_summary_says_what_was_shortened() {
    let project = project(&[("done", "pass-fail")]);
    let evals = std::fs::read_to_string(project.path().join("evals/e.practicum.yaml")).expect("evals");
    project.write("evals/e.practicum.yaml", &evals.replace("builtin", "busy"));
    project.write("agent.sh", BUSY);
    let toml = format!(
        "sandbox = \"off\"\n[agents.busy]\ncommand = [\"/bin/bash\", \"{}\"]\ndecoder = \"practicum-jsonl\"\n",
        project.path().join("agent.sh").display()
    );
    project.write("practicum.toml", &toml);
    let every: Vec<String> = (1..=80).map(|n| format!(r#"step-{n}"\}}\s+gave: x"#)).collect();
    let quote =
        json!({"tools": [{"name": "report_marks", "input": {"results": [pass("done", &["step-40"])]}}]});
    let script = json!({"practicum_script": 1, "scenarios": [
        {"when": {"regex": format!("(?s){}", every.join(".*"))}, "steps": [quote]},
    ]});
    project.write("model.json", &script.to_string());
    let model = Model::start(&project);
    let reports = ["--report", "md=r.md", "--report", "html=r.html", "--report", "github-comment=c.md"];
    let summary = model.examine(&project, &reports).exits(0).json();
    assert_eq!(summary["doubts"]["shortened_evidence"], 1, "{summary}");
    let message = "evidence was shortened for 1 judged trial";
    for name in ["r.md", "r.html", "c.md"] {
        let text = std::fs::read_to_string(project.path().join(name)).expect(name);
        assert!(text.contains(message), "{name}\n{text}");
    }
    let text = project.run(&["show", "latest"]).exits(0).stdout;
    assert!(text.contains(message), "{text}");
    let trial = project.run(&["show", "latest", "venues"]).exits(0).stdout;
    assert!(trial.contains("note: the evidence was shortened for the judge: "), "{trial}");
}

#[test]
fn what_only_the_user_said_supports_nothing() {
    let project = project(&[("near", "pass-fail")]);
    for (quote, code) in [("Where to go?", 3), ("user: Where to go", 3), ("1. Park", 0)] {
        let judge_verdict = json!([pass("near", &[quote])]);
        answer(&project, &[judge_verdict.clone(), judge_verdict]);
        run(&project, &[]).exits(code);
    }
}

#[test]
fn the_path_of_a_given_file_supports_nothing() {
    let project = project(&[("near", "pass-fail")]);
    let evals = json!({
        "practicum": 1, "workspace": "empty", "run": {"agents": ["builtin"]},
        "cases": [{"id": "venues", "prompt": "Where to go?", "files": ["places.csv"],
            "checks": [{"id": "near", "judge": "It read the places."}]}],
    });
    project.write("evals/e.practicum.yaml", &evals.to_string());
    project.write("evals/places.csv", "Park\n");
    let judge_verdict = json!([pass("near", &["places.csv"])]);
    answer(&project, &[judge_verdict.clone(), judge_verdict]);
    run(&project, &[]).exits(3);
    verdict(&project, "not_scored");
}

/// A judge of two outputs that quotes these words.
fn comparing(quotes: &[&str]) -> String {
    let dimensions = [
        "description_quality",
        "convention_compliance",
        "type_specific_quality",
        "token_efficiency",
        "content_value",
    ];
    let scores: serde_json::Map<String, Value> =
        dimensions.iter().map(|name| ((*name).to_owned(), json!({"A": 8, "B": 6}))).collect();
    let step = |quote: &&str| {
        let input = json!({"winner": "A", "reasoning": "r", "quote": quote, "scores": scores});
        json!({"tools": [{"name": "report_comparison", "input": input}]})
    };
    let steps: Vec<Value> = quotes.iter().map(step).collect();
    json!({"practicum_script": 1, "scenarios": [{"name": "a", "to": "judge", "steps": steps}]}).to_string()
}

#[test]
fn a_comparison_without_a_quote_of_an_output_decides_nothing() {
    let project = Project::new(&[("a.md", "The ferry leaves at nine.\n"), ("b.md", "No ferry today.\n")]);
    let compare = |quotes: &[&str], code: i32| {
        project.write("judge.json", &comparing(quotes));
        let args = [
            "compare",
            "a.md",
            "b.md",
            "--blind",
            "--request",
            "When does it leave?",
            "--script",
            "judge.json",
            "--json",
        ];
        project.run(&args).exits(code).json()
    };
    // Words of the request, words that nobody said, and none at all.
    for invented in ["When does it leave?", "The ferry leaves at ten.", ""] {
        let found = compare(&[invented, invented], 3);
        assert_eq!((&found["not_compared"], &found["ties"]), (&json!(1), &json!(0)), "{found:#}");
        let why = found["cases"][0]["orders"][0]["why"].as_str().expect("a reason");
        assert!(why.contains("quote"), "{why}");
    }
    // Asked once more, the judge may quote what is there.
    let found = compare(&["invented words", "no ferry today"], 0);
    assert_eq!(found["not_compared"], 0, "{found:#}");
    assert_eq!(found["cases"][0]["orders"][0]["quote"], "no ferry today");
}
