//! What gates say of a run, and whether its reports say the same.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

/// Activates the skill where the prompt says "fire", answers with the prompt, and counts its runs: from the second
/// one on, "later" activates the skill, and "once" is only said in the first.
const AGENT: &str = r#"
runs=$(cat "$0.runs" 2>/dev/null || echo 0); echo $((runs + 1)) > "$0.runs"
skill=$(ls .agents/skills 2>/dev/null | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
case "$1" in *fire*) echo "{\"type\":\"skill\",\"name\":\"$skill\"}" ;; esac
case "$1" in *later*) [ "$runs" = 0 ] || echo "{\"type\":\"skill\",\"name\":\"$skill\"}" ;; esac
case "$1" in *crash*) exit 7 ;; esac
said="$1"; [ "$runs" = 0 ] || said="steady"
echo "{\"type\":\"text\",\"text\":\"$said\"}"
echo '{"type":"end","ending":"finished"}'
"#;

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    for skill in ["skills/gull", "plugins/birds/skills/gull", "plugins/others/skills/gull"] {
        let text = format!("---\nname: gull\ndescription: Speaks like a gull.\n---\n\nkee-ow of {skill}\n");
        project.write(&format!("{skill}/SKILL.md"), &text);
    }
    project.write("agent.sh", AGENT);
    let agent = project.path().join("agent.sh");
    let toml = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        agent.display()
    );
    project.write("practicum.toml", &toml);
    project
}

fn run(project: &Project, path: &str, more: &[&str]) -> Ran {
    let words = ["run", path, "--agent", "own", "--no-probe", "--no-cache", "--jobs", "1"];
    project.run(&[&words[..], more].concat())
}

fn native(cases: &str) -> String {
    format!(
        "practicum: 1\nname: n\nskill: ../skills/gull\nworkspace: empty\ngates: {{ all_cases_pass: 0 }}\ncases:\n{cases}"
    )
}

#[test]
fn a_gate_does_not_pass_failures_that_it_does_not_measure() {
    let cases = "  - { id: must, prompt: fire, checks: [{ activation: must }, { contains: FIRE }] }\n  - { id: not, prompt: boats, checks: [{ activation: must_not }] }\n";
    let fired = "  - { id: must, prompt: fire, checks: [{ activation: must }] }\n  - { id: not, prompt: fire boats, checks: [{ activation: must_not }] }\n";
    let silent = "  - { id: must, prompt: boats, checks: [{ activation: must }] }\n  - { id: not, prompt: other, checks: [{ activation: must_not }] }\n";
    for (cases, gates, heading, named) in [
        (cases, &["f1=0.8"][..], "NO GATE", "failed: must;"),
        (cases, &["f1=0.8", "pass_rate=0.5"], "PASS", ""),
        (cases, &["f1=0.8", "pass_rate=0"], "NO GATE", "failed: must;"),
        (fired, &["recall=1"], "NO GATE", "failed: not;"),
        (fired, &["accuracy=0.5"], "PASS", ""),
        (fired, &["precision=0.5"], "PASS", ""),
        (silent, &["accuracy=0.5"], "PASS", ""),
        (silent, &["accuracy=0.5", "stability=0"], "PASS", ""),
    ] {
        let project = project(&[("evals/n.practicum.yaml", &native(cases))]);
        let flags: Vec<&str> = gates.iter().flat_map(|gate| ["--gate", gate]).collect();
        let ran = run(&project, "evals", &flags).exits(0);
        assert!(ran.stdout.contains(heading) && ran.stdout.contains(named), "{gates:?}: {}", ran.stdout);
        let badge = project.run(&["badge"]).exits(0);
        assert_eq!(badge.stdout.contains("no gate"), heading == "NO GATE", "{gates:?}: {}", badge.stdout);
    }
}

/// Two skills of one name: only one can be staged, so the cases of the other have no answer.
#[test]
fn a_gate_does_not_hold_while_cases_have_no_answer() {
    let case = |prompt: &str, expectation: &str| json!({"prompt": prompt, "expectation": expectation});
    let suite = json!({"name": "two", "runs_per_case": 1, "skills": [
        {"name": "gull", "plugin": "birds", "test_cases": [case("fire 1", "must_activate")]},
        {"name": "gull", "plugin": "others", "test_cases": [case("fire 2", "must_activate")]},
    ], "negative_cases": [case("boats", "should_not_activate")]});
    let project = project(&[("suites/two.json", &suite.to_string())]);
    for gate in ["f1=0.9", "recall=0.9", "precision=0.9", "accuracy=0.9"] {
        let ran = run(&project, "suites/two.json", &["--gate", gate, "--json"]).exits(3);
        let gate = &ran.json()["gates"][0];
        assert_eq!((&gate["value"], &gate["ok"]), (&json!(1.0), &json!(false)), "{gate:#}");
        assert!(gate["worst"].as_f64().is_some_and(|worst| worst < 0.9), "{gate:#}");
    }
    // What the user allows to be missing is not held against a gate.
    run(&project, "suites/two.json", &["--gate", "f1=0.9", "--allow-unscored", "0.5"]).exits(0);
}

#[test]
fn a_gate_on_judged_checks_does_not_hold_while_cases_were_not_started() {
    let judge = "practicum_script: 1\nscenarios:\n  - { to: judge, steps: [{ tools: [{ name: report_marks, input: { results: [{ id: j, verdict: pass, weak: null, evidence: [boats], reasoning: r }] } }] }] }\n  - { to: agent, steps: [boats] }\n";
    let cases = "  - { id: one, prompt: boats, checks: [{ id: j, judge: Names boats. }] }\n  - { id: two, prompt: other, files: [gone.txt], checks: [{ id: j, judge: Names boats. }] }\n";
    let project = project(&[("evals/n.practicum.yaml", &native(cases)), ("script.yaml", judge)]);
    for gate in ["criteria_pass_rate=0.9", "mean_score=0.9"] {
        let words = ["run", "evals", "--agent", "builtin", "--script", "script.yaml", "--no-probe", "--json"];
        let ran = project.run(&[&words[..], &["--no-cache", "--gate", gate]].concat()).exits(3);
        let gates = ran.json()["gates"].as_array().cloned().unwrap_or_default();
        let found = gates.iter().find(|found| gate.starts_with(found["name"].as_str().unwrap_or("-")));
        let found = found.expect("the gate");
        assert_eq!((&found["value"], &found["worst"]), (&json!(1.0), &json!(0.5)), "{found:#}");
        assert_eq!(found["ok"], false, "{found:#}");
    }
}

#[test]
fn fail_fast_does_not_decide_a_rate_by_one_run_of_three() {
    for (query, wanted, first, whole) in [
        ("later", true, 3, 0),
        // Two runs more cannot bring the rate up to 0.9, or down again.
        ("boats", true, 3, 1),
        ("fire", false, 3, 1),
    ] {
        let triggers = json!([{"query": query, "should_trigger": wanted}]).to_string();
        let project = project(&[("evals/gull/triggers.json", &triggers)]);
        let ran = run(&project, "skills/gull", &["--repeat", "3", "--fail-fast", "--json"]).exits(first);
        let summary = ran.json();
        assert_eq!(summary["cases"][0]["fire_rate"]["passes"], Value::Null, "{summary:#}");
        let id = summary["run"].as_str().expect("an id").to_owned();
        project.run(&["run", "--resume", &id, "--json"]).exits(whole);
    }
    let triggers = json!([{"query": "boats", "should_trigger": true}]).to_string();
    let project = project(&[("evals/gull/triggers.json", &triggers)]);
    let args = ["--repeat", "3", "--fail-fast", "--trigger-threshold", "0.9", "--json"];
    let summary = run(&project, "skills/gull", &args).exits(1).json();
    assert_eq!(summary["cases"][0]["fire_rate"]["passes"], false, "{summary:#}");
}

#[test]
fn reports_do_not_fail_a_case_that_is_steady_enough() {
    let cases = "  - { id: a, prompt: once, checks: [{ contains: steady }] }\n";
    for (stability, code, failures) in [("0.8", 0, "failures=\"0\""), ("0.9", 1, "failures=\"5\"")] {
        let text = native(cases).replace("{ all_cases_pass: 0 }", &format!("{{ stability: {stability} }}"));
        let project = project(&[("evals/n.practicum.yaml", &text)]);
        let reports = ["--report", "junit=j.xml", "--report", "github=g.txt", "--report", "md=m.md"];
        let ran = run(&project, "evals", &[&["--repeat", "5"][..], &reports].concat()).exits(code);
        let read = |path: &str| std::fs::read_to_string(project.path().join(path)).expect("a report");
        assert!(read("j.xml").contains(failures), "{stability}: {}", read("j.xml"));
        assert_eq!(read("g.txt").contains("::error"), code == 1, "{stability}: {}", read("g.txt"));
        assert_eq!(ran.stdout.contains("✗ a "), code == 1, "{stability}: {}", ran.stdout);
        assert!(ran.stdout.contains("4/5 passed"), "{}", ran.stdout);
        let words = if code == 1 { "The case fails: 4 of 5 runs" } else { "The case passes: 4 of 5 runs" };
        assert!(read("m.md").contains(words), "{stability}: {}", read("m.md"));
    }
    // A gate that wants every case to pass still decides.
    let text = native(cases).replace("{ all_cases_pass: 0 }", "{ all_cases_pass: true, stability: 0.8 }");
    let project = project(&[("evals/n.practicum.yaml", &text)]);
    let ran = run(&project, "evals", &["--repeat", "5"]).exits(1);
    assert!(ran.stdout.contains("✗ a "), "{}", ran.stdout);
}

/// Each row: the rule, the words that one run says, and what the run comes to. The checks are worth 3 and 1.
#[test]
fn a_score_below_the_needed_one_does_not_pass() {
    let checks =
        "checks: [{ contains: alpha, weight: 3 }, { contains: beta }, { contains: gamma, weight: 0 }]";
    for (rule, said, exit, score) in [
        ("{ score: 0.75 }", "alpha", 0, Some(0.75)),
        ("{ score: 0.76 }", "alpha", 1, Some(0.75)),
        ("{ score: 0.5 }", "beta", 1, Some(0.25)),
        ("{ mean_of_scores: 0.75 }", "alpha", 0, Some(0.75)),
        ("{ mean_of_scores: 0.8 }", "alpha", 1, Some(0.75)),
        ("checks", "alpha", 2, None),
    ] {
        let text = format!(
            "practicum: 1\nname: n\nskill: ../skills/gull\nworkspace: empty\ncases:\n  - {{ id: sums, prompt: {said}, pass_when: {rule}, {checks} }}\n"
        );
        let project = project(&[("evals/n.practicum.yaml", &text)]);
        let ran = run(&project, "evals", &["--json"]);
        assert_eq!(ran.code, exit, "{rule} {said}: {}{}", ran.stdout, ran.stderr);
        let Some(score) = score else { continue };
        let summary: Value = serde_json::from_str(&ran.stdout).expect("a summary");
        assert_eq!(summary["cases"][0]["score"]["mean"], json!(score), "{rule} {said}");
        let shown = project.run(&["show", "latest", "sums"]);
        assert!(shown.stdout.contains("weight 3"), "{}", shown.stdout);
        assert!(shown.stdout.contains(&format!("score {score}")), "{}", shown.stdout);
        for format in ["md", "html", "junit"] {
            let text = project.run(&["report", "latest", "--format", format]).exits(0).stdout;
            assert!(exit == 0 || text.contains(&format!("core {score}")), "{format}: {text}");
        }
    }
}

#[test]
fn the_mean_of_the_scores_decides_a_case_and_not_each_run() {
    // The first run says "alpha beta", the later ones say "steady".
    let text = "practicum: 1\nname: n\nskill: ../skills/gull\nworkspace: empty\ncases:\n  - { id: sums, prompt: alpha beta, pass_when: { mean_of_scores: 0.5 }, checks: [{ contains: alpha }, { contains: beta }] }\n";
    for (repeat, exit, mean) in [("1", 0, 1.0), ("2", 0, 0.5), ("4", 1, 0.25)] {
        let project = project(&[("evals/n.practicum.yaml", text)]);
        let ran = run(&project, "evals", &["--json", "--repeat", repeat]);
        assert_eq!(ran.code, exit, "{repeat}: {}{}", ran.stdout, ran.stderr);
        let summary: Value = serde_json::from_str(&ran.stdout).expect("a summary");
        assert_eq!(summary["cases"][0]["score"]["mean"], json!(mean), "{repeat}");
    }
}

/// One run before and one after cannot show that a case is dead. That was exit code 0, which a job of CI takes for
/// "nothing was lost".
#[test]
fn a_loss_that_so_few_runs_cannot_show_is_not_a_success() {
    let case = "  - { id: a, prompt: say once, checks: [{ contains: once }] }\n";
    let project = project(&[("evals/n.practicum.yaml", &native(case))]);
    let id = || {
        let ran = run(&project, "evals", &["--json"]).exits(0).json();
        ran["run"].as_str().expect("an id").to_owned()
    };
    let (passed, failed, later) = (id(), id(), id());
    let ran = project.run(&["compare", &passed, &failed]).exits(3);
    assert!(ran.stdout.contains("cannot tell whether a case got worse"), "{}", ran.stdout);
    project.run(&["compare", &passed, &failed, "--strict"]).exits(1);
    // Nothing fell, so nothing is open.
    for sides in [[&failed, &passed], [&failed, &later], [&passed, &passed]] {
        let ran = project.run(&["compare", sides[0], sides[1]]).exits(0);
        assert!(!ran.stdout.contains("cannot tell whether"), "{}", ran.stdout);
    }
}
