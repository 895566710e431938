//! Runs of several suites and agents, in order and sorted, and what people say of their judge.

use serde_json::json;

use super::common::Project;
use super::driver::{Browser, there_is_a_browser};
use super::{Viewer, runs};

/// Two suites with two agents, of which one fails where the other passes and one is too slow.
fn several() -> Project {
    let suite = |name: &str, cases: &str| {
        format!("practicum: 1\nname: {name}\nworkspace: empty\nrun: {{ agents: [yes, no] }}\ncases:\n{cases}")
    };
    let case = |id: &str| format!("  - {{ id: {id}, prompt: p, checks: [{{ contains: yes }}] }}\n");
    let slow = "  - { id: slow, prompt: wait, timeout: 300ms, checks: [{ contains: yes }] }\n";
    let project = Project::new(&[
        ("a.practicum.yaml", &suite("tides", &[case("zebra"), case("ant"), slow.to_owned()].concat())),
        ("b.practicum.yaml", &suite("winds", &[case("10"), case("9")].concat())),
    ]);
    let agent = |name: &str| {
        format!(
            "[agents.{name}]\ncommand = [\"/bin/sh\", \"-c\", \"test $0 = wait && sleep 5; echo {name}\", \"{{prompt}}\"]\n"
        )
    };
    project.write("practicum.toml", &format!("sandbox = \"off\"\njobs = 4\n{}{}", agent("yes"), agent("no")));
    project.run(&["run", ".", "--json"]).exits(1);
    project
}

#[test]
fn suites_stand_against_agents_and_lead_to_their_trials() {
    if !there_is_a_browser() {
        return;
    }
    let project = several();
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 900, false);
    browser.open(&viewer.url);
    let run = runs(&project).pop().expect("a run");
    browser.go(&format!("#/run/{run}"));
    let words = |selector: &str| {
        let script = "return [...document.querySelectorAll(arguments[0])].map((row) => row.innerText.replace(/\\s+/g, ' ').trim())";
        browser.script(script, &[json!(selector)])
    };
    assert_eq!(words("#suites thead th"), json!(["Suite", "no with skill", "yes with skill"]));
    assert_eq!(
        words("#suites tbody tr, #suites tfoot tr"),
        json!(["tides 0/3 2/3", "winds 0/2 2/2", "all 0/5 4/5"])
    );
    let cases = json!(["tides", "zebra", "ant", "slow", "winds", "10", "9"]);
    assert_eq!(words("#cases tbody th"), cases, "as the eval files have them, suite by suite");
    browser.picture("suites");

    // From a cell to its trials, and those in another order.
    browser.click("#suites tbody tr:nth-child(1) td:nth-child(3) a");
    browser.settled();
    let names = "return [...document.querySelectorAll('.row.trial .name a:first-child')].map((name) => name.innerText)";
    assert_eq!(browser.script(names, &[]), json!(["zebra #1", "ant #1", "slow #1"]));
    assert!(browser.text("main").contains("the agent hit the time limit"), "why there is no answer");
    browser.script("const s = document.querySelector('#order'); s.value = 'slowest'; s.dispatchEvent(new Event('change'))", &[]);
    browser.wait(&format!(
        "const names = (() => {{ {names} }})(); return names.length === 3 && names[0] === 'slow #1'"
    ));
    browser.script(
        "const s = document.querySelector('#agent'); s.value = 'no'; s.dispatchEvent(new Event('change'))",
        &[],
    );
    browser.wait("return [...document.querySelectorAll('.row.trial .what')].length === 3 && document.querySelector('.row.trial .what').innerText.startsWith('no')");
    assert!(
        browser
            .script("return location.hash", &[])
            .as_str()
            .is_some_and(|hash| hash.contains("order=slowest") && hash.contains("agent=no"))
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

const JUDGED: &str = r#"
practicum: 1
workspace: empty
run: { agents: [builtin], script: script.yaml, repeat: 2 }
gates: { pass_rate: 0 }
cases:
  - { id: calm, prompt: calm, checks: [{ judge: It is calm., id: is-calm }] }
  - { id: storm, prompt: storm, checks: [{ judge: It is calm., id: is-calm }] }
"#;

const JUDGE: &str = r#"
practicum_script: 1
scenarios:
  - { when: calm, steps: ["The sea is calm."] }
  - { when: storm, steps: ["The sea is wild."] }
  - to: judge
    when: sea is calm
    steps: [{ tools: [{ name: report_marks, input: { results: [{ id: is-calm, verdict: pass, evidence: ["sea is calm"], reasoning: So it says. }] } }] }]
  - to: judge
    steps: [{ tools: [{ name: report_marks, input: { results: [{ id: is-calm, verdict: fail, evidence: ["sea is wild"], reasoning: It is not. }] } }] }]
"#;

/// Of two that the judge passed people believe one, of two that it failed both.
#[test]
fn what_people_say_without_seeing_the_judge_becomes_a_kappa_with_an_interval() {
    if !there_is_a_browser() {
        return;
    }
    let project = Project::new(&[("e.practicum.yaml", JUDGED), ("script.yaml", JUDGE)]);
    project.run(&["run", ".", "--json"]).exits(0);
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 900, false);
    browser.open(&viewer.url);
    let run = runs(&project).pop().expect("a run");
    browser.go(&format!("#/run/{run}"));
    browser.wait("return document.querySelector('#label')?.hidden === false");
    browser.go(&format!("#/run/{run}/label"));
    let mut believed = false;
    for at in 0..4 {
        browser.wait(&format!(
            "return document.querySelector('#labelled')?.innerText === '{at} labelled, {} left'",
            4 - at
        ));
        browser.wait("return /sea is (calm|wild)/.test(document.querySelector('main').innerText)");
        let shown = browser.text("main");
        assert!(!shown.contains("So it says") && !shown.contains("It is not"), "{shown}");
        let is_calm = shown.contains("The sea is calm");
        let passed = is_calm && !believed;
        believed |= is_calm;
        browser.click(if passed { "#pass" } else { "#fail" });
        browser.wait("return document.querySelector('#judge') !== null");
        let words = if is_calm { "So it says" } else { "It is not" };
        assert!(browser.text("#judge").contains(words));
        browser.wait(&format!(
            "return document.querySelector('#agreement')?.innerText.includes('of {} check')",
            at + 1
        ));
        browser.click("#next");
    }
    browser.wait("return document.querySelector('#labelled')?.innerText === '4 labelled, 0 left'");
    let message = browser.text("#agreement");
    assert!(message.starts_with("People agree with the judge on 3 of 4 checks, κ 0.50 ["), "{message}");
    browser.go(&format!("#/run/{run}"));
    browser.wait("return document.querySelector('#agreement')?.innerText.includes('κ 0.50 [')");
    let labels = project.path().join(".practicum/runs").join(&run).join("labels.jsonl");
    let labels = std::fs::read_to_string(labels).expect("labels");
    let schema = practicum::schema::schema("labels").expect("a schema");
    assert_eq!(labels.lines().count(), 4);
    for line in labels.lines() {
        let label: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        assert!(jsonschema::draft202012::is_valid(schema, &label), "{label}");
        assert_eq!((&label["check"], &label["blind"]), (&"is-calm".into(), &true.into()), "{label}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
