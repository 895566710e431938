//! What users of skill-test do, with its own files.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

/// Activates its skill if the prompt says so, or asks for it by name, or another skill; or crashes.
const AGENT: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["gull"]}'
case "$1" in *crash*) exit 7 ;; esac
case "$1" in *fire* | *'Use the skill'*) echo '{"type":"skill","name":"gull"}' ;; esac
case "$1" in *rival*) echo '{"type":"skill","name":"tern"}' ;; esac
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

fn project(suite: &Value) -> Project {
    let project = Project::new(&[
        (
            "plugins/birds/skills/gull/SKILL.md",
            "---\nname: gull\ndescription: Speaks like a gull. Use it for gulls.\n---\n\nkee-ow\n",
        ),
        ("suites/birds.json", &suite.to_string()),
        ("agent.sh", AGENT),
    ]);
    let agent = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            agent.display()
        ),
    );
    project
}

fn run(project: &Project, more: &[&str]) -> Ran {
    project.run(&[&["run", "suites/birds.json", "--agent", "own"], more].concat())
}

fn suite(cases: &[(&str, &str)]) -> Value {
    let cases: Vec<Value> = cases
        .iter()
        .map(|(prompt, expectation)| json!({"prompt": prompt, "expectation": expectation}))
        .collect();
    json!({"name": "birds", "runs_per_case": 2,
        "skills": [{"name": "gull", "plugin": "birds", "test_cases": cases}]})
}

const MUST: [(&str, &str); 3] =
    [("fire 1", "must_activate"), ("fire 2", "must_activate"), ("fire 3", "must_activate")];

#[test]
fn precision_without_a_case_that_must_not_activate_is_no_figure() {
    let project = project(&suite(&MUST));
    let ran = run(&project, &["--gate", "precision=0.8"]).exits(3);
    assert!(
        ran.stderr.contains("no case that must not activate the skill: precision cannot be measured"),
        "{}",
        ran.stderr
    );
    let summary = run(&project, &["--json"]).exits(0).json();
    assert_eq!(summary["activation"]["precision"]["value"], Value::Null, "{summary:#}");
    assert_eq!(summary["activation"]["recall"]["value"], 1.0);
    let with_one = [&MUST[..], &[("boats", "should_not_activate")]].concat();
    project.write("suites/birds.json", &suite(&with_one).to_string());
    let ran = run(&project, &["--gate", "precision=0.8"]).exits(0);
    assert!(
        ran.stderr.contains("only 1 case must not activate the skill: precision says little"),
        "{}",
        ran.stderr
    );
}

#[test]
fn cases_beside_skills_are_not_dropped() {
    let mut both = suite(&MUST);
    both["cases"] = json!([{"prompt": "boats", "expectation": "must_activate"}]);
    let project = project(&both);
    run(&project, &[]).exits(2);
    project.run(&["check", "suites/birds.json"]).exits(2);
}

#[test]
fn cases_in_a_misspelt_list_are_not_dropped() {
    for key in ["testcases", "acceptable_cases", "negativ_cases"] {
        for place in ["/skills/0", ""] {
            let mut suite = suite(&MUST);
            let object = suite.pointer_mut(place).expect("an object");
            object[key] = json!([{"prompt": "fire 4", "expectation": "should_not_activate"}]);
            let ran = run(&project(&suite), &[]).exits(2);
            assert!(ran.stderr.contains(key) && ran.stderr.contains("not read"), "{}", ran.stderr);
        }
    }
}

#[test]
fn an_unknown_mode_is_refused_before_another_is_run() {
    let project = project(&suite(&MUST));
    let compare = |modes: &[&str]| {
        project
            .run(&[&["compare", "suites/birds.json", "--agent", "own", "--modes"], modes].concat())
            .exits(2)
    };
    let ran = compare(&["baseline", "bogus"]);
    assert!(ran.stderr.contains("there is no mode \"bogus\""), "{}", ran.stderr);
    let ran = compare(&["baseline,smart"]);
    assert!(ran.stderr.contains("separate modes with spaces: --modes baseline smart"), "{}", ran.stderr);
    assert!(!project.path().join(".practicum/runs").exists(), "nothing was run");
}

/// The report of the newest run.
fn report(project: &Project, name: &str) -> String {
    project.run(&["report", "--format", name]).exits(0).stdout
}

fn push(suite: &mut Value, skill: Value) {
    suite["skills"].as_array_mut().expect("skills").push(skill);
}

fn counts(summary: &Value) -> [u64; 5] {
    ["tp", "fp", "tn", "fn", "error"].map(|name| summary["activation"][name].as_u64().expect("a count"))
}

#[test]
fn a_prompt_that_names_the_skill_does_not_hide_what_went_wrong() {
    for name in ["/gull", "/birds:gull", "$gull"] {
        let activating = format!("{name} fire");
        let crashed = format!("{name} crash");
        let not_activating = format!("{name} please");
        let cases = [
            (activating.as_str(), "should_not_activate"),
            (crashed.as_str(), "must_activate"),
            ("fire", "must_activate"),
            ("boats", "should_not_activate"),
        ];
        let project = project(&suite(&cases));
        let summary = run(&project, &["--json"]).exits(3).json();
        assert_eq!(counts(&summary), [2, 2, 2, 0, 2], "{summary:#}");
        assert_eq!(summary["activation"]["precision"]["value"], 0.5, "{summary:#}");
        let markdown = report(&project, "md");
        let wrong = markdown.split("### False Positives").nth(1).expect("the section");
        let (noise, errors) = wrong.split_once("### Errors").expect("the section");
        assert!(noise.contains("fire"), "{noise}");
        assert!(
            errors.split("### Success").next().is_some_and(|errors| errors.contains("crash")),
            "{errors}"
        );
        let rows: Value = serde_json::from_str(&report(&project, "activation")).expect("JSON");
        let rows = rows["results"].as_array().expect("rows");
        let outcomes = |outcome: &str| rows.iter().filter(|row| row["outcome"] == outcome).count();
        assert_eq!((outcomes("fp"), outcomes("error")), (2, 2), "{rows:#?}");
        // If the prompt names the skill, neither an activation nor a missing one counts.
        let message =
            [(activating.as_str(), "must_activate"), (not_activating.as_str(), "should_not_activate")];
        project.write("suites/birds.json", &suite(&message).to_string());
        let summary = run(&project, &["--json"]).exits(3).json();
        assert_eq!(counts(&summary), [0; 5], "{summary:#}");
        assert_eq!(summary["activation"]["invoked"], 4, "{summary:#}");
    }
}

#[test]
fn a_prompt_that_names_another_skill_leaves_the_choice_of_this_one() {
    let mut suite = suite(&[("/tern boats", "must_activate"), ("/tern fire", "should_not_activate")]);
    push(&mut suite, json!({"name": "tern", "plugin": "birds", "test_cases": []}));
    let project = project(&suite);
    project.write("plugins/birds/skills/tern/SKILL.md", TERN);
    project.write("agent.sh", &AGENT.replace(r#"["gull"]"#, r#"["gull","tern"]"#));
    let summary = run(&project, &["--json"]).exits(0).json();
    assert_eq!(counts(&summary), [0, 2, 0, 2, 0], "{summary:#}");
}

/// A skill that was a rival in the stored run is listed now. The case says the same words, but means both skills.
#[test]
fn a_rival_that_is_listed_now_is_not_forgiven_for_what_it_did_as_a_rival() {
    let mut suite = suite(&[("fire", "must_activate")]);
    suite["negative_cases"] = json!([{"prompt": "rival", "expectation": "should_not_activate"}]);
    let project = project(&suite);
    project.write("plugins/birds/skills/tern/SKILL.md", TERN);
    project.write("agent.sh", &AGENT.replace(r#"["gull"]"#, r#"["gull","tern"]"#));
    assert_eq!(counts(&run(&project, &["--json", "--no-probe"]).exits(0).json()), [2, 0, 2, 0, 0]);
    let one = json!([{"prompt": "rival two", "expectation": "must_activate"}]);
    push(&mut suite, json!({"name": "tern", "plugin": "birds", "test_cases": one}));
    project.write("suites/birds.json", &suite.to_string());
    let summary = run(&project, &["--json", "--no-probe"]).exits(0).json();
    assert_eq!(counts(&summary), [4, 2, 0, 0, 0], "{summary:#}");
    let fresh = run(&project, &["--json", "--no-probe", "--no-cache"]).exits(0).json();
    assert_eq!(counts(&fresh), counts(&summary));
}

/// Claude Code lists the skill of a plugin by both names, so people write them both.
#[test]
fn a_skill_that_is_named_with_its_plugin_is_not_missing() {
    let cases = json!([{"prompt": "fire", "expectation": "must_activate"},
        {"prompt": "fire too", "expectation": "should_not_activate"},
        {"prompt": "boats", "expectation": "should_not_activate"}]);
    let nested = json!({"name": "birds", "runs_per_case": 1,
        "skills": [{"name": "birds:gull", "plugin": "birds", "test_cases": cases}]});
    let flat = json!({"skill": "birds:gull", "runs_per_case": 1, "cases": cases});
    let listed = json!([{"input": "fire", "expected_skill": "birds:gull"},
        {"input": "fire too", "expected_skill": null}, {"input": "boats", "expected_skill": null}]);
    for suite in [nested, flat, listed] {
        let project = project(&suite);
        let summary = run(&project, &["--repeat", "1", "--json"]).exits(0).json();
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0], "{suite}: {summary:#}");
    }
    let other = json!({"name": "birds", "runs_per_case": 1,
        "skills": [{"name": "sea:gull", "plugin": "birds", "test_cases": cases}]});
    run(&project(&other), &[]).exits(2);
}

const TERN: &str = "---\nname: tern\ndescription: Speaks like a tern.\n---\n\nkirr\n";

#[test]
fn no_expected_skill_means_no_rival_either() {
    for none in [Value::Null, json!(""), json!(false)] {
        let array = json!([
            {"input": "fire", "expected_skill": "gull"},
            {"input": "rival", "expected_skill": none},
            {"input": "boats", "expected_skill": none},
        ]);
        let project = project(&array);
        project.write("plugins/birds/skills/tern/SKILL.md", TERN);
        let summary = run(&project, &["--repeat", "1", "--json"]).exits(0).json();
        assert_eq!(counts(&summary), [1, 1, 1, 0, 0], "{none}: {summary:#}");
        assert_eq!(summary["totals"]["failed"], 1, "{summary:#}");
    }
}

#[test]
fn expected_behaviour_of_a_listed_case_is_judged() {
    let behaviour = json!({"prompt": "fire", "expectation": "must_activate",
        "expected_behavior": ["It screams."], "ground_truth": "Gulls scream."});
    let mut negative = behaviour.clone();
    (negative["prompt"], negative["expectation"]) = (json!("boats"), json!("should_not_activate"));
    let nested = json!({"name": "birds", "runs_per_case": 1, "negative_cases": [negative],
        "skills": [{"name": "gull", "plugin": "birds", "test_cases": [behaviour]}]});
    let flat =
        json!({"skill": "gull", "runs_per_case": 1, "cases": [behaviour], "negative_cases": [negative]});
    for suite in [nested, flat] {
        let project = project(&suite);
        let summary = run(&project, &["--no-judge", "--json"]).exits(3).json();
        for case in summary["cases"].as_array().expect("cases") {
            assert_eq!(case["checks"][1]["id"], "it-screams", "{case:#}");
            assert_eq!(case["not_scored"], 1, "{case:#}");
        }
        let ran = run(&project, &[]).exits(2);
        assert!(ran.stderr.contains("judge"), "{}", ran.stderr);
    }
}

#[test]
fn a_rival_that_no_agent_lists_is_not_said_to_be_staged() {
    for text in ["---\nname: tern\n---\n\nkirr\n", "kirr\n", ""] {
        let project = project(&suite(&MUST));
        project.write("plugins/birds/skills/tern/SKILL.md", text);
        project.write("plugins/birds/skills/wren/SKILL.md", &TERN.replace("tern", "wren"));
        let ran = run(&project, &[]).exits(0);
        assert!(ran.stdout.contains("staged beside the skill in birds: wren\n"), "{}", ran.stdout);
        let message = "a skill is not staged beside the others";
        assert!(
            ran.stderr.contains(message) && ran.stderr.contains("do not list the skill tern"),
            "{}",
            ran.stderr
        );
        let markdown = report(&project, "md");
        assert!(markdown.contains("staged beside the skill in birds: wren\n"), "{markdown}");
        let checked = project.run(&["check", "suites/birds.json"]);
        assert!(format!("{}{}", checked.stdout, checked.stderr).contains("do not list the skill tern"));
    }
}

#[test]
fn the_cases_of_a_skill_that_gave_way_to_its_namesake_do_not_pass() {
    let mut both = suite(&MUST);
    push(
        &mut both,
        json!({"name": "gull", "plugin": "sea", "test_cases": [
            {"prompt": "sea fire", "expectation": "must_activate"},
            {"prompt": "sea boats", "expectation": "should_not_activate"}]}),
    );
    let project = project(&both);
    let gull = "---\nname: gull\ndescription: Another gull.\n---\n\nkow\n";
    project.write("plugins/sea/skills/gull/SKILL.md", gull);
    let ran = run(&project, &["--json"]).exits(3);
    let message = "two skills are called \"gull\": the one of birds is staged, and the cases of the one of sea are not run";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    let summary = ran.json();
    assert_eq!((&summary["totals"]["passed"], &summary["totals"]["not_scored"]), (&json!(6), &json!(4)));
    project.run(&["check", "suites/birds.json"]).exits(0);
    // Of two that hold the same, it does not matter which one is there.
    let same = "---\nname: gull\ndescription: Speaks like a gull. Use it for gulls.\n---\n\nkee-ow\n";
    project.write("plugins/sea/skills/gull/SKILL.md", same);
    let summary = run(&project, &["--json"]).exits(0).json();
    assert_eq!(summary["totals"]["passed"], 10, "{summary:#}");
}

#[test]
fn a_gate_on_what_cannot_be_measured_does_not_hold() {
    let must = MUST.to_vec();
    let not = vec![("boats", "should_not_activate"), ("ships", "should_not_activate")];
    let crashed = vec![("crash 1", "must_activate"), ("crash 2", "should_not_activate")];
    for (cases, undefined) in [
        (&must, &["precision", "f1", "accuracy"][..]),
        (&not, &["precision", "recall", "f1"]),
        (&crashed, &["precision", "recall", "f1", "accuracy"]),
    ] {
        let project = project(&suite(cases));
        for gate in undefined {
            let summary = run(&project, &["--gate", &format!("{gate}=0.5"), "--json"]).exits(3).json();
            assert_eq!(summary["activation"][gate]["value"], Value::Null, "{gate} {summary:#}");
            let found = &summary["gates"][0];
            assert_eq!((&found["value"], &found["ok"]), (&Value::Null, &json!(false)), "{gate} {found:#}");
            let text = project.run(&["show"]).stdout;
            assert!(text.contains("INCOMPLETE"), "{text}");
            for name in ["md", "html", "github-comment", "junit"] {
                let text = report(&project, name);
                assert!(!text.contains("holds") && !text.contains("✅"), "{gate} {name}: {text}");
            }
            let trend = project.run(&["trend", gate]).exits(0).stdout;
            assert!(!trend.contains("1.00"), "{gate}: {trend}");
        }
    }
    let message = run(&project(&suite(&must)), &["--gate", "f1=0.5"]).exits(3).stdout;
    assert!(
        message.contains("cannot be measured: in no case a skill must not be activated; add one"),
        "{message}"
    );
}

#[test]
fn the_rates_of_a_sample_are_not_given_as_those_of_the_suite() {
    let cases = [&MUST[..], &[("boats", "should_not_activate")]].concat();
    let project = project(&suite(&cases));
    run(&project, &["--max-evals", "2"]).exits(0);
    let found: Value = serde_json::from_str(&report(&project, "activation")).expect("JSON");
    assert_eq!(found["sample"], json!({"cases": 2, "of": 4, "by": "--max-evals 2"}), "{found:#}");
    for shape in ["skill-creator", "agentskills"] {
        project.run(&["report", "--format", shape, "-o", shape]).exits(0);
        let files = walk(&project.path().join(shape));
        let benchmark = files.iter().find(|path| path.ends_with("benchmark.json")).expect("a benchmark");
        let text = std::fs::read_to_string(benchmark).expect("a benchmark");
        assert!(text.contains("sample of 2 of 4 cases (--max-evals 2)"), "{shape}: {text}");
    }
}

/// All files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Claude Code and Codex count a skill whose file the model reads with a shell command.
#[test]
fn a_skill_that_a_shell_command_shows_counts_as_activated() {
    let path = ".claude/skills/gull/SKILL.md";
    for (command, activated) in [
        (format!("cat {path}"), true),
        (format!("head -20 {path}"), true),
        ("cd .claude/skills/gull && cat SKILL.md".to_owned(), true),
        (format!("sed -n 1,5p {path}"), true),
        (format!("ls {path}"), false),
        ("cat .claude/skills/other/SKILL.md".to_owned(), false),
    ] {
        let mut one = suite(&[("feathers", "must_activate"), ("boats", "should_not_activate")]);
        one["runs_per_case"] = json!(1);
        let project = project(&one);
        let script = json!({"practicum_script": 1, "scenarios": [
            {"to": "agent", "when": "Use the skill", "steps": [{"tools": [{"name": "Skill", "input": {"skill": "gull"}}]}, "ok"]},
            {"to": "agent", "when": "feathers", "steps": [{"tools": [{"name": "Bash", "input": {"command": command}}]}, "Done."]},
            {"to": "agent", "steps": ["Done."]},
        ]});
        project.write("script.yaml", &script.to_string());
        let args = ["run", "suites/birds.json", "--agent", "builtin", "--script", "script.yaml", "--json"];
        let summary = project.run(&args).json();
        assert_eq!(summary["activation"]["tp"], u64::from(activated), "{command}: {summary:#}");
    }
    // An agent of one's own that calls its shell as Codex does.
    let mut one = suite(&[("feathers", "must_activate"), ("boats", "should_not_activate")]);
    one["runs_per_case"] = json!(1);
    let project = project(&one);
    let call = r#"echo '{"type":"tool","id":"1","name":"shell","input":{"command":"cat .agents/skills/gull/SKILL.md"}}'
echo '{"type":"tool_result","id":"1","ok":true,"content":"kee-ow"}'"#;
    let agent = AGENT.replace(
        "case \"$1\" in *rival*",
        &format!("case \"$1\" in *feathers*) {call} ;; esac\ncase \"$1\" in *rival*"),
    );
    project.write("agent.sh", &agent);
    let summary = run(&project, &["--no-probe", "--json"]).json();
    assert_eq!(summary["activation"]["tp"], 1, "{summary:#}");
}

/// An id with a line break printed a line that looked like the result of another case.
#[test]
fn an_id_does_not_print_a_result_of_its_own() {
    for id in ["x\n[2/2] passed     boats", "x\u{1b}[2K", "x\ry"] {
        let cases = json!([{"id": id, "prompt": "boats", "expectation": "must_activate"}]);
        let flat = project(&json!({"skill": "gull", "runs_per_case": 1, "cases": cases}));
        let ran = run(&flat, &[]).exits(2);
        assert!(ran.stderr.contains("the id of a case has a line break"), "{}", ran.stderr);
        let mut named = suite(&MUST);
        named["name"] = json!(id);
        run(&project(&named), &[]).exits(2);
    }
}

/// The ids of cases that no gate covers stood in reports as they are, so that they could mention people.
#[test]
fn an_id_does_not_become_a_mention_or_a_heading_of_the_report() {
    let cases =
        json!([{"id": "@octocat <b>Passed</b> [x](y)", "prompt": "boats", "expectation": "must_activate"}]);
    let project = project(&json!({"skill": "gull", "runs_per_case": 1, "cases": cases}));
    run(&project, &[]).exits(0);
    for name in ["md", "github-comment"] {
        let text = report(&project, name);
        assert!(text.contains("no gate covers the trials that failed"), "{text}");
        assert!(
            !text.contains("@octocat") && !text.contains("<b>") && !text.contains("[x]("),
            "{name}: {text}"
        );
    }
}

/// The plugin's skill is staged as a plain skill, because this agent loads no plugins, and the agent names both.
#[test]
fn a_skill_that_is_named_with_its_plugin_is_not_another_skill() {
    let mut evals = suite(&[("plugged 1", "must_activate"), ("quiet", "should_not_activate")]);
    evals["negative_cases"] = json!([{"prompt": "plugged 2", "expectation": "should_not_activate"},
        {"prompt": "foreign", "expectation": "should_not_activate"}]);
    let project = project(&evals);
    project.write(
        "agent.sh",
        &AGENT.replace(
            "case \"$1\" in *rival*)",
            "case \"$1\" in *plugged*) echo '{\"type\":\"skill\",\"name\":\"birds:gull\"}' ;; esac\n\
             case \"$1\" in *foreign*) echo '{\"type\":\"skill\",\"name\":\"zoo:gull\"}' ;; esac\n\
             case \"$1\" in *rival*)",
        ),
    );
    let summary = run(&project, &["--json"]).exits(0).json();
    let figures = &summary["activation"];
    assert_eq!(figures["recall"]["value"], 1.0, "{summary:#}");
    assert_eq!(figures["precision"]["value"], 0.5, "{summary:#}");
}
