//! What decides the exit code of clauditor's specs.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

/// The agent says "Bib" and activates no skill; the judge gives the criterion `c` its best score.
const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - to: judge
    steps: [{tools: [{name: report_marks, input: {results: [{id: c, score: 1, evidence: [Bib], reasoning: r}]}}]}]
  - when: {regex: "."}
    steps: [Bib]
"#;

fn project(spec: &Value) -> Project {
    let skill = "---\nname: clean\ndescription: Cleans. Use when asked.\n---\nClean it.\n";
    Project::new(&[
        ("script.yaml", SCRIPT),
        (".claude/skills/clean/SKILL.md", skill),
        (".claude/skills/clean/SKILL.eval.json", &spec.to_string()),
    ])
}

fn run(project: &Project, more: &[&str]) -> Ran {
    let args = ["run", "--agent", "builtin", "--script", "script.yaml", "--no-cache"];
    project.run(&[&args[..], more].concat())
}

/// Each gate of a run by its name: its value and whether it holds.
fn gates(ran: &Ran) -> Vec<(String, Option<f64>, bool)> {
    let summary: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    // A run that is graded again shows its summary beside what changed.
    let summary = summary.get("summary").unwrap_or(&summary);
    let gates = summary["gates"].as_array().expect("gates").iter();
    let text = |gate: &Value| gate["name"].as_str().unwrap_or_default().to_owned();
    gates.map(|gate| (text(gate), gate["value"].as_f64(), gate["ok"] == true)).collect()
}

#[test]
fn variance_does_not_take_the_gate_off_trigger_tests() {
    let criteria = json!({"grading_criteria": [{"id": "c", "criterion": "Says Bib"}]});
    let assertions = json!({"assertions": [{"id": "a", "type": "contains", "needle": "Bib"}]});
    for checks in [criteria, assertions] {
        for stability in [json!(0), json!(0.5), json!(1)] {
            let mut spec = checks.clone();
            spec["trigger_tests"] = json!({"should_trigger": ["clean my table"]});
            spec["variance"] = json!({"n_runs": 2, "min_stability": stability});
            let project = project(&spec);
            let ran = run(&project, &["--json"]).exits(1);
            let found = gates(&ran);
            assert!(found.contains(&("stability".to_owned(), Some(1.0), true)), "{spec}: {found:?}");
            let of_triggers = ("activation_cases_pass".to_owned(), Some(0.0), false);
            assert!(found.contains(&of_triggers), "{spec}: {found:?}");
        }
    }
}

#[test]
fn trigger_tests_alone_are_decided_whatever_the_variance() {
    for stability in [0.0, 0.5, 1.0] {
        let project = project(&json!({
            "trigger_tests": {"should_trigger": ["clean my table"]},
            "variance": {"n_runs": 2, "min_stability": stability},
        }));
        run(&project, &[]).exits(1);
        let project = self::project(&json!({
            "trigger_tests": {"should_not_trigger": ["what is the time"]},
            "variance": {"n_runs": 2, "min_stability": stability},
        }));
        run(&project, &[]).exits(0);
    }
}

#[test]
fn a_passing_trigger_test_does_not_stand_in_for_an_unsteady_skill() {
    let project = project(&json!({
        "assertions": [{"id": "a", "type": "contains", "needle": "Other"}],
        "trigger_tests": {"should_not_trigger": ["what is the time"]},
        "variance": {"n_runs": 2, "min_stability": 0.5},
    }));
    let ran = run(&project, &["--json"]).exits(1);
    let found = gates(&ran);
    assert!(found.contains(&("stability".to_owned(), Some(0.0), false)), "{found:?}");
    assert!(found.contains(&("activation_cases_pass".to_owned(), Some(1.0), true)), "{found:?}");
    // Queries alone have only the gate that is about them: stability was not asked for.
    for only in [["--case", "trigger-*"], ["--only", "activation"]] {
        let ran = run(&project, &[&only[..], &["--json"]].concat()).exits(0);
        assert_eq!(gates(&ran), [("activation_cases_pass".to_owned(), Some(1.0), true)], "{only:?}");
        let again = project.run(&["grade", "latest", "--json"]).exits(0);
        assert_eq!(gates(&again), gates(&ran), "{only:?}");
    }
}

/// Where none of its own cases ran, a gate was measured on the others.
#[test]
fn a_gate_is_not_measured_on_cases_that_it_is_not_about() {
    let spec = |needle: &str| {
        json!({
            "assertions": [{"id": "a", "type": "contains", "needle": needle}],
            "trigger_tests": {"should_not_trigger": ["what is the time"]},
            "variance": {"n_runs": 2, "min_stability": 0.5},
        })
    };
    let unmeasured = |name: &str| (name.to_owned(), None, false);
    let passing = project(&spec("Bib"));
    for (only, gate, open) in [
        ("activation", "stability=0.5", "stability"),
        ("artifact", "activation_cases_pass=1", "activation_cases_pass"),
    ] {
        let ran = run(&passing, &["--only", only, "--gate", gate, "--json"]).exits(3);
        assert!(gates(&ran).contains(&unmeasured(open)), "{only}: {}", ran.stdout);
    }
    // The first trial fails, so no query is asked: the gate on queries has no value.
    let ran = run(&project(&spec("Other")), &["--fail-fast", "-j", "1", "--json"]).exits(1);
    assert!(gates(&ran).contains(&unmeasured("activation_cases_pass")), "{}", ran.stdout);
}

/// What a model guesses of the queries decides them, and so the gate that is about them.
#[test]
fn a_guess_about_queries_is_not_counted_as_stability() {
    let project = project(&json!({
        "assertions": [{"id": "a", "type": "contains", "needle": "Bib"}],
        "trigger_tests": {"should_trigger": ["clean my table"]},
        "variance": {"n_runs": 2, "min_stability": 1},
    }));
    project.write(
        "script.yaml",
        &SCRIPT.replace(
            "scenarios:\n",
            "scenarios:\n  - {to: judge, steps: ['{\"skill\": null}', '{\"skill\": null}']}\n",
        ),
    );
    let ran = run(&project, &["--predicted", "--json"]);
    let found = gates(&ran);
    assert!(found.contains(&("stability".to_owned(), Some(1.0), true)), "{found:?}");
    assert!(
        found.iter().any(|(name, value, ok)| name == "activation_cases_pass" && *value != Some(1.0) && !ok),
        "{found:?}"
    );
}

#[test]
fn a_threshold_for_triggers_is_not_ignored() {
    let project = project(&json!({"trigger_tests": {"should_trigger": ["clean my table"]}}));
    run(&project, &[]).exits(1);
    run(&project, &["--trigger-threshold", "0.5"]).exits(1);
    let any_share = ["--trigger-threshold", "0"];
    let ran = run(&project, &any_share).exits(2);
    assert!(ran.stderr.contains("it must be above 0 and at most 1"), "{}", ran.stderr);
}

/// A skill that is never activated reaches a share of 0, so every case in which it must be would pass.
#[test]
fn a_threshold_that_every_run_reaches_is_told() {
    let project = project(&json!({}));
    for (run, case) in [("run: {trigger_threshold: 0}\n", "fire_rate"), ("", "{fire_rate: 0}")] {
        let case = format!("  - {{id: q, prompt: p, activation: must, pass_when: {case}}}\n");
        let eval = format!("practicum: 1\nskill: .claude/skills/clean\n{run}cases:\n{case}");
        project.write("e.practicum.yaml", &eval);
        let checked = project.run(&["check", "e.practicum.yaml"]);
        assert!(checked.stdout.contains("must be activated always passes"), "{}", checked.stdout);
    }
    project.write("practicum.toml", "trigger-threshold = 0\n");
    run(&project, &["e.practicum.yaml"]).exits(2);
}

#[test]
fn a_section_without_tiers_is_not_checked_and_says_so() {
    let project = project(&json!({"sections": [{"name": "V", "tiers": []}]}));
    let message = "section V has no tiers, so nothing in it is checked";
    let checked = project.run(&["check"]);
    assert!(checked.stdout.contains(message), "{}", checked.stdout);
    let ran = run(&project, &[]).exits(3);
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
}

#[test]
fn a_tier_that_can_never_pass_is_an_error() {
    let project = project(&json!({"sections": [{"name": "V", "tiers": [
        {"label": "t", "min_entries": 3, "max_entries": 1, "fields": [{"id": "f", "name": "f"}]}
    ]}]}));
    let checked = project.run(&["check"]).exits(2);
    assert!(checked.stdout.contains("at least 3 and at most 1 entries"), "{}", checked.stdout);
}

#[test]
fn what_is_wrong_with_a_path_or_name_is_said() {
    let project = project(&json!({
        "output_file": "", "assertions": [{"id": "a", "type": "contains", "needle": "Bib"}],
    }));
    let checked = project.run(&["check"]).exits(2);
    assert!(checked.stdout.contains("\"output_file\" must not be blank"), "{}", checked.stdout);
    let spec = json!({"skill_name": "zzz", "assertions": [{"id": "a", "type": "contains", "needle": "B"}]});
    let project = Project::new(&[
        (".claude/commands/x.md", "---\ndescription: Does.\n---\nDo $ARGUMENTS.\n"),
        (".claude/commands/x.eval.json", &spec.to_string()),
    ]);
    let checked = project.run(&["check"]);
    assert!(checked.stdout.contains("x.md is there: the spec is about zzz"), "{}", checked.stdout);
    let evals = |files: &str| {
        format!(
            r#"{{"evals": [{{"id": "A", "prompt": "p", "files": ["{files}"], "expectations": ["It is so"]}}]}}"#
        )
    };
    for (files, message) in [
        ("", "an entry of \"files\" is empty"),
        ("files/*.md", "patterns are not expanded; name each file or the folder"),
    ] {
        let project = Project::new(&[
            ("skills/s/SKILL.md", "---\nname: s\ndescription: Does.\n---\nDo.\n"),
            ("evals/s/evals.json", &evals(files)),
        ]);
        let checked = project.run(&["check", "skills/s"]).exits(2);
        assert!(checked.stdout.contains(message), "{}", checked.stdout);
    }
}

#[test]
fn a_plan_is_shown_without_its_agent() {
    let project = project(&json!({"assertions": [{"id": "a", "type": "contains", "needle": "Bib"}]}));
    project.write(
        "practicum.toml",
        "[agents.own]\ncommand = [\"no-such-program-anywhere\", \"{prompt}\"]\ndecoder = \"text\"\n",
    );
    for word in ["--explain", "--dry-run"] {
        project.run(&["run", "--agent", "own", word]).exits(0);
    }
    let ran = project.run(&["run", "--agent", "own"]).exits(3);
    assert!(ran.stderr.contains("no-such-program-anywhere"), "{}", ran.stderr);
}

#[test]
fn a_script_for_an_agent_that_cannot_be_asked_is_refused_before_the_run() {
    let project = project(&json!({"assertions": [{"id": "a", "type": "contains", "needle": "Bib"}]}));
    project.write(
        "practicum.toml",
        "[agents.own]\ncommand = [\"/bin/echo\", \"{prompt}\"]\ndecoder = \"text\"\n",
    );
    let ran = project.run(&["run", "--agent", "own", "--script", "script.yaml"]).exits(2);
    assert!(ran.stderr.contains("agent own cannot be pointed at a gateway"), "{}", ran.stderr);
    assert!(!project.path().join(".practicum/runs").exists(), "{}", ran.stderr);
}

#[test]
fn a_folder_where_a_file_should_be_is_not_said_to_be_missing() {
    let script = SCRIPT.replace(
        "    steps: [Bib]",
        "    steps:\n      - tools: [{ name: Bash, input: { command: \"mkdir r.md\" } }]\n      - Bib",
    );
    let project = project(&json!({
        "output_file": "r.md", "assertions": [{"id": "a", "type": "contains", "needle": "Bib"}],
    }));
    project.write("script.yaml", &script);
    let ran = run(&project, &[]).exits(1);
    assert!(ran.stdout.contains("r.md is a folder, not a file"), "{}", ran.stdout);
}

#[test]
fn a_folder_among_skills_without_a_skill_is_told() {
    let project = Project::new(&[("skills/n/notes.md", "a")]);
    let ran = project.run(&["check", "skills/n"]).exits(2);
    assert!(ran.stderr.contains("skills/n has no SKILL.md"), "{}", ran.stderr);
}

/// Says "Bib" in the first run, and crashes in all others.
const CRASHING_LATER_AGENT: &str = r#"
echo '{"type":"start","schema_version":1,"skills":["clean"]}'
runs=$(cat "$0.runs" 2>/dev/null || echo 0); echo $((runs + 1)) > "$0.runs"
if [ "$runs" != 0 ]; then exit 3; fi
echo '{"type":"text","text":"Bib"}'
echo '{"type":"end","ending":"finished"}'
"#;

/// One run that passed beside others without an answer was shown as a case that passes, under an open gate.
#[test]
fn a_skill_that_missing_runs_could_make_unsteady_is_not_shown_as_passed() {
    for (stability, decided) in [(0.8, false), (0.3, true)] {
        let project = project(&json!({
            "assertions": [{"id": "a", "type": "contains", "needle": "Bib"}],
            "variance": {"n_runs": 3, "min_stability": stability},
        }));
        project.write("agent.sh", CRASHING_LATER_AGENT);
        let agent = project.path().join("agent.sh");
        let own = format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            agent.display()
        );
        project.write("practicum.toml", &own);
        let ran = project.run(&["run", "--agent", "own", "--jobs", "1", "--retries", "0"]).exits(3);
        assert!(ran.stdout.contains("1 of 3 trials passed, 2 not scored"), "{}", ran.stdout);
        assert_eq!(ran.stdout.contains('✓'), decided, "{stability}: {}", ran.stdout);
        assert_eq!(ran.stdout.contains("1 of 1 case passes by its rate"), decided, "{}", ran.stdout);
    }
}

/// The case that calls the command has no arm without the skill, and refused it for the selected cases, too.
#[test]
fn a_case_that_is_not_selected_does_not_refuse_an_arm() {
    let project = project(&json!({
        "assertions": [{"id": "a", "type": "contains", "needle": "Bib"}],
        "trigger_tests": {"should_not_trigger": ["what is the time"]},
    }));
    let arms = ["--arm", "with", "--arm", "without"];
    for only in [["--case", "trigger-*"], ["--only", "activation"]] {
        let ran = run(&project, &[&arms[..], &only[..]].concat()).exits(0);
        assert!(ran.stderr.contains("run only with the skill"), "{only:?}: {}", ran.stderr);
    }
    for only in [&["--case", "clean"][..], &["--only", "artifact"], &[]] {
        let ran = run(&project, &[&arms[..], only].concat()).exits(2);
        assert!(ran.stderr.contains("case clean of suite clean is a bare command"), "{}", ran.stderr);
    }
}
