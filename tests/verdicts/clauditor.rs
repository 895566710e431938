//! clauditor's files: what is graded, what a model read, and the conveniences of its commands.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

const SKILL: &str = "---\nname: clean\ndescription: Cleans.\n---\nClean it.\n";

/// What the agent does for each argument of the command.
const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: /clean empty
    steps:
      - tools: [{ name: Bash, input: { command: "mkdir -p out; : > out/results.com" } }]
      - Done.
  - when: /clean bbb
    steps:
      - tools: [{ name: Bash, input: { command: "mkdir -p out; printf BBB > out/b.md" } }]
      - Done.
  - when: /clean two
    steps:
      - tools: [{ name: Bash, input: { command: "mkdir -p out; printf 'See https://a.org\r\nend A' > out/a.md; printf 'See https://b.org' > out/b.md" } }]
      - "First line\r\nsecond line"
  - when: /clean hang
    steps:
      - tools: [{ name: Bash, input: { command: "sleep 30" } }]
      - Done.
  - to: judge
    when: "section \"Venues\""
    steps:
      - tools: [{ name: report_entries, input: VENUES }]
      - tools: [{ name: report_entries, input: VENUES }]
  - to: judge
    steps:
      - tools: [{ name: report_marks, input: { results: MARKS } }]
      - tools: [{ name: report_marks, input: { results: MARKS } }]
default: Done.
"#;

fn script(venues: &Value, judge_verdicts: &Value) -> String {
    SCRIPT.replace("VENUES", &venues.to_string()).replace("MARKS", &judge_verdicts.to_string())
}

pub(crate) fn project(spec: &Value) -> Project {
    project_with(spec, &script(&json!({}), &json!([])))
}

fn project_with(spec: &Value, script: &str) -> Project {
    Project::new(&[
        ("script.yaml", script),
        (".claude/skills/clean/SKILL.md", SKILL),
        (".claude/skills/clean/SKILL.eval.json", &spec.to_string()),
    ])
}

pub(crate) fn run(project: &Project, more: &[&str]) -> Ran {
    let args = ["run", "--agent", "builtin", "--script", "script.yaml", "--no-cache"];
    project.run(&[&args[..], more].concat())
}

/// The verdict and the reason of each check of the only trial, by its id.
fn checks(project: &Project) -> Vec<(String, String, String)> {
    let trials = std::fs::read_dir(project.only_run().join("trials")).expect("trials");
    let trial = trials.flatten().next().expect("a trial").path();
    let text = std::fs::read_to_string(trial.join("checks.json")).expect("a record");
    let record: Value = serde_json::from_str(&text).expect("JSON");
    let checks = record["checks"].as_array().expect("checks").iter();
    let word = |check: &Value| match &check["verdict"] {
        Value::String(word) => word.clone(),
        _ => "not_scored".to_owned(),
    };
    let text = |check: &Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
    checks.map(|check| (text(check, "check"), word(check), text(check, "rationale"))).collect()
}

#[track_caller]
fn assert_verdicts(project: &Project, expected: &[(&str, &str)]) {
    let found = checks(project);
    let short: Vec<(&str, &str)> = found.iter().map(|(id, word, _)| (id.as_str(), word.as_str())).collect();
    assert_eq!(short, expected, "{found:?}");
}

#[test]
fn the_name_of_an_empty_file_is_not_its_text() {
    let project = project(&json!({
        "test_args": "empty",
        "output_files": ["out/*"],
        "assertions": [
            {"id": "domain", "type": "has_format", "format": "domain"},
            {"id": "long", "type": "min_length", "length": 1},
            {"id": "named", "type": "contains", "needle": "results"},
            {"id": "anything", "type": "regex", "pattern": "."},
            {"id": "absent", "type": "not_contains", "needle": "results"},
            {"id": "short", "type": "max_length", "length": 0},
        ],
    }));
    run(&project, &["--json"]).exits(1);
    assert_verdicts(
        &project,
        &[
            ("domain", "fail"),
            ("long", "fail"),
            ("named", "fail"),
            ("anything", "fail"),
            ("absent", "pass"),
            ("short", "pass"),
        ],
    );
}

#[test]
fn anchors_hold_at_the_ends_of_the_file_itself() {
    let project = project(&json!({
        "test_args": "bbb",
        "output_files": ["out/*"],
        "assertions": [
            {"id": "whole", "type": "regex", "pattern": "\\ABBB\\Z"},
            {"id": "exact", "type": "max_length", "length": 3},
        ],
    }));
    run(&project, &["--json"]).exits(0);
    // What is stored says the same when it is graded again.
    project.run(&["grade", "latest", "--json"]).exits(0);
    let shown = project.run(&["show", "latest"]).exits(0);
    assert!(!shown.stdout.contains("==="), "{}", shown.stdout);
}

#[test]
fn several_files_are_each_a_text_and_their_counts_add_up() {
    let project = project(&json!({
        "test_args": "two",
        "output_files": ["out/*.md"],
        "assertions": [
            {"id": "in_the_second", "type": "contains", "needle": "b.org"},
            {"id": "across", "type": "contains", "needle": "A\nSee"},
            {"id": "joined", "type": "contains", "needle": "ASee"},
            {"id": "label", "type": "contains", "needle": "out/"},
            {"id": "in_none", "type": "not_contains", "needle": "end A"},
            {"id": "ends", "type": "regex", "pattern": "end A\\Z"},
            {"id": "urls", "type": "has_urls", "count": 2},
            {"id": "more_urls", "type": "has_urls", "count": 3},
            {"id": "lines", "type": "min_count", "pattern": "^See", "count": 2},
            {"id": "domains", "type": "has_format", "format": "domain", "count": 3},
            {"id": "all", "type": "min_length", "length": 40},
            {"id": "no_more", "type": "max_length", "length": 40},
        ],
    }));
    run(&project, &["--json"]).exits(1);
    assert_verdicts(
        &project,
        &[
            ("in_the_second", "pass"),
            ("across", "fail"),
            ("joined", "fail"),
            ("label", "fail"),
            ("in_none", "fail"),
            ("ends", "pass"),
            ("urls", "pass"),
            ("more_urls", "fail"),
            ("lines", "pass"),
            ("domains", "fail"),
            ("all", "pass"),
            ("no_more", "pass"),
        ],
    );
    let found = checks(&project);
    let why = |id: &str| &found.iter().find(|(check, ..)| check == id).expect("the check").2;
    assert_eq!(why("in_the_second"), "found \"b.org\" in out/b.md");
    assert_eq!(why("in_none"), "found \"end A\" in out/a.md, which must not occur");
}

#[test]
fn files_of_a_native_case_have_no_labels_either() {
    let evals = r#"
practicum: 1
name: native
skill: .claude/skills/clean
cases:
  - id: two
    command: two
    checks:
      - { id: label, not_contains: "===", on: { files: [out/*] } }
      - { id: starts, starts_with: See, on: { files: [out/*] } }
      - { id: ends, ends_with: "end A", on: { files: [out/*] } }
      - { id: json, json: true, on: { files: [out/*] } }
"#;
    let project = project(&json!({"test_args": "two"}));
    project.write("native.practicum.yaml", evals);
    let args = ["run", "native.practicum.yaml", "--agent", "builtin", "--script", "script.yaml", "--json"];
    project.run(&args).exits(1);
    assert_verdicts(&project, &[("label", "pass"), ("starts", "pass"), ("ends", "fail"), ("json", "fail")]);
}

#[test]
fn a_carriage_return_does_not_hide_a_line() {
    let spec = json!({
        "test_args": "two",
        "assertions": [
            {"id": "lines", "type": "contains", "needle": "First line\nsecond"},
            {"id": "line_end", "type": "min_count", "pattern": "line$", "count": 2},
            {"id": "asked_for", "type": "not_contains", "needle": "\r"},
        ],
    });
    let expected = [("lines", "pass"), ("line_end", "pass"), ("asked_for", "fail")];
    // What an agent says, the file it writes, and a text that was captured elsewhere.
    let said = project(&spec);
    run(&said, &["--json"]).exits(1);
    assert_verdicts(&said, &expected);

    said.write("out.txt", "First line\r\nsecond line");
    let args = ["grade", "--output", "out.txt", "--spec", ".claude/skills/clean/SKILL.eval.json", "--json"];
    let graded = said.run(&args).exits(1).json();
    let found = graded["results"].as_array().expect("results").iter();
    let found: Vec<(&str, &str)> = found
        .map(|result| (result["id"].as_str().expect("id"), result["verdict"].as_str().expect("verdict")))
        .collect();
    assert_eq!(found, expected);

    for file in [json!({"output_file": "out/a.md"}), json!({"output_files": ["out/a.md"]})] {
        let mut spec = json!({
            "test_args": "two",
            "assertions": [{"id": "lines", "type": "contains", "needle": "a.org\nend"}],
        });
        spec.as_object_mut().expect("a spec").extend(file.as_object().expect("keys").clone());
        run(&project(&spec), &["--json"]).exits(0);
    }
}

/// A spec with one section, whose only tier wants this many entries.
fn venues(min_entries: u32) -> Value {
    json!({
        "skill_name": "x",
        "sections": [{"name": "Venues", "tiers": [{
            "label": "near",
            "min_entries": min_entries,
            "fields": [
                {"id": "name", "name": "name"},
                {"id": "zip", "name": "zip", "format": "zip_us"},
                {"id": "open", "name": "open", "format": "True|False"},
            ],
        }]}],
    })
}

fn grade_judged(spec: &Value, script: &str, more: &[&str]) -> Ran {
    let files = [("x.eval.json", spec.to_string()), ("script.yaml", script.to_owned())];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let project = Project::new(&files);
    project.write("out.txt", "Park 95110, open. Zoo, closed. Gate 0.\n");
    let args =
        ["grade", "--output", "out.txt", "--spec", "x.eval.json", "--judge", "--script", "script.yaml"];
    project.run(&[&args[..], &["--transport", "api", "--judge-model", "claude-x"], more].concat())
}

#[test]
fn a_number_that_a_model_read_is_an_answer() {
    let park = json!({"name": "Park", "zip": 95110, "open": true});
    for (entry, code) in [
        (park.clone(), 0),
        (json!({"name": "Park", "zip": "95110", "open": false}), 0),
        (json!({"name": "Park", "zip": 95110.0, "open": true}), 1),
        (json!({"name": "Park", "zip": [95110], "open": true}), 1),
        (json!({"name": 0, "zip": 95110, "open": true}), 0),
        (json!({"name": 0.0, "zip": "95110", "open": true}), 0),
        (json!({"name": "", "zip": 95110, "open": true}), 1),
        (json!({"name": null, "zip": 95110, "open": true}), 1),
        (json!({"name": "Park", "zip": " 95110", "open": true}), 1),
        (json!({"zip": 95110, "open": true}), 1),
    ] {
        let script = script(&json!({"Venues": {"near": [entry]}}), &json!([]));
        let ran = grade_judged(&venues(1), &script, &["--json"]);
        assert_eq!(ran.code, code, "{entry}: {}\n{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn no_entries_is_a_finding_and_no_answer_is_not() {
    for (answer, min_entries, code, words) in [
        (json!({"Venues": {"near": []}}), 1, 1, "Venues (near) has 0 entries, at least 1 wanted"),
        (json!({"Venues": {}}), 1, 1, "Venues (near) has 0 entries, at least 1 wanted"),
        (json!({}), 1, 1, "Venues (near) has 0 entries, at least 1 wanted"),
        (json!({"Venues": {"near": []}}), 0, 0, "Venues (near) has no entries, and none is required"),
        // Nobody said that there are none.
        (json!({}), 0, 3, "\"near\" of \"Venues\" is missing"),
        (json!({"Venues": {"near": "none"}}), 1, 3, "\"near\" of \"Venues\" must be a list"),
    ] {
        let ran = grade_judged(&venues(min_entries), &script(&answer, &json!([])), &[]);
        assert_eq!(ran.code, code, "{answer} {min_entries}: {}\n{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(words), "{answer} {min_entries}: {}", ran.stdout);
    }
    let project = Project::new(&[("x.eval.json", &venues(0).to_string()), ("x.md", "Find venues.\n")]);
    let checked = project.run(&["check", "x.eval.json"]).exits(0);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("requires an entry, so a text without any passes"), "{said}");
}

fn criteria() -> Value {
    json!({
        "skill_name": "x",
        "test_args": "two",
        "assertions": [{"id": "line", "type": "contains", "needle": "line"}],
        "grading_criteria": [
            {"id": "near", "criterion": "Is it near?"},
            {"id": "kind", "criterion": "Is it friendly?"},
        ],
    })
}

fn judge_verdicts(quote: &str) -> Value {
    let judge_verdict =
        |id: &str, score: f64| json!({"id": id, "score": score, "evidence": [quote], "reasoning": "So."});
    json!([judge_verdict("near", 0.3), judge_verdict("kind", 0.54)])
}

#[test]
fn a_criterion_that_fails_the_trial_is_not_called_optional() {
    let mut spec = criteria();
    spec["skill_name"] = json!("clean");
    let project = project_with(&spec, &script(&json!({}), &judge_verdicts("line")));
    let judge = ["--transport", "api", "--judge-model", "claude-x"];
    let ran =
        run(&project, &[&judge[..], &["--report", "junit=junit.xml", "--report", "md=report.md"]].concat());
    let ran = ran.exits(1);
    let reached = "1 of 2 passed, below the required share of 0.7; mean score 0.42, below the required 0.5";
    let read = |path: &str| std::fs::read_to_string(project.path().join(path)).expect("a report");
    let shown = project.run(&["show", "latest", "clean"]).exits(0).stdout;
    for text in [&ran.stdout, &read("junit.xml"), &read("report.md"), &shown] {
        assert!(!text.contains("optional"), "{text}");
        let text = text.replace("\\_", "_").replace("\\.", ".");
        assert!(text.contains(reached), "{text}");
        assert!(text.contains("near (criterion, score 0.30, passes from 0.5)"), "{text}");
    }
}

#[test]
fn a_missing_entry_is_shown_what_it_looks_like() {
    let project = Project::new(&[("out.txt", "1. Park\n")]);
    let spec = json!({"skill_name": "x", "assertions": [
        {"id": "entries", "type": "has_entries"},
        {"id": "urls", "type": "has_urls"},
        {"id": "phone", "type": "has_format", "format": "phone_us"},
    ]});
    project.write("x.eval.json", &spec.to_string());
    let ran = project.run(&["grade", "--output", "out.txt", "--spec", "x.eval.json"]).exits(1);
    for example in ["like **1. Name**", "like https://example.org/", "phone_us (like (415) 555-0132)"] {
        assert!(ran.stdout.contains(example), "{}", ran.stdout);
    }
}

#[test]
fn only_the_named_criteria_are_judged_and_that_is_said() {
    let script = script(&json!({}), &judge_verdicts("Park 95110"));
    let mut spec = criteria();
    spec["assertions"] = json!([]);
    grade_judged(&spec, &script, &[]).exits(1);
    let kind = grade_judged(&spec, &script, &["--only-criterion", "FRIENDLY", "--json"]).exits(0);
    assert!(
        kind.stderr.contains("only these criteria are judged: kind (1 other left out"),
        "{}",
        kind.stderr
    );
    let document = kind.json();
    assert_eq!(document["results"].as_array().map(Vec::len), Some(1), "{document}");
    assert!(document["notes"][0].as_str().is_some_and(|note| note.contains("left out")), "{document}");
    grade_judged(&spec, &script, &["--only-criterion", "near"]).exits(1);
    grade_judged(&spec, &script, &["--only-criterion", "near", "--only-criterion", "kind"]).exits(1);
    let none = grade_judged(&spec, &script, &["--only-criterion", "price"]).exits(2);
    assert!(none.stderr.contains("there are: near, kind"), "{}", none.stderr);

    // The same for a stored run, which keeps the note.
    spec["skill_name"] = json!("clean");
    let project = project_with(&spec, &script);
    let judge = ["--transport", "api", "--judge-model", "claude-x"];
    run(&project, &judge).exits(1);
    let args = ["grade", "latest", "--script", "script.yaml", "--only-criterion", "kind"];
    // A stored run is gated as a whole, and the criteria that were left out have no answer.
    let again = project.run(&[&args[..], &judge].concat()).exits(3);
    assert!(again.stderr.contains("only these criteria are judged: kind"), "{}", again.stderr);
}

#[test]
fn a_run_graded_by_some_criteria_is_not_a_pass_and_not_the_latest() {
    let spec = json!({"skill_name": "clean", "test_args": "two", "grading_criteria": [
        {"id": "near", "criterion": "Is it near?"},
        {"id": "kind", "criterion": "Is it friendly?"},
    ]});
    let project = project_with(&spec, &script(&json!({}), &judge_verdicts("line")));
    let judge = ["--transport", "api", "--judge-model", "claude-x"];
    run(&project, &judge).exits(1);
    let badge = || project.run(&["badge", "--format", "shields"]).exits(0).stdout;
    let trend = || project.run(&["trend", "pass_rate", "--json"]).stdout;
    let (badge_before, trend_before) = (badge(), trend());
    let args = ["grade", "latest", "--script", "script.yaml", "--only-criterion", "kind", "--json"];
    let graded = project.run(&[&args[..], &judge].concat()).exits(3).json();
    assert_eq!(graded["summary"]["cases"][0]["not_scored"], 1, "{graded}");
    assert_eq!((badge(), trend()), (badge_before, trend_before));
    let shown = project.run(&["show", "latest"]).exits(0).stdout;
    assert!(shown.contains("left out") && !shown.contains("PASS"), "{shown}");
    for format in ["md", "junit", "html", "json"] {
        let text = project.run(&["report", "latest", "--format", format]).exits(0).stdout;
        assert!(text.contains("left out"), "{format}: {text}");
    }
}

#[test]
fn a_called_skill_has_no_verdict_and_is_in_no_badge() {
    let spec = json!({"skill_name": "clean", "test_args": "bbb", "assertions": [
        {"id": "missing", "type": "contains", "needle": "not said"},
    ]});
    let project = project(&spec);
    run(&project, &[]).exits(1);
    let badge = || project.run(&["badge", "--format", "shields"]).exits(0).stdout;
    let trend = || project.run(&["trend", "pass_rate", "--json"]).stdout;
    let (badge_before, trend_before) = (badge(), trend());
    let skill = ".claude/skills/clean";
    let call = ["try", "--skill", skill, "--args", "bbb", "--agent", "builtin", "--script", "script.yaml"];
    assert_eq!(project.run(&call).exits(0).stdout, "Done.\n");
    assert_eq!((badge(), trend()), (badge_before, trend_before));
    let shown = project.run(&["show", "latest"]).stdout;
    assert!(shown.contains("CALLED") && !shown.contains("PASS") && !shown.contains("INCOMPLETE"), "{shown}");
}

/// A script whose agent does what the shell command does, says "the answer is here", and whose judge
/// gives every statement a full score with this quote.
pub(crate) fn file_script(command: &str, quote: &str) -> String {
    let judge_verdicts = json!({"results": [{"id": "c", "verdict": "pass", "score": 1.0, "evidence": [quote], "reasoning": "So."}]});
    let answer = json!({"tools": [{"name": "report_marks", "input": judge_verdicts}]});
    let act = json!({"tools": [{"name": "Bash", "input": {"command": command}}]});
    json!({"practicum_script": 1, "scenarios": [
        {"to": "judge", "steps": [answer, answer]},
        {"steps": [act, "the answer is here"]},
    ]})
    .to_string()
}

const JUDGE: [&str; 4] = ["--transport", "api", "--judge-model", "claude-x"];

#[test]
fn criteria_are_not_graded_on_the_answer_where_a_file_was_to_be_written() {
    let on = |files: Value| {
        let mut spec = json!({"skill_name": "clean", "test_args": "x",
            "grading_criteria": [{"id": "c", "criterion": "Is every venue within the distance?"}]});
        spec.as_object_mut().expect("a spec").extend(files.as_object().expect("keys").clone());
        spec
    };
    let (file, files) = (json!({"output_file": "o.txt"}), json!({"output_files": ["*.txt"]}));
    let said = "the answer is here";
    for (files, command, quote, code, why) in [
        (&file, "true", said, 1, "o.txt does not exist"),
        (&files, "true", said, 1, "no file was created or changed that matches *.txt"),
        (&file, ": > o.txt", said, 1, "o.txt is empty"),
        (&file, "echo ' ' > o.txt", said, 1, "o.txt is empty"),
        (&file, "echo 'Park, 2 km' > o.txt", said, 3, ""),
        (&files, "echo 'Park, 2 km' > o.txt", said, 3, ""),
        (&file, "echo 'Park, 2 km' > o.txt", "Park, 2 km", 0, ""),
        (&files, "echo 'Park, 2 km' > o.txt", "Park, 2 km", 0, ""),
    ] {
        let project = project_with(&on(files.clone()), &file_script(command, quote));
        let ran = run(&project, &JUDGE);
        assert_eq!(ran.code, code, "{files} {command} {quote}: {}\n{}", ran.stdout, ran.stderr);
        assert!(checks(&project)[0].2.contains(why), "{:?}", checks(&project));
        let again = ["grade", "latest", "--script", "script.yaml", "--no-cache"];
        let again = project.run(&[&again[..], &JUDGE].concat());
        assert_eq!(again.code, code, "graded again: {files} {command}: {}", again.stdout);
    }
    // A file that was there before is not the agent's work.
    let project = project_with(&on(file), &file_script("true", "Park, 2 km"));
    project.write("o.txt", "Park, 2 km\n");
    run(&project, &JUDGE).exits(1);
    assert!(checks(&project)[0].2.contains("was there before"), "{:?}", checks(&project));
}

#[test]
fn a_native_statement_about_a_file_is_not_judged_on_the_answer() {
    for (command, quote, code) in [
        ("true", "the answer is here", 1),
        ("echo Park > o.txt", "the answer is here", 3),
        ("echo Park > o.txt", "Park", 0),
    ] {
        let project = project_with(&json!({"test_args": "x"}), &file_script(command, quote));
        let evals = "practicum: 1\nname: n\nskill: .claude/skills/clean\ncases:\n  - id: one\n    command: x\n    \
                     checks: [{ id: c, judge: It lists venues., on: { file: o.txt } }]\n";
        project.write("n.practicum.yaml", evals);
        let args = ["run", "n.practicum.yaml", "--agent", "builtin", "--script", "script.yaml"];
        let ran = project.run(&[&args[..], &JUDGE].concat());
        assert_eq!(ran.code, code, "{command}: {}\n{}", ran.stdout, ran.stderr);
        // The same from the cache.
        assert_eq!(project.run(&[&args[..], &JUDGE].concat()).code, code, "{command}, cached");
    }
}

#[test]
fn a_named_file_that_was_not_written_is_not_made_up_for_by_another() {
    for (files, command, code, why) in [
        (json!(["a.md", "report.json"]), "echo ok > a.md", 1, "report.json was not written"),
        (json!(["a.md", "*.json"]), "echo ok > a.md", 0, ""),
        (json!(["*.md"]), "echo ok > .o.md", 1, "no file was created or changed that matches *.md"),
        (json!([".*.md"]), "echo ok > .o.md", 0, ""),
        (json!(["a.md", "report.json"]), "echo ok > a.md; echo ok > report.json", 0, ""),
    ] {
        let spec = json!({"skill_name": "clean", "test_args": "x", "output_files": files,
            "assertions": [{"id": "ok", "type": "contains", "needle": "ok"}]});
        let project = project_with(&spec, &file_script(command, ""));
        let ran = run(&project, &[]);
        assert_eq!(ran.code, code, "{files} {command}: {}", ran.stdout);
        assert!(checks(&project)[0].2.contains(why), "{:?}", checks(&project));
    }
}

#[test]
fn an_assertion_that_always_fails_decides_where_no_stability_is_wanted() {
    let spec = json!({"skill_name": "clean", "test_args": "x", "variance": {"n_runs": 2, "min_stability": 0.0},
        "assertions": [{"id": "a", "type": "contains", "needle": "not said"}]});
    run(&project(&spec), &[]).exits(1);
}

#[test]
fn a_field_that_a_model_made_up_is_not_a_pass() {
    let spec = |min_entries: u32| {
        json!({"skill_name": "x", "sections": [{"name": "Venues", "tiers": [{
            "label": "near", "min_entries": min_entries,
            "fields": [{"id": "name", "name": "name"}, {"id": "zip", "name": "zip"}],
        }]}]})
    };
    let park = json!({"name": "Park", "zip": "95110"});
    for (entries, min_entries, code) in [
        (json!([{"name": "Park", "zip": "408-555-1234"}]), 1, 3),
        (json!([{"name": "PARK", "zip": "95-110"}]), 1, 0),
        (json!([park]), 1, 0),
        (json!([park, park, park]), 3, 1),
        // Entries that the text has once, or not at all.
        (json!([park, {"name": "PARK", "zip": "95110"}]), 2, 1),
        (json!([park, {"name": "Zoo", "zip": null}]), 2, 1),
        (json!([park, {"name": null, "zip": null}]), 2, 1),
        (json!([park, {"name": " ", "zip": null}]), 2, 1),
        (json!([{"name": "ark", "zip": "95110"}]), 1, 3),
        (json!([{"name": "Park", "zip": "511"}]), 1, 3),
    ] {
        let script = script(&json!({"Venues": {"near": entries}}), &json!([]));
        let ran = grade_judged(&spec(min_entries), &script, &[]);
        assert_eq!(ran.code, code, "{entries}: {}\n{}", ran.stdout, ran.stderr);
    }
    let made_up = json!({"Venues": {"near": [{"name": "Park", "zip": "408-555-1234"}]}});
    let script = script(&made_up, &json!([]));
    grade_judged(&spec(1), &script, &["--judge-unsupported", "accept"]).exits(0);
}
