//! Activation: modes, negative cases, outcomes of each run.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: All about {name}.\n---\n\nSpeak of {name}.\n")
}

/// A prompt says itself what is activated; in a mode, what the mode's text says is done comes first.
const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - { when: takes gull, steps: [{ tools: [{ name: Skill, input: { skill: gull } }] }, Done.] }
  - { when: takes heron, steps: [{ tools: [{ name: Skill, input: { skill: heron } }] }, Done.] }
  - { when: takes nothing, steps: [Done.] }
"#;

fn run(project: &Project, args: &[&str]) -> Ran {
    project.run(&[args, &["--agent", "builtin", "--script", "script.yaml"]].concat())
}

fn with_evals(path: &str, evals: &Value) -> Project {
    Project::new(&[
        ("skills/gull/SKILL.md", &skill("gull")),
        ("skills/heron/SKILL.md", &skill("heron")),
        (path, &evals.to_string()),
        ("script.yaml", SCRIPT),
    ])
}

/// One case of each format, with these entries beside its prompt.
fn formats(prompt: &str, entries: &Value) -> Vec<(&'static str, Project)> {
    let with = |more: Value| {
        let mut case = json!({"id": "one", "prompt": prompt});
        for (key, value) in [entries, &more].into_iter().flat_map(|of| of.as_object().expect("a mapping")) {
            case[key.as_str()] = value.clone();
        }
        case
    };
    let plain = with(json!({}));
    vec![
        (
            "skill-creator",
            with_evals("skills/gull/evals/evals.json", &json!({"skill_name": "gull", "evals": [plain]})),
        ),
        (
            "bmad",
            with_evals("skills/gull/evals/evals.json", &json!({"evals": [with(json!({"timeout": 60}))]})),
        ),
        (
            "writing-skills",
            with_evals(
                "skills/gull/evals/evals.json",
                &json!({"version": "1.0", "skill": "skills/gull", "cases": [plain]}),
            ),
        ),
        (
            "skill-test",
            with_evals("skills/gull/evals/suite.json", &json!({"skill": "gull", "cases": [plain]})),
        ),
    ]
}

#[test]
fn a_negative_case_is_not_passed_by_activating_the_skill() {
    for (entries, activated, right) in [
        (json!({"should_trigger": false}), "takes gull", false),
        (json!({"should_trigger": false}), "takes nothing", true),
        (json!({"should_trigger": true}), "takes nothing", false),
        (json!({"should_trigger": true}), "takes gull", true),
        (json!({"expected_skill": null}), "takes gull", false),
        (json!({"expected_skill": null}), "takes nothing", true),
        (json!({"expected_skill": "gull"}), "takes nothing", false),
        (json!({"expected_skill": "heron"}), "takes gull", false),
        (json!({"expected_skill": "heron"}), "takes heron", true),
        (json!({"skill_should_trigger": false}), "takes gull", false),
        (json!({"expected_activation": false}), "takes gull", false),
        (json!({"expected_activation": "gull"}), "takes gull", true),
        (json!({"must_not_activate": ["heron"], "should_trigger": true}), "takes heron", false),
        (json!({"target_skill": "heron", "should_trigger": false}), "takes heron", false),
    ] {
        for (format, project) in formats(activated, &entries) {
            if format != "skill-creator" && entries.get("skill_should_trigger").is_some() {
                continue;
            }
            let path =
                if format == "skill-test" { "skills/gull/evals/suite.json" } else { "skills/gull/evals" };
            let args = ["run", path, "--dialect", format, "--repeat", "1", "--no-probe", "--json"];
            let ran = run(&project, &[&args[..], &["--gate", "all_cases_pass=1"]].concat());
            let summary = ran.exits(i32::from(!right)).json();
            let message = format!("{format} {entries} {activated}");
            assert_eq!(summary["totals"]["trials"], 1, "{message}");
            assert_eq!(summary["totals"]["passed"], u64::from(right), "{message}");
            let counts = ["tp", "fp", "tn", "fn"].map(|key| summary["activation"][key].as_u64().expect(key));
            assert_eq!(counts.iter().sum::<u64>(), 1, "{message}: {counts:?}");
        }
    }
}

#[test]
fn a_contradiction_and_an_unknown_word_for_activation_are_not_passed_over() {
    let check = |entries: Value| {
        let eval = json!({"id": 1, "prompt": "p", "assertions": ["It is so."]});
        let mut eval = eval.as_object().cloned().expect("a mapping");
        eval.extend(entries.as_object().cloned().expect("a mapping"));
        with_evals("skills/gull/evals/evals.json", &json!({"evals": [eval]})).run(&["check", "skills/gull"])
    };
    let ran = check(json!({"should_trigger": true, "expected_skill": null})).exits(2);
    assert!(
        ran.stderr.contains("contradict") || ran.stdout.contains("contradict"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let ran = check(json!({"should_trigger": "perhaps"})).exits(2);
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("true or false"));
    check(json!({"should_not_trigger": ["heron"]})).exits(2);
    for unknown in ["acceptable_skills", "triggers"] {
        let ran = check(json!({unknown: ["heron"]}));
        let message = format!("{}{}", ran.stdout, ran.stderr);
        assert!(message.contains("warning") && message.contains("nothing checks it"), "{unknown}: {message}");
    }
}

#[test]
fn queries_in_the_same_file_as_the_evals_are_not_left_out() {
    let project = with_evals(
        "skills/gull/evals/evals.json",
        &json!({
            "evals": [{"id": 1, "prompt": "takes nothing", "should_trigger": false}],
            "trigger_evals": {"should_trigger": [{"query": "please takes gull"}],
                              "should_not_trigger": ["now takes gull"]},
        }),
    );
    let summary = run(&project, &["run", "skills/gull", "--no-probe", "--json"]).exits(1).json();
    assert_eq!(summary["totals"]["trials"], 7, "{summary}");
    let activation = &summary["activation"];
    assert_eq!([&activation["tp"], &activation["fp"], &activation["tn"]], [3, 3, 1], "{activation}");
}

#[test]
fn an_expected_activation_without_a_skill_is_not_a_pass() {
    let eval = "timestamp: 2025-01-15\nname: n\nprompt: takes nothing\nexpected: e\nshould_trigger: false\n";
    let project = Project::new(&[
        ("evals/one.yaml", eval),
        ("skills/gull/SKILL.md", &skill("gull")),
        ("script.yaml", SCRIPT),
    ]);
    let ran = run(&project, &["run", "evals"]).exits(2);
    assert!(ran.stderr.contains("no skill is staged"), "{}", ran.stderr);
}

fn suite() -> Value {
    let case = |prompt: &str, expectation: &str| json!({"prompt": prompt, "expectation": expectation});
    json!({"name": "birds", "runs_per_case": 2, "skills": [{"name": "gull", "plugin": "birds", "test_cases": [
        case("1 takes gull", "must_activate"),
        case("2 takes heron", "must_activate"),
        case("3 takes nothing", "must_activate"),
        case("4 takes gull", "should_not_activate"),
        case("5 takes nothing", "should_not_activate"),
        case("6 takes gull", "acceptable"),
    ]}]})
}

fn birds() -> Project {
    Project::new(&[
        ("plugins/birds/skills/gull/SKILL.md", &skill("gull")),
        ("plugins/birds/skills/heron/SKILL.md", &skill("heron")),
        ("suites/birds.json", &suite().to_string()),
        ("script.yaml", SCRIPT),
    ])
}

#[test]
fn a_missed_activation_says_which_skill_was_activated_instead() {
    let project = birds();
    let reports = ["--report", "activation=results.json", "--report", "md=report.md"];
    run(&project, &[&["run", "suites/birds.json"], &reports[..]].concat()).exits(0);
    let read = |path: &str| std::fs::read_to_string(project.path().join(path)).expect(path);
    let results: Value = serde_json::from_str(&read("results.json")).expect("JSON");
    let rows = results["results"].as_array().expect("a list");
    assert_eq!(rows.len(), 12);
    let of = |prompt: &str| rows.iter().find(|row| row["prompt"] == prompt).expect(prompt);
    for (prompt, outcome, instead) in [
        ("1 takes gull", "tp", json!([])),
        ("2 takes heron", "fn", json!(["heron"])),
        ("3 takes nothing", "fn", json!([])),
        ("4 takes gull", "fp", json!([])),
        ("5 takes nothing", "tn", json!([])),
        ("6 takes gull", "acceptable", json!([])),
    ] {
        let row = of(prompt);
        assert_eq!((&row["outcome"], &row["activated_instead"]), (&json!(outcome), &instead), "{row}");
    }
    assert_eq!(results["metrics"]["tp"], 2);
    let report = read("report.md");
    let missed = report.split("### False Negatives").nth(1).and_then(|rest| rest.split("###").next());
    let missed = missed.expect("a section");
    assert!(missed.contains("activated heron instead in 2 runs"), "{missed}");
    assert!(missed.contains("activated no skill"), "{missed}");
    assert!(missed.contains("Prompt: 2 takes heron"), "{missed}");
}

/// What skill-test adds to the system prompt, word for word: other words would make other results.
#[test]
fn the_modes_are_not_worded_otherwise_than_in_skill_test() {
    for (mode, words) in [
        (
            "smart",
            "When you receive a request that might benefit from specialized knowledge:\n\
             1. Check if you've already activated a relevant skill this session\n\
             2. If not, scan <available_skills> for matches and activate before responding\n\
             3. Skip re-evaluation for topics you've already covered",
        ),
        (
            "forced",
            "Before responding to any user request, you MUST:\n\
             1. EVALUATE each skill in <available_skills>\n\
             2. ACTIVATE relevant skills\n\
             3. Only THEN respond",
        ),
    ] {
        let found = practicum::plan::system_prompt::mode_text(
            &practicum::model::SkillUseMode::from(mode.to_owned()),
            &Default::default(),
        )
        .expect("a mode")
        .map(str::to_owned);
        assert_eq!(found.as_deref(), Some(words));
    }
}

#[test]
fn two_modes_that_do_the_same_have_no_best() {
    let project = birds();
    let ran = run(&project, &["compare", "suites/birds.json", "--modes", "-o", "modes.md"]).exits(0);
    for mode in ["baseline: precision 0.50", "smart: precision 0.50", "forced: precision 0.50"] {
        assert!(ran.stdout.contains(mode), "{mode}\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("recall 0.33") && ran.stdout.contains("F1 0.40"), "{}", ran.stdout);
    assert!(ran.stdout.contains("no mode is clearly better"), "{}", ran.stdout);
    let page = std::fs::read_to_string(project.path().join("modes.md")).expect("a page");
    assert!(page.contains("No mode is clearly better"), "{page}");
    let document = run(&project, &["compare", "suites/birds.json", "--modes", "--json"]).exits(0).json();
    assert_eq!(document["best"]["clear"], false);
    assert_eq!(document["comparisons"].as_array().map(Vec::len), Some(2));
    run(&project, &["compare", "suites/birds.json", "--modes", "smart"]).exits(2);
}

#[test]
fn a_comparison_that_was_paid_for_is_not_lost_with_its_file() {
    let project = birds();
    let compare = |to: &str| run(&project, &["compare", "suites/birds.json", "--modes", "-o", to]);
    compare("new/folder/modes.md").exits(0);
    assert!(project.path().join("new/folder/modes.md").is_file());
    let ran = compare("suites/birds.json/modes.md").exits(2);
    assert!(ran.stdout.contains("no mode is clearly better"), "{}", ran.stdout);
}

/// Activates the skill only if the system prompt says to evaluate each skill, and not for any other system prompt.
const OBEDIENT: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["gull"]}'
case "$1" in
  *leave*) ;;
  *EVALUATE* | *'Use the skill'*) echo '{"type":"skill","name":"gull"}' ;;
esac
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn the_best_mode_is_named_where_the_intervals_say_so() {
    let must = (0..6).map(|n| json!({"prompt": format!("question {n}"), "expectation": "must_activate"}));
    let not = (0..3).map(|n| json!({"prompt": format!("leave {n}"), "expectation": "should_not_activate"}));
    let suite = json!({"name": "birds", "runs_per_case": 2, "skills": [
        {"name": "gull", "plugin": "birds", "test_cases": must.chain(not).collect::<Vec<_>>()}]});
    let project = Project::new(&[
        ("plugins/birds/skills/gull/SKILL.md", &skill("gull")),
        ("suites/birds.json", &suite.to_string()),
        ("agent.sh", OBEDIENT),
    ]);
    let agent = project.path().join("agent.sh");
    let settings = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        agent.display()
    );
    project.write("practicum.toml", &settings);
    let args = ["compare", "suites/birds.json", "--modes", "--agent", "own"];
    let ran = project.run(&args).exits(0);
    assert!(ran.stdout.contains("best: forced, F1 +1.00"), "{}", ran.stdout);
    assert!(ran.stdout.contains("forced: precision 1.00"), "{}", ran.stdout);
    assert!(ran.stdout.contains("baseline: precision – (n 0)"), "{}", ran.stdout);
    let best = project.run(&[&args[..], &["--json"]].concat()).exits(0).json()["best"].clone();
    assert_eq!([&best["leads"], &best["clear"]], [&json!("forced"), &json!(true)], "{best}");
}

/// `compare` took `--gate` and `--case` and did nothing with them.
#[test]
fn a_gate_or_a_case_given_to_a_comparison_is_not_ignored() {
    let project = Project::new(&[(
        "evals/e.practicum.yaml",
        "practicum: 1\ncases: [{ id: a, prompt: p, checks: [{ contains: x }] }]\n",
    )]);
    for how in [&["--modes"][..], &["--against", "HEAD"]] {
        for (more, named) in [(["--gate", "pass_rate=1"], "--gate"), (["--case", "a"], "--case")] {
            let refused = project.run(&[&["compare", "evals"], how, &more].concat()).exits(2).stderr;
            assert!(refused.contains(&format!("{named} can")), "{how:?} {more:?}: {refused}");
        }
    }
    assert!(!project.path().join(".practicum/runs").exists(), "nothing was run");
}

/// Texts of which no check has an answer were said to be the same.
#[test]
fn texts_without_an_answered_check_are_not_the_same() {
    let evals = "practicum: 1\ncases: [{ id: a, prompt: p, checks: [{ judge: It is polite. }] }]\n";
    let project = Project::new(&[("e.practicum.yaml", evals), ("a.txt", "one"), ("b.txt", "two")]);
    let ran = project.run(&["compare", "a.txt", "b.txt", "--spec", "e.practicum.yaml"]).exits(3);
    assert!(ran.stdout.contains("nothing could be compared"), "{}", ran.stdout);
    let found =
        project.run(&["compare", "a.txt", "b.txt", "--spec", "e.practicum.yaml", "--json"]).exits(3).json();
    assert_eq!(found["ok"], false, "{found}");
}

/// F1 is 0 where every run is a false positive, and undefined where none is: the worst mode led.
#[test]
fn a_mode_does_not_lead_because_the_others_have_no_f1() {
    let not =
        (0..3).map(|n| json!({"prompt": format!("question {n}"), "expectation": "should_not_activate"}));
    let suite = json!({"name": "birds", "runs_per_case": 1, "skills": [
        {"name": "gull", "plugin": "birds", "test_cases": not.collect::<Vec<_>>()}]});
    let project = Project::new(&[
        ("plugins/birds/skills/gull/SKILL.md", &skill("gull")),
        ("suites/birds.json", &suite.to_string()),
        ("agent.sh", OBEDIENT),
    ]);
    let agent = project.path().join("agent.sh");
    let settings = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        agent.display()
    );
    project.write("practicum.toml", &settings);
    let args = ["compare", "suites/birds.json", "--modes", "--agent", "own"];
    let ran = project.run(&args);
    assert!(ran.stdout.contains("F1 is undefined in at least one mode"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("forced has the highest"), "{}", ran.stdout);
    let best = project.run(&[&args[..], &["--json"]].concat()).json()["best"].clone();
    assert_eq!([&best["by"], &best["leads"]], [&json!("accuracy"), &json!("baseline")], "{best}");
    // A gate on F1 cannot be measured either, and running it again does not change that.
    let ran = project.run(&["run", "suites/birds.json", "--agent", "own", "--gate", "f1=0.8"]).exits(3);
    assert!(
        ran.stdout.contains("cannot be measured: no case must activate a skill; add one"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);
}

#[test]
fn the_summary_names_the_skill_that_was_activated_instead() {
    let project = birds();
    let ran = run(&project, &["run", "suites/birds.json", "--no-probe"]);
    let message = "gull was not activated; heron was activated instead";
    assert!(ran.stdout.contains(message), "{}", ran.stdout);
    let shown = project.run(&["show", "latest", "gull/2-takes-heron"]).exits(0).stdout;
    assert!(shown.contains(message), "{shown}");
}

/// A suite in which every outcome is acceptable passed, and nothing had been tested.
#[test]
fn a_suite_of_acceptable_cases_does_not_pass() {
    let suite = json!({"name": "birds", "runs_per_case": 1, "skills": [{"name": "gull", "plugin": "birds",
        "test_cases": [{"prompt": "leave it", "expectation": "acceptable"}]}]});
    let project = Project::new(&[
        ("plugins/birds/skills/gull/SKILL.md", &skill("gull")),
        ("suites/birds.json", &suite.to_string()),
        ("agent.sh", OBEDIENT),
    ]);
    let agent = project.path().join("agent.sh");
    let settings = format!(
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
        agent.display()
    );
    project.write("practicum.toml", &settings);
    let args = ["run", "suites/birds.json", "--agent", "own", "--no-probe", "--report", "md=r.md"];
    for gate in [&[][..], &["--gate", "pass_rate=1"]] {
        let ran = project.run(&[&args[..], gate].concat()).exits(0);
        assert!(ran.stdout.contains("NO GATE"), "{}", ran.stdout);
        assert!(ran.stdout.contains("nothing was tested"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("sets one"), "no gate would help: {}", ran.stdout);
        let report = std::fs::read_to_string(project.path().join("r.md")).expect("a report");
        assert!(report.contains("No gate: nothing was tested"), "{report}");
    }
}

/// A run without any gate has not passed one.
#[test]
fn a_pass_without_a_gate_does_not_claim_that_a_gate_held() {
    let evals = "practicum: 1\nworkspace: empty\nrun: { agents: [echo] }\ncases: [{ id: c, prompt: p, checks: [{ contains: p }] }]\n";
    let project = Project::new(&[("e.practicum.yaml", evals)]);
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\n[agents.echo]\ncommand = [\"/bin/echo\", \"{prompt}\"]\n",
    );
    let ran = project.run(&["run", ".", "--gate", "all_cases_pass=0"]).exits(0);
    assert!(ran.stdout.contains("no gate was set"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(" holds"), "{}", ran.stdout);
}
