//! Whether skills are activated where they should be: from scripted runs to the rates of the summary.

use crate::common::{Project, Ran};
use serde_json::{Value, json};

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: All about {name}.\n---\n\nSpeak of {name}.\n")
}

/// A skill-test suite with two skills of one plugin, and a rival in another.
fn suite(skills: &Value, negative: &Value) -> Project {
    let document = json!({"name": "birds", "runs_per_case": 2, "skills": skills, "negative_cases": negative});
    Project::new(&[
        ("plugins/birds/skills/gull/SKILL.md", &skill("gull")),
        ("plugins/birds/skills/heron/SKILL.md", &skill("heron")),
        ("plugins/fish/skills/pike/SKILL.md", &skill("pike")),
        ("suites/birds.json", &document.to_string()),
        ("script.yaml", SCRIPT),
    ])
}

/// The prompt names the skills that the agent will activate.
const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - { when: takes gull, steps: [{ tools: [{ name: Skill, input: { skill: gull } }] }, Done.] }
  - { when: takes heron, steps: [{ tools: [{ name: Skill, input: { skill: heron } }] }, Done.] }
  - { when: takes pike, steps: [{ tools: [{ name: Skill, input: { skill: pike } }] }, Done.] }
  - { when: takes nothing, steps: [Done.] }
  - { when: cannot log in, steps: [{ error: 401 }] }
"#;

fn case(prompt: &str, expectation: &str) -> Value {
    json!({"prompt": prompt, "expectation": expectation})
}

fn run(project: &Project, exit: i32) -> Value {
    let args = ["run", "suites", "--agent", "builtin", "--script", "script.yaml", "--json"];
    project.run(&args).exits(exit).json()
}

fn counts(of: &Value) -> [u64; 6] {
    ["tp", "fp", "tn", "fn", "acceptable", "error"].map(|key| of[key].as_u64().expect(key))
}

#[test]
fn a_scripted_confusion_gives_the_documented_metrics() {
    let project = suite(
        &json!([
            {"name": "gull", "plugin": "birds", "test_cases": [
                case("1 takes gull", "must_activate"),
                case("2 takes gull", "must_activate"),
                case("3 takes gull", "must_activate"),
                case("4 takes heron", "must_activate"),
                case("5 takes nothing", "should_not_activate"),
                case("6 takes gull", "acceptable"),
            ]},
            {"name": "heron", "plugin": "birds", "test_cases": [
                case("7 takes heron", "must_activate"),
                case("8 takes pike", "should_not_activate"),
                case("9 cannot log in", "should_not_activate"),
            ]},
        ]),
        &json!([case("10 takes heron", "should_not_activate"), case("11 takes pike", "should_not_activate")]),
    );
    let summary = run(&project, 3);
    let found = &summary["activation"];
    assert_eq!(counts(found), [8, 2, 6, 2, 2, 2], "a failed login is an error and no true negative");
    for (rate, value, n) in
        [("precision", 0.8, 10), ("recall", 0.8, 10), ("f1", 0.8, 12), ("accuracy", 14.0 / 18.0, 18)]
    {
        let rate = &found[rate];
        assert!((rate["value"].as_f64().expect("defined") - value).abs() < 1e-9, "{rate}");
        assert_eq!(rate["n"], n);
        let (low, high) = (rate["low"].as_f64().expect("low"), rate["high"].as_f64().expect("high"));
        assert!(low < value && value < high, "{rate}");
    }
    let part = |name: &str| {
        let parts = found["skills"].as_array().expect("skills");
        counts(parts.iter().find(|part| part["name"] == name).expect("a part"))
    };
    assert_eq!(part("gull"), [6, 0, 6, 2, 2, 0]);
    assert_eq!(part("heron"), [2, 2, 4, 0, 0, 2]);
    assert_eq!(
        (&found["modes"][0]["name"], &found["agents"][0]["name"]),
        (&json!("baseline"), &json!("builtin"))
    );
    let routes: Vec<Value> = found["routing"].as_array().expect("routes").clone();
    for route in [
        json!({"expected": "gull", "fired": "heron", "runs": 2}),
        json!({"expected": "gull", "fired": "gull", "runs": 6}),
        json!({"expected": null, "fired": "pike", "runs": 4}),
        json!({"expected": null, "fired": null, "runs": 2}),
    ] {
        assert!(routes.contains(&route), "{route} in {routes:?}");
    }
    assert_eq!(found["unmeasured"], 1);
    let text = project.run(&["show"]).exits(0).stdout;
    assert!(text.contains("precision 0.80") && text.contains("8 tp 2 fp 6 tn 2 fn"), "{text}");
}

#[test]
fn what_is_undefined_is_null() {
    let negative_suite = suite(
        &json!([{"name": "gull", "plugin": "birds", "test_cases": [case("takes nothing", "should_not_activate")]}]),
        &json!([]),
    );
    let found = run(&negative_suite, 0)["activation"].clone();
    assert_eq!(counts(&found), [0, 0, 2, 0, 0, 0]);
    for rate in ["precision", "recall", "f1"] {
        assert_eq!(found[rate], json!({"value": null, "low": null, "high": null, "n": 0}), "{rate}");
    }
    assert_eq!(found["accuracy"]["value"], 1.0);
}

#[test]
fn a_skill_that_the_prompt_names_is_counted_apart() {
    let project = suite(
        &json!([{"name": "gull", "plugin": "birds", "test_cases": [
            case("/gull takes gull", "must_activate"),
            case("$gull takes gull", "must_activate"),
            case("/birds:gull takes gull", "must_activate"),
            case("With $gull, it takes gull", "must_activate"),
            case("takes gull", "must_activate"),
        ]}]),
        &json!([]),
    );
    let found = run(&project, 0)["activation"].clone();
    assert_eq!((counts(&found), &found["invoked"]), ([2, 0, 0, 0, 0, 0], &json!(8)));
    let text = project.run(&["show"]).exits(0).stdout;
    assert!(text.contains("counted in no rate: 8 runs with the skill named in the prompt"), "{text}");
}

/// The agents' own streams do not show what the user invokes.
#[test]
fn a_skill_that_the_prompt_names_never_counts_as_did_not_fire() {
    for expectation in ["must_activate", "should_not_activate", "acceptable"] {
        let cases =
            json!([case("$gull takes nothing", expectation), case("/gull takes nothing", expectation)]);
        let skills = json!([{"name": "gull", "plugin": "birds", "test_cases": cases}]);
        let summary = run(&suite(&skills, &json!([])), 3);
        let found = &summary["activation"];
        assert_eq!((counts(found), &found["invoked"]), ([0; 6], &json!(4)), "{expectation}");
        assert_eq!(summary["totals"]["not_scored"], 4, "{expectation}");
        for case in summary["cases"].as_array().expect("cases") {
            assert_eq!(case["fired"], json!({"yes": 0, "no": 0, "unknown": 2}), "{expectation}");
        }
    }
}

/// Rooms of their own: what runs beside a trial changes nothing in it.
#[test]
fn parallel_trigger_runs_do_not_see_each_other() {
    let activates = |n: usize| !n.is_multiple_of(3);
    let breaks = |n: usize| n % 11 == 5;
    let queries: Vec<Value> = (0..45)
        .map(|n| json!({"query": format!("query number {n}."), "should_trigger": n % 2 == 0}))
        .collect();
    let scenarios: String = (0..45)
        .map(|n| {
            let steps = match (breaks(n), activates(n)) {
                (true, _) => "[{ error: 401 }]",
                (false, true) => "[{ tools: [{ name: Skill, input: { skill: '{{skill}}' } }] }, Done.]",
                (false, false) => "[Done.]",
            };
            format!("  - {{ when: 'query number {n}.', steps: {steps} }}\n")
        })
        .collect();
    let project = Project::new(&[
        ("skills/gull/SKILL.md", &skill("gull")),
        ("skills/gull/evals/triggers.json", &json!(queries).to_string()),
        ("script.yaml", &format!("practicum_script: 1\nscenarios:\n{scenarios}")),
    ]);
    let result = |jobs: &str| {
        let more = ["--repeat", "1", "--no-cache", "--sandbox", "off", "-j", jobs, "--json"];
        let args = ["run", "skills/gull", "--agent", "builtin", "--script", "script.yaml"];
        let mut summary = project.run(&[&args[..], &more[..]].concat()).exits(1).json();
        for key in ["run", "seconds"] {
            summary.as_object_mut().expect("a summary").remove(key);
        }
        summary
    };
    let alone = result("1");
    let expected = (0..45).filter(|n| !breaks(*n) && activates(*n) && n % 2 == 0).count();
    assert_eq!(alone["activation"]["tp"], expected);
    assert_eq!(alone["activation"]["error"], 4);
    assert_eq!(alone["activation"]["unmeasured"], 4);
    assert_eq!(alone, result("3"));
    assert_eq!(alone, result("10"));
}

const ARMS: &str = "\
practicum: 1
skill: ../gull
workspace: empty
run: { agents: [AGENT], arms: [with, without], repeat: 3 }
gates: { pass_rate: 0.0 }
cases:
  - { id: one, prompt: speak, checks: [{ contains: kee-ow }] }
  - { id: two, prompt: speak, checks: [{ contains: kee-ow }] }
";

fn arms(agent: &str, listed: &str) -> Project {
    let project = Project::new(&[
        ("gull/SKILL.md", &skill("gull")),
        ("evals/a.practicum.yaml", &ARMS.replace("AGENT", agent)),
        ("agent.sh", &AGENT.replace("LISTED", listed)),
    ]);
    let path = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "[agents.own]\ncommand = [\"/bin/bash\", \"{}\"]\ndecoder = \"practicum-jsonl\"\n",
            path.display()
        ),
    );
    project
}

/// Speaks like the skill when it is there, and says what it can see.
const AGENT: &str = r#"
if [ -e .agents/skills/gull/SKILL.md ]; then said=kee-ow; seen='"gull"'; else said=hello; seen=; fi
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[LISTED]}"
echo "{\"type\":\"text\",\"text\":\"$said\"}"
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn arms_are_interleaved_and_their_difference_is_told() {
    let project = arms("own", "$seen");
    let summary = project.run(&["run", "evals", "--json"]).exits(0).json();
    let found = &summary["arms"];
    assert_eq!((&found["before"], &found["after"]), (&json!("without"), &json!("with")));
    assert_eq!((&found["difference"]["value"], &found["void_pairs"]), (&json!(1.0), &json!(0)));
    assert_eq!(found["verdict"], "better");
    let info: Value =
        serde_json::from_slice(&std::fs::read(project.only_run().join("run.json")).expect("run.json"))
            .expect("JSON");
    let trials = info["trials"].as_array().expect("trials").iter();
    let order: Vec<[&Value; 2]> = trials.map(|trial| [&trial["case"], &trial["condition"]["arm"]]).collect();
    let round = [["one", "with"], ["one", "without"], ["two", "with"], ["two", "without"]];
    assert_eq!(order, round.repeat(3), "each case in both arms before any is run again");
}

#[test]
fn the_without_skill_arm_that_had_the_skill_or_the_with_skill_arm_that_did_not_counts_for_nothing() {
    for (listed, why, code) in [
        (r#"\"gull\""#, "the agent could see the skill gull", 0),
        // Then nothing is left that could pass or fail.
        (r#"\"doctor\""#, "the agent could not see the skill gull", 3),
    ] {
        let project = arms("own", listed);
        let summary = project.run(&["run", "evals", "--json", "--allow-unscored", "1"]).exits(code).json();
        let found = &summary["arms"];
        assert_eq!(found["void_pairs"], 6);
        assert_eq!(found["difference"]["value"], Value::Null);
        assert_eq!(found["voided"][0]["why"], why);
        let text = project.run(&["show"]).exits(0).stdout;
        assert!(text.contains("6 pairs void"), "{text}");
    }
}

/// Which of several skills is activated can be seen only if the others are staged too.
#[test]
fn a_rival_is_staged_beside_the_skill_and_told_of() {
    let eval = "\
practicum: 1
name: birds
skill: ../gull
workspace: empty
run: { agents: [builtin] }
cases:
  - { id: one, prompt: it takes pike, activation: must }
";
    let project = Project::new(&[
        ("gull/SKILL.md", &skill("gull")),
        ("pike/SKILL.md", &skill("pike")),
        ("evals/e.practicum.yaml", eval),
        ("script.yaml", SCRIPT),
    ]);
    let run = |more: &[&str]| {
        let args = ["run", "evals", "--script", "script.yaml", "--sandbox", "off", "--json"];
        project.run(&[&args[..], more].concat())
    };
    // Where no rival is staged, the agent finds none.
    let alone = run(&[]).exits(1).json();
    assert_eq!(alone["activation"]["routing"], json!([{"expected": "gull", "fired": null, "runs": 1}]));
    assert_eq!(alone["rivals"], Value::Null);

    let ran = run(&["--with-skill", "pike"]).exits(1);
    assert!(ran.stderr.contains(", beside pike") && !ran.stderr.contains("reuse"), "{}", ran.stderr);
    let beside = ran.json();
    assert_eq!(beside["activation"]["routing"], json!([{"expected": "gull", "fired": "pike", "runs": 1}]));
    assert_eq!(beside["rivals"], json!([{"suite": "birds", "skills": ["pike"]}]));
    let message = "staged beside the skill in birds: pike";
    for format in ["text", "md", "html"] {
        let report = project.run(&["report", "latest", "--format", format]).exits(0).stdout;
        assert!(report.contains(message), "{format}: {report}");
    }
    // What decides a trial is a part of its key, and so is the rival.
    assert!(run(&["--with-skill", "pike"]).stderr.contains("1 reuse"));
    project.write("pike/SKILL.md", &skill("pike").replace("All about", "More about"));
    assert!(!run(&["--with-skill", "pike"]).stderr.contains("reuse"));

    let ran = run(&["--with-skill", "gull"]).exits(2);
    assert!(ran.stderr.contains("gull is under test in suite birds"), "{}", ran.stderr);
    run(&["--with-skill", "nowhere"]).exits(2);
    let tried = ["try", "it takes pike", "--skill", "gull", "--agent", "builtin", "--with-skill", "pike"];
    let more = ["--script", "script.yaml", "--json"];
    let tried = project.run(&[&tried[..], &more[..]].concat()).exits(1).json();
    assert_eq!(tried["activation"]["routing"][0]["fired"], "pike");
}

const NAMED_SKILL: &str = "\
practicum: 1
skill: ../gull
workspace: empty
run: { agents: [own] }
gates: { pass_rate: 0.0 }
cases:
  - { id: wanted, prompt: speak, activation: must }
  - { id: unwanted, prompt: be quiet, activation: must_not }
";

/// An agent of one's own with this script and decoder.
fn own_agent(script: &str, decoder: &str) -> Project {
    let project = Project::new(&[
        ("gull/SKILL.md", &skill("gull")),
        ("pike/SKILL.md", &skill("pike")),
        ("evals/a.practicum.yaml", NAMED_SKILL),
        ("agent.sh", script),
    ]);
    let path = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"{decoder}\"\n",
            path.display()
        ),
    );
    project
}

fn fired(summary: &Value) -> Vec<[u64; 3]> {
    let counts = |case: &Value| ["yes", "no", "unknown"].map(|key| case["fired"][key].as_u64().expect(key));
    summary["cases"].as_array().expect("cases").iter().map(counts).collect()
}

#[test]
fn a_canary_shows_what_a_plain_stream_does_not_and_its_silence_is_no_did_not_fire() {
    let run = |project: &Project, more: &[&str]| {
        let args = ["run", "evals", "--sandbox", "off", "--json", "--allow-unscored", "1"];
        project.run(&[&args[..], more].concat())
    };
    // It prints what it reads, as long as it is not told to be quiet.
    let echoes = "case \"$1\" in *quiet*) echo hush ;; *) cat .agents/skills/gull/SKILL.md ;; esac";
    let project = own_agent(echoes, "text");
    let ran = run(&project, &[]);
    assert!(ran.stderr.contains("have a marker line"), "{}", ran.stderr);
    let summary = ran.exits(0).json();
    assert_eq!(fired(&summary), [[1, 0, 0], [0, 0, 1]], "fired, and unknown: {summary}");
    assert_eq!(summary["probes"][0]["fired"], true);
    assert_eq!((&summary["activation"]["tn"], &summary["activation"]["error"]), (&json!(0), &json!(1)));
    let trials = project.only_run().join("trials");
    let wanted = std::fs::read_dir(trials).expect("trials").flatten().map(|entry| entry.path());
    let mut wanted = wanted.filter(|path| path.display().to_string().contains("/wanted"));
    let wanted = wanted.next().expect("a trial");
    let checks = std::fs::read_to_string(wanted.join("checks.json")).expect("checks");
    assert!(checks.contains("showed a line of its SKILL.md in its answer"), "{checks}");
    let output = std::fs::read_to_string(wanted.join("output.txt")).expect("output");
    let without_marker: Vec<&str> = output.lines().filter(|line| !line.starts_with("<!-- ")).collect();
    assert_eq!(without_marker.join("\n"), skill("gull").trim_end(), "one line, and nothing else");

    let again = project.run(&["grade", "latest", "--json", "--allow-unscored", "1"]);
    assert_eq!(fired(&again.exits(0).json()["summary"]), [[1, 0, 0], [0, 0, 1]], "also when graded again");

    // Another skill's canary is not this one's.
    let project = own_agent("cat .agents/skills/pike/SKILL.md", "text");
    let summary = run(&project, &["--with-skill", "pike", "--no-probe"]).exits(3).json();
    assert_eq!(fired(&summary), [[0, 0, 1], [0, 0, 1]]);

    // A guess at what it looks like is none.
    let project = own_agent("echo '<!-- 00000000000000000000000000000000 -->'", "text");
    assert_eq!(fired(&run(&project, &["--no-probe"]).exits(3).json()), [[0, 0, 1], [0, 0, 1]]);
}

#[test]
fn where_skills_show_the_staged_skill_is_the_skill_byte_for_byte() {
    let script = "echo '{\"type\":\"start\",\"schema_version\":1}'
cp .agents/skills/gull/SKILL.md copy.md
echo '{\"type\":\"end\",\"ending\":\"finished\"}'";
    let project = own_agent(script, "practicum-jsonl");
    let ran = project.run(&["run", "evals", "--sandbox", "off", "--no-probe", "--json"]);
    assert!(!ran.stderr.contains("marker"), "{}", ran.stderr);
    assert_eq!(fired(&ran.json()), [[0, 1, 0], [0, 1, 0]]);
    for trial in std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten() {
        let copy = std::fs::read_to_string(trial.path().join("files/copy.md")).expect("the copy");
        assert_eq!(copy, skill("gull"));
    }
}

#[test]
fn what_leaked_from_the_users_own_configuration_voids_a_trial() {
    for (listed, why) in [
        (r#"${seen:+$seen,}\"diary\""#, Some("the agent could see diary, a skill of the user's own")),
        // A skill of unknown origin is only reported.
        (r#"${seen:+$seen,}\"brand-new\""#, None),
    ] {
        let project = arms("own", listed);
        project.write("home/.agents/skills/diary/SKILL.md", &skill("diary"));
        let run = |args: &[&str]| {
            let mut command = project.practicum(args);
            Ran::of(command.env("HOME", project.path().join("home")).output().expect("practicum starts"))
        };
        let code = if why.is_some() { 3 } else { 0 };
        let summary = run(&["run", "evals", "--json", "--allow-unscored", "1"]).exits(code).json();
        let void = if why.is_some() { 6 } else { 0 };
        assert_eq!(summary["arms"]["void_pairs"], void, "{summary}");
        let message = summary["arms"]["voided"][0]["why"].as_str();
        assert_eq!(message, why);
        if why.is_none() {
            let events = std::fs::read_to_string(project.only_run().join("events.jsonl"));
            assert!(
                events.expect("events").contains("lists brand-new, which is neither staged in its workspace")
            );
        }
        let again = run(&["grade", "latest", "--json", "--allow-unscored", "1"]).exits(code).json();
        assert_eq!(again["summary"]["arms"]["void_pairs"], void, "the same when it is graded again");
    }
}
