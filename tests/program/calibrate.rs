//! `practicum calibrate`: judges against the labels of people, from a run to the corrected rate.

use serde_json::{Value, json};

use crate::common::Project;

/// In two cases the judge is right, in two it is wrong.
const EVALS: &str = "
practicum: 1
name: sea
workspace: empty
run: { agents: [builtin], script: script.yaml }
gates: { pass_rate: 0 }
cases:
  - { id: calm, prompt: tell calm, repeat: 6, checks: [{ judge: It is calm., id: is-calm }] }
  - { id: quiet, prompt: tell quiet, repeat: 2, checks: [{ judge: It is calm., id: is-calm }] }
  - { id: storm, prompt: tell storm, repeat: 6, checks: [{ judge: It is calm., id: is-calm }] }
  - { id: boast, prompt: tell boast, repeat: 2, checks: [{ judge: It is calm., id: is-calm }] }
";

const ANSWERS: &str = r#"
practicum_script: 1
scenarios:
  - { when: tell calm, steps: ["The sea is calm."] }
  - { when: tell quiet, steps: ["Not a wave."] }
  - { when: tell storm, steps: ["The sea is wild."] }
  - { when: tell boast, steps: ["The sea is calm, I swear by the storm."] }
"#;

/// A judge that passes what has these words in it, and fails the rest.
fn judge(passed: &[(&str, &str)]) -> String {
    let rule = |when: &str, verdict: &str, quote: &str| {
        format!(
            "  - to: judge\n{when}    steps: [{{ tools: [{{ name: report_marks, input: {{ results: [{{ id: is-calm, verdict: {verdict}, evidence: [{quote:?}], reasoning: SECRET REASON }}] }} }}] }}]\n"
        )
    };
    let mut script = ANSWERS.to_owned();
    for (words, verdict) in passed {
        script += &rule(&format!("    when: {words}\n"), verdict, words);
    }
    script + &rule("", "fail", "nothing")
}

fn project() -> Project {
    let first = judge(&[("sea is calm", "pass")]);
    let second = judge(&[("I swear", "fail"), ("sea is calm", "pass")]);
    let project =
        Project::new(&[("e.practicum.yaml", EVALS), ("script.yaml", &first), ("second.yaml", &second)]);
    project.run(&["run", ".", "--json"]).exits(0);
    project
}

/// Fills in what a person would say: the first two cases are good.
fn fill(project: &Project, from: &str, to: &str) -> Vec<String> {
    let text = std::fs::read_to_string(project.path().join(from)).expect("an export");
    let mut lines = text.lines();
    let head = lines.next().expect("names").to_owned();
    assert!(head.ends_with(",passed"), "{head}");
    let fill = |line: &str| {
        let is_good = line.contains("tell calm") || line.contains("tell quiet");
        format!("{line}{}", if is_good { "pass" } else { "fail" })
    };
    let filled: Vec<String> = std::iter::once(head).chain(lines.map(fill)).collect();
    project.write(to, &(filled.join("\n") + "\n"));
    filled
}

fn calibrate(project: &Project, more: &[&str]) -> Value {
    let ran = project.run(&[&["calibrate", "--json"], more].concat()).exits(0);
    let found = serde_json::from_str(&ran.stdout).expect("JSON");
    let schema = practicum::schema::schema("calibrate").expect("a schema");
    if let Err(error) = jsonschema::draft202012::validate(schema, &found) {
        panic!("{error} at {}", error.instance_path());
    }
    found
}

#[test]
fn labels_of_a_file_correct_the_rate_of_the_judge() {
    let project = project();
    let ran = project.run(&["calibrate"]).exits(3);
    assert!(ran.stdout.contains("16 verdicts of judges, 0 labelled") && ran.stdout.contains("no label yet"));

    project.run(&["calibrate", "--export", "open.csv"]).exits(0);
    let filled = fill(&project, "open.csv", "labels.csv");
    assert_eq!(filled.len(), 17);
    let whole = filled.join("\n");
    assert!(!whole.contains("SECRET") && !whole.contains("judge") && !whole.contains("verdict"), "{whole}");
    let cases: Vec<bool> = filled[1..].iter().map(|line| line.contains("tell calm")).collect();
    let mut sorted = cases.clone();
    sorted.sort_unstable();
    let mut reversed = sorted.clone();
    reversed.reverse();
    assert!(cases != sorted && cases != reversed, "they come in random order");

    let found = calibrate(&project, &["--labels", "labels.csv"]);
    let row = &found["judges"][0];
    let table = json!({"both_passed": 6, "only_judge_passed": 2, "only_person_passed": 2, "both_failed": 6});
    assert_eq!(row["table"], table);
    assert_eq!(row["criterion"], json!({"suite": "sea", "check": "is-calm"}));
    let rate = &row["rates"][0];
    for figure in ["by_judge", "corrected", "prediction_powered"] {
        let value = |key: &str| rate[figure][key].as_f64().expect("a number");
        assert!((value("value") - 0.5).abs() < 1e-9, "{figure}: {rate}");
        assert!(value("low") < 0.4 && value("high") > 0.6, "{figure}: {rate}");
    }
    let shown = project.run(&["calibrate", "--labels", "labels.csv"]).exits(0).stdout;
    for part in [
        "is-calm of sea: 16 labels",
        "judge: pass                6             2",
        "corrected           0.50 [",
        "prediction-powered  0.50 [",
        "length of the answer: ",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }

    // Labels as JSON lines, of which the first in the order are a random sample and too few to correct with.
    project.run(&["calibrate", "--export", "open.jsonl"]).exits(0);
    let text = std::fs::read_to_string(project.path().join("open.jsonl")).expect("an export");
    let labelled = |text: &str| text.replace("\"passed\":null", "\"passed\":true");
    let first: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(at, line)| if at < 8 { labelled(line) } else { line.to_owned() })
        .collect();
    project.write("first.jsonl", &first.join("\n"));
    let found = calibrate(&project, &["--labels", "first.jsonl"]);
    let rate = &found["judges"][0]["rates"][0];
    assert!(rate["not_corrected"].as_str().is_some_and(|why| why.starts_with("too few labels")), "{rate}");
    assert_eq!(rate["corrected"]["value"], Value::Null);
    assert_eq!(rate["prediction_powered"]["value"], 1.0, "{rate}");
    // The last ones are no sample, unless somebody says so.
    let last: Vec<String> = text.lines().skip(8).map(labelled).collect();
    project.write("last.jsonl", &last.join("\n"));
    let found = calibrate(&project, &["--labels", "last.jsonl"]);
    assert_eq!(found["judges"][0]["rates"][0]["prediction_powered"]["value"], Value::Null);
    let found = calibrate(&project, &["--labels", "last.jsonl", "--random-sample"]);
    assert_eq!(found["judges"][0]["rates"][0]["prediction_powered"]["value"], 1.0);

    // Another judge on the same outputs fails two more, and rightly so.
    project.run(&["grade", "latest", "--script", "second.yaml", "--judge-model", "claude-second"]).exits(0);
    let runs = project.run(&["runs", "--json"]).exits(0).stdout;
    let runs: Value = serde_json::from_str(&runs).expect("JSON");
    let earlier = runs["runs"][0]["run"].as_str().expect("the first run").to_owned();
    let found = calibrate(&project, &["--labels", "labels.csv", "--against", &earlier]);
    let change = &found["drift"]["changes"][0];
    assert_eq!((&change["now_failed"], &change["now_passed"]), (&json!(2), &json!(0)), "{found}");
    assert_eq!((&change["corrected"], &change["made_wrong"]), (&json!(2), &json!(0)), "{found}");
    assert_eq!(change["chance"], 0.5);
    assert_eq!(found["judges"].as_array().map(Vec::len), Some(2), "{found}");
    project.run(&["run", ".", "--json", "--no-cache"]).exits(0);
    let ran = project.run(&["calibrate", "--against", &earlier]).exits(2);
    assert!(ran.stderr.contains("judged different outputs"), "{}", ran.stderr);
}

#[test]
fn a_label_that_cannot_be_used_is_never_left_out_silently() {
    let project = project();
    project.run(&["calibrate", "--export", "open.csv"]).exits(0);
    let filled = fill(&project, "open.csv", "labels.csv");
    let (head, first) = (&filled[0], &filled[1]);
    let other = if first.ends_with("pass") {
        first.replace(",pass", ",fail")
    } else {
        first.replace(",fail", ",pass")
    };
    let id = first.split(',').nth(1).expect("a trial");
    for (name, text, part) in [
        ("unknown.csv", format!("{head}\n{}\n", first.replace(id, "calm-0000")), "line 2: run"),
        (
            "run.csv",
            "run,trial,check,passed\nelsewhere,t,c,pass\n".to_owned(),
            "run \"elsewhere\" is not calibrated here",
        ),
        ("twice.csv", format!("{head}\n{first}\n{other}\n"), "line 3: check is-calm of trial"),
        ("word.csv", format!("{head}\n{first}ish\n"), "is no label; write pass or fail"),
        ("broken.jsonl", "{\"trial\": \"t\"\n".to_owned(), "broken.jsonl, line 1: "),
        ("binary.jsonl", "\u{0}\u{0}\n".to_owned(), "binary.jsonl, line 1: "),
        ("column.csv", "trial,check\n".to_owned(), "it has no column \"passed\""),
    ] {
        project.write(name, &text);
        let ran = project.run(&["calibrate", "--json", "--labels", "labels.csv", "--labels", name]).exits(2);
        assert!(ran.stderr.contains(part), "{name}: {}", ran.stderr);
        assert!(ran.stdout.is_empty() && ran.stderr.contains("no label was used"), "{name}: {}", ran.stdout);
    }
    let many: String = (0..40).map(|at| format!("t{at},c,pass\n")).collect();
    project.write("many.csv", &format!("trial,check,passed\n{many}"));
    let ran = project.run(&["calibrate", "--labels", "many.csv"]).exits(2);
    assert!(ran.stderr.contains("40 lines cannot be used; 30 more like these"), "{}", ran.stderr);
    // The same label twice says nothing new, and what was not filled in is counted.
    let open = first.trim_end_matches("pass").trim_end_matches("fail");
    let again = filled[2].clone();
    project.write("again.csv", &format!("{head}\n{again}\n{again}\n{open}\n"));
    let ran = project.run(&["calibrate", "--labels", "again.csv"]).exits(0);
    assert!(ran.stdout.contains("16 verdicts of judges, 1 labelled"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 line without a label"), "{}", ran.stderr);
}

#[test]
fn a_run_without_a_judge_cannot_be_calibrated() {
    let evals = "practicum: 1\nworkspace: empty\nrun: { agents: [builtin], script: script.yaml }\ncases:\n  - { id: calm, prompt: tell calm, checks: [{ contains: calm }] }\n";
    let project = Project::new(&[("e.practicum.yaml", evals), ("script.yaml", ANSWERS)]);
    project.run(&["run", ".", "--json"]).exits(0);
    let ran = project.run(&["calibrate", "--json"]).exits(2);
    assert!(ran.stderr.contains("no judge decided anything"), "{}", ran.stderr);
}
