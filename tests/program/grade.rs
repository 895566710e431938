//! `grade`: captured texts, and stored runs graded again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Project, Ran};
use serde_json::{Value, json};

const SPEC: &str = r#"{
  "skill_name": "finder",
  "assertions": [
    {"id": "title", "type": "contains", "needle": "Venues"},
    {"id": "bullets", "type": "min_count", "pattern": "^- ", "count": 2}
  ],
  "output_file": "research/results.md",
  "trigger_tests": {"should_trigger": ["Find venues"]}
}"#;

const CRITERIA: &str = r#"{
  "assertions": [{"id": "title", "type": "contains", "needle": "Venues"}],
  "grading_criteria": [{"id": "near", "criterion": "Are all venues near?"}]
}"#;

const GOOD: &str = "# Venues\n- one\n- two\n";

/// The judge's answer to the criterion, with this score.
fn script(score: &str) -> String {
    format!(
        "practicum_script: 1\nscenarios:\n  - to: judge\n    when: Are all venues near\n    steps:\n      - tools:\n          - name: report_marks\n            input: {{ results: [{{ id: near, score: {score}, evidence: ['- one'], reasoning: They are. }}] }}\n"
    )
}

fn verdicts(document: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let results = document["results"].as_array().expect("results");
    results.iter().map(|result| (text(&result["id"]), text(&result["verdict"]))).collect()
}

#[test]
fn a_captured_text_needs_no_skill_no_agent_and_no_model() {
    let project = Project::new(&[("finder.eval.json", SPEC), ("good.md", GOOD), ("bad.md", "Venues\n- one")]);
    let grade =
        |file: &str| ["grade", "--output", file, "--spec", "finder.eval.json", "--json"].map(str::to_owned);
    let run = |file: &str| project.run(&grade(file).each_ref().map(String::as_str));
    let good = run("good.md").exits(0);
    assert_eq!(good.stderr, "", "a skill that is not there is nothing to say");
    let expected = json!({
        "schema_version": 1,
        "results": [
            {"id": "title", "verdict": "pass", "score": null, "why": "found \"Venues\"", "evidence": ["# Venues"]},
            {"id": "bullets", "verdict": "pass", "score": null, "why": "2 matches of /^- /, at least 2 wanted", "evidence": []}
        ],
        "gates": [{"name": "all_cases_pass", "value": 1.0, "low": null, "high": null, "threshold": 1.0, "ok": true}],
        "ok": true
    });
    let mut found = good.json();
    // What a check says of itself is its own matter.
    for (result, like) in found["results"]
        .as_array_mut()
        .expect("results")
        .iter_mut()
        .zip(expected["results"].as_array().expect("results"))
    {
        assert!(result["why"].as_str().is_some_and(|why| !why.is_empty()));
        result["why"] = like["why"].clone();
        result["evidence"] = like["evidence"].clone();
    }
    // An interval may be known or not.
    found["gates"][0]["low"] = Value::Null;
    found["gates"][0]["high"] = Value::Null;
    assert_eq!(found, expected);

    let bad = run("bad.md").exits(1).json();
    assert_eq!((&bad["ok"], verdicts(&bad)["bullets"].as_str()), (&json!(false), "fail"));
    assert!(!project.path().join(".practicum").exists(), "nothing is stored");
}

#[test]
fn standard_input_can_be_graded() {
    let project = Project::new(&[("finder.eval.json", SPEC)]);
    let mut command = project.practicum(&["grade", "--output", "-", "--spec", "finder.eval.json"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), GOOD.as_bytes()).expect("written");
    let ran = Ran::of(child.wait_with_output().expect("ends")).exits(0);
    for part in ["PASS  2 of 2 checks passed", "✓ title:", "gate all_cases_pass: 1.00"] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
}

#[test]
fn declared_inputs_are_ignored_with_a_warning() {
    let spec = SPEC.replacen('{', "{\"input_files\": [\"in.csv\"],", 1);
    let project = Project::new(&[("finder.eval.json", &spec), ("in.csv", "a"), ("good.md", GOOD)]);
    let ran = project.run(&["grade", "--output", "good.md", "--spec", "finder.eval.json", "--json"]).exits(0);
    assert_eq!(ran.stderr, "WARNING: --output bypasses the runner; input_files declaration is ignored.\n");
    ran.json();
}

/// Without a judge, judged checks and their gates have no answer; with one, they decide.
#[test]
fn a_judge_is_asked_only_when_wanted() {
    let project =
        Project::new(&[("s.eval.json", CRITERIA), ("good.md", GOOD), ("judge.yaml", &script("0.9"))]);
    let usual = ["grade", "--output", "good.md", "--spec", "s.eval.json", "--json"];
    let names = |document: &Value| {
        let gates = document["gates"].as_array().expect("gates").iter();
        gates.map(|gate| gate["name"].as_str().expect("a name").to_owned()).collect::<Vec<String>>()
    };
    let unjudged = project.run(&usual).exits(3).json();
    assert_eq!(verdicts(&unjudged)["near"], "not_scored");
    assert_eq!(names(&unjudged), ["all_cases_pass", "criteria_pass_rate", "mean_score"]);
    // Only where everything may stay open does code decide alone.
    let code_alone = project.run(&[&usual[..], &["--allow-unscored", "1"]].concat()).exits(0).json();
    assert_eq!(names(&code_alone), ["all_cases_pass"]);
    // A gate that was asked for by name is not passed over.
    project.run(&[&usual[..], &["--gate", "mean_score=0.5"]].concat()).exits(3);

    let judged = [
        &usual[..],
        &[
            "--judge",
            "--script",
            "judge.yaml",
            "--judge-model",
            "my-llm",
            "--no-cache",
            "--grading-provider",
            "openai",
        ],
    ]
    .concat();
    let document = project.run(&judged).exits(0).json();
    assert_eq!(document["results"][1]["score"], 0.9);
    assert_eq!(document["results"][1]["evidence"], json!(["- one"]));
    assert_eq!(names(&document), ["all_cases_pass", "criteria_pass_rate", "mean_score"]);
    project.write("judge.yaml", &script("0.2"));
    project.run(&judged).exits(1);
    project.write("judge.yaml", "practicum_script: 1\nscenarios: [{to: judge, steps: [I like it.]}]\n");
    let document = project.run(&judged).exits(3).json();
    assert_eq!(
        (&document["results"][1]["verdict"], &document["results"][1]["score"]),
        (&json!("not_scored"), &Value::Null)
    );
}

#[test]
fn what_only_a_run_can_show_is_not_scored() {
    let eval = "practicum: 1\nskill: {name: s}\ncases:\n  - id: a\n    prompt: p\n    activation: must\n    checks:\n      - {contains: Venues, id: text}\n      - {tool_not_used: Bash, id: tool}\n      - {file: {path: x.md, exists: false}, id: file}\n      - {command: 'true', id: command}\n  - {id: b, prompt: q, activation: must_not}\n";
    let project = Project::new(&[("e.practicum.yaml", eval), ("good.md", GOOD)]);
    let usual = ["grade", "--output", "good.md", "--spec", "e.practicum.yaml", "--json"];
    let document = project.run(&usual).exits(3).json();
    let found = verdicts(&document);
    assert_eq!(found["text"], "pass");
    for id in ["tool", "file", "command", "activation"] {
        assert_eq!(found[id], "not_scored", "{id}");
    }
    assert_eq!(found.len(), 5, "a case that no text can answer is left out");
    project.run(&[&usual[..], &["--allow-unscored", "0.8"]].concat()).exits(0);
    project.run(&[&usual[..], &["--allow-unscored", "0.7"]].concat()).exits(3);
    // Asked for by name, it is there and has no answer.
    let named = project.run(&[&usual[..], &["--case", "*"]].concat()).exits(3).json();
    assert_eq!(verdicts(&named)["b/activation"], "not_scored");
    project.run(&[&usual[..], &["--case", "nothing"]].concat()).exits(2);
}

#[test]
fn every_format_can_mark_a_text() {
    let cases = [
        (
            "s.yaml",
            "timestamp: 2025-01-15T10:30:00Z\nname: n\nprompt: p\nexpected: e\nassertions: [{type: contains, value: venues}]\n",
            0,
        ),
        (
            "evals.json",
            r#"{"skill_name": "s", "evals": [{"id": 1, "prompt": "p", "assertions": [{"name": "n", "type": "contains", "value": "Venues"}]}]}"#,
            0,
        ),
        ("b.json", r#"{"evals": [{"id": "A", "prompt": "p", "expectations": ["It names venues."]}]}"#, 3),
        (
            "w.json",
            r#"{"version": "1", "skill": "s", "cases": [{"id": "a", "prompt": "p", "expectations": [{"criterion": "c", "description": "Names two venues", "required": true}]}]}"#,
            3,
        ),
        (
            "t.json",
            r#"{"name": "t", "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "q", "expectation": "must_activate"}]}]}"#,
            2,
        ),
        ("x.eval.json", "{}", 2),
        ("y.eval.json", r#"{"assertions": [{"id": "a", "type": "regex", "pattern": "("}]}"#, 2),
    ];
    for (name, text, code) in cases {
        let project = Project::new(&[(name, text), ("good.md", GOOD)]);
        let ran = project.run(&["grade", "--output", "good.md", "--spec", name, "--json"]).exits(code);
        assert_eq!(ran.stdout.is_empty(), code == 2, "{name}: {}", ran.stdout);
    }
    let project = Project::new(&[("b.json", cases[2].1), ("good.md", GOOD)]);
    let forced = ["grade", "--output", "good.md", "--spec", "b.json", "--dialect", "clauditor"];
    assert!(project.run(&forced).exits(2).stderr.contains("nothing was graded"));
}

#[test]
fn a_catastrophic_pattern_ends_with_a_clear_result() {
    let text = format!("{}b", "a".repeat(40));
    for pattern in ["(a+)+$", "(?=(a+)+$)x", r"(a+)+\\1$"] {
        let spec = format!(r#"{{"assertions": [{{"id": "a", "type": "regex", "pattern": "{pattern}"}}]}}"#);
        let project = Project::new(&[("x.eval.json", &spec), ("out.txt", &text)]);
        let ran = project.run(&["grade", "--output", "out.txt", "--spec", "x.eval.json", "--json"]);
        let result = &ran.json()["results"][0];
        let message = result["why"].as_str().expect("a reason");
        match result["verdict"].as_str() {
            Some("fail") => {
                assert!(ran.code == 1 && message.contains("matches nowhere"), "{pattern}: {message}")
            }
            Some("not_scored") => assert_eq!(ran.code, 3, "{pattern}: {message}"),
            other => panic!("{pattern}: {other:?}: {message}"),
        }
    }
}

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
run: { agents: [builtin], script: script.yaml }
cases:
  - id: greets
    prompt: [Greet Alice., And Bob.]
    activation: must
    files: [{ from: names.txt, to: names.txt }]
    checks:
      - { contains: Bob, id: says }
      - { contains: Alice, on: all, id: said }
      - { tool_used: Write, id: writes }
      - { file: { path: hello.txt, contains: Ahoy }, id: file }
      - { file: { path: absent.txt, exists: false }, id: absent }
      - { file: { path: names.txt, contains: Alice }, id: given }
      - { command: 'test -f hello.txt', id: command }
      - { limit: { files_changed: 1 }, id: few }
      - { judge: It is friendly., id: friendly }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - tools: [{ name: Skill, input: { skill: greeter } }]
      - tools: [{ name: Write, input: { file_path: '{{workspace}}/hello.txt', content: 'Ahoy, Alice!' } }]
      - Ahoy, Alice!
      - Ahoy, Bob!
  - to: judge
    steps:
      - tools: [{ name: report_marks, input: { results: [{ id: friendly, verdict: pass, evidence: ['Ahoy, Bob!'], reasoning: It is. }] } }]
";

fn greeter() -> Project {
    Project::new(&[
        (
            "greeter/SKILL.md",
            "---\nname: greeter\ndescription: Greets people. Use when asked to greet.\n---\nSay ahoy.\n",
        ),
        ("evals/e.practicum.yaml", EVAL),
        ("evals/script.yaml", SCRIPT),
        ("evals/names.txt", "Alice, Bob\n"),
    ])
}

/// Every file below a folder with its content.
fn content(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    ignore::WalkBuilder::new(folder)
        .standard_filters(false)
        .build()
        .flatten()
        .filter(|entry| entry.path().is_file())
        .map(|entry| (entry.path().to_owned(), std::fs::read(entry.path()).expect("readable")))
        .collect()
}

/// `check: old → new` for each verdict that changed.
fn changes(document: &Value) -> Vec<String> {
    let word = |verdict: &Value| match verdict {
        Value::String(word) => word.clone(),
        Value::Null => "none".to_owned(),
        _ => "not_scored".to_owned(),
    };
    let all = document["changes"].as_array().expect("changes");
    all.iter()
        .map(|change| {
            let check = change["check"].as_str().unwrap_or("trial");
            format!("{check}: {} → {}", word(&change["old"]), word(&change["new"]))
        })
        .collect()
}

#[test]
fn a_stored_run_is_marked_again_by_what_was_kept_of_it() {
    let project = greeter();
    project.run(&["run", "evals", "--trust"]).exits(0);
    let old = project.only_run();
    let before = content(&old);

    // Neither an agent nor its room is needed; what is gone with the room has no answer.
    let id = old.file_name().expect("an id").to_string_lossy().into_owned();
    let ran = project.run(&["grade", "latest", "--json"]).exits(3);
    let document = ran.json();
    let gone = ["trial: pass → not_scored", "given: pass → not_scored", "command: pass → not_scored"];
    assert_eq!(changes(&document), gone);
    assert_eq!(document["graded_from"], id.as_str());
    for change in document["changes"].as_array().expect("changes") {
        assert!(change["why"].as_str().is_some_and(|why| why.contains("the workspace is gone")), "{change}");
    }
    assert_eq!(content(&old), before, "the old grading stays as it was");

    // Today's checks and today's judge.
    let eval = EVAL
        .replace(
            "{ contains: Bob, id: says }",
            "{ contains: Carol, id: says }\n      - { contains: Ahoy, id: ahoy }",
        )
        .replace("      - { tool_used: Write, id: writes }\n", "")
        .replace("      - { command: 'test -f hello.txt', id: command }\n", "")
        .replace("      - { file: { path: names.txt, contains: Alice }, id: given }\n", "");
    project.write("evals/e.practicum.yaml", &eval);
    project.write("evals/script.yaml", &SCRIPT.replace("verdict: pass", "verdict: fail"));
    let ran = project.run(&["grade", &id]).exits(1);
    for part in [
        "regraded from run",
        "says: passed → failed: the check has changed: ",
        "ahoy: not there → passed: the check is new: ",
        "friendly: passed → failed: judged anew: It is.",
        "writes: passed → not there: the eval no longer has this check",
        "the trial: passed → failed",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    assert_eq!(content(&old), before);

    // The new grading is a run like any other, and a path names one too.
    let shown = project.run(&["show", "latest", "greets"]).exits(0);
    assert!(shown.stdout.contains("✗ says") && shown.stdout.contains(&format!("taken over from run {id}")));
    let by_path = project.run(&["grade", &old.display().to_string(), "--no-judge", "--json"]).exits(1).json();
    assert!(changes(&by_path).contains(&"friendly: pass → not_scored".to_owned()), "{by_path:#}");
    let runs = project.run(&["runs", "--json"]).exits(0).json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(4));

    // What the run answered to is gone; the run is graded with its own copy of the checks.
    std::fs::remove_dir_all(project.path().join("evals")).expect("removed");
    let ran = project.run(&["grade", &id, "--no-judge", "--json"]).exits(3);
    assert!(ran.stderr.contains("no longer in"), "{}", ran.stderr);
}

#[test]
fn cases_that_are_gone_or_ask_something_else_are_told() {
    let project = greeter();
    let eval = "practicum: 1\nworkspace: empty\nrun: { agents: [builtin], script: script.yaml }\ncases:\n  - {id: a, prompt: One., checks: [{contains: one}]}\n  - {id: b, prompt: Two., checks: [{contains: two}]}\n";
    let script =
        "practicum_script: 1\nscenarios:\n  - {when: One, steps: [one]}\n  - {when: Two, steps: [two]}\n";
    project.write("evals/e.practicum.yaml", eval);
    project.write("evals/script.yaml", script);
    project.run(&["run", "evals"]).exits(0);
    project.write("evals/e.practicum.yaml", &eval.replace("One.", "Another.").replace("id: b", "id: c"));
    let ran = project.run(&["grade", "latest", "--json"]).exits(3);
    assert_eq!(
        ran.json()["summary"]["totals"],
        json!({"trials": 2, "passed": 1, "failed": 0, "not_scored": 1, "reused": 2})
    );
    for part in [
        "case b is no longer in the evals, so its checks are those of the run",
        "case a asks something else today, so its old answers are not scored",
        "case c came into the evals after this run",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    project.write("evals/e.practicum.yaml", "practicum: 1\ncases: []\n");
    project.run(&["grade", "latest"]).exits(2);
    project.run(&["grade", "no-such-run"]).exits(2);
    project.run(&["grade"]).exits(2);
}

#[test]
fn a_run_that_never_came_to_its_end_is_not_marked() {
    let project = greeter();
    project.write("evals/script.yaml", "practicum_script: 1\nscenarios: [{steps: [{error: 401}]}]\n");
    project.run(&["run", "evals", "--trust"]).exits(3);
    let document = project.run(&["grade", "latest", "--json"]).exits(3).json();
    assert_eq!(document["changes"], json!([]));
    assert_eq!(
        document["summary"]["totals"],
        json!({"trials": 1, "passed": 0, "failed": 0, "not_scored": 1, "reused": 1})
    );
}

#[test]
fn links_are_asked_only_with_leave() {
    let eval = "practicum: 1\ncases:\n  - { id: c, prompt: p, checks: [{ urls_reachable: 1 }] }\n";
    // A name that nobody can have.
    let project = Project::new(&[("e.practicum.yaml", eval), ("said.txt", "see https://tide.nosuchtld-zz/")]);
    let grade = ["grade", "--output", "said.txt", "--spec", "e.practicum.yaml", "--json"];
    let unasked = project.run(&grade).exits(3).json();
    assert_eq!(unasked["results"][0]["verdict"], "not_scored");
    let asked = project.run(&[&grade[..], &["--allow-network"]].concat()).exits(1).json();
    assert_eq!(asked["results"][0]["verdict"], "fail");

    let agent = format!(
        "sandbox = \"off\"\n[agents.linker]\ncommand = [\"/bin/cat\", \"{}\"]\n",
        project.path().join("said.txt").display()
    );
    project.write("practicum.toml", &agent);
    project.run(&["run", "e.practicum.yaml", "--agent", "linker", "--json"]).exits(3);
    project
        .run(&["run", "e.practicum.yaml", "--agent", "linker", "--no-cache", "--allow-network", "--json"])
        .exits(1);
    project.run(&["grade", "latest", "--allow-network", "--json"]).exits(1);
}
