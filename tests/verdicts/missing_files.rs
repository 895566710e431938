//! Files and skills that a case names and this machine does not have.

use serde_json::Value;

use crate::common::Project;

const SKILL: &str = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\nkee-ow\n";

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    let agent = "[agents.own]\ncommand = [\"/bin/bash\", \"-c\", \"echo done\"]\n";
    project.write("practicum.toml", &format!("sandbox = \"off\"\nagent = \"own\"\n{agent}"));
    project
}

/// The verdicts of a run's cases: passed, failed, not scored.
fn counts(summary: &Value, case: &str) -> [u64; 3] {
    let cases = summary["cases"].as_array().expect("cases");
    let case = cases.iter().find(|known| known["id"] == *case).unwrap_or_else(|| panic!("{case}: {summary}"));
    ["passed", "failed", "not_scored"].map(|key| case[key].as_u64().expect("a count"))
}

#[test]
fn one_missing_fixture_does_not_block_the_others() {
    let native = "\
practicum: 1
skill: ../gull
workspace: empty
cases:
  - { id: there, prompt: p, files: [here.txt], checks: [{ contains: done }] }
  - { id: gone, prompt: p, files: [gone.txt], checks: [{ contains: done }] }
";
    let project =
        project(&[("gull/SKILL.md", SKILL), ("evals/e.practicum.yaml", native), ("evals/here.txt", "x")]);
    let checked = project.run(&["check", "evals"]).exits(2);
    assert!(checked.stdout.contains("gone.txt does not exist"), "{}", checked.stdout);
    let ran = project.run(&["run", "evals", "--json"]).exits(3);
    assert!(ran.stderr.contains("not run: case gone of e"), "{}", ran.stderr);
    let summary = ran.json();
    assert_eq!(counts(&summary, "there"), [1, 0, 0]);
    assert_eq!(counts(&summary, "gone"), [0, 0, 1]);
    let case = summary["cases"].as_array().expect("cases").iter().find(|case| case["id"] == "gone");
    assert_eq!(case.expect("a case")["endings"]["not_started"], 1);
    let shown = project.run(&["show", "latest", "gone"]).exits(0).stdout;
    assert!(shown.contains("the agent was not started") && shown.contains("gone.txt"), "{shown}");
    // What is not selected cannot block, and is no error of a run that passes.
    let passed = project.run(&["run", "evals", "--case", "there", "-q"]).exits(0);
    assert!(!passed.stderr.contains("error["), "{}", passed.stderr);
    // And it runs once the file is there.
    project.write("evals/gone.txt", "");
    let again = project.run(&["run", "evals", "-q"]).exits(0);
    assert!(again.stdout.contains("PASS  2 of 2"), "{}", again.stdout);
    std::fs::remove_file(project.path().join("evals/gone.txt")).expect("removed");
    project.run(&["run", "evals", "-q"]).exits(3);
}

/// Every format that has files.
#[test]
fn a_missing_file_is_an_error_of_its_case_in_every_format() {
    let bmad = r#"{"skill_name": "gull", "evals": [
        {"id": "there", "prompt": "p", "expectations": ["e"], "timeout": 9},
        {"id": "gone", "prompt": "p", "files": ["no/such.csv"], "expectations": ["e"], "timeout": 9}]}"#;
    let creator = r#"{"skill_name": "gull", "evals": [
        {"id": 1, "prompt": "p", "assertions": ["e"]},
        {"id": 2, "prompt": "p", "files": ["no/such.csv"], "assertions": ["e"]}]}"#;
    let writing = r#"{"version": "1.0", "skill": "gull", "cases": [
        {"id": "there", "prompt": "p", "expectations": [{"criterion": "c", "description": "d", "required": true}]},
        {"id": "gone", "prompt": "p", "files": ["no/such.csv"],
         "expectations": [{"criterion": "c", "description": "d", "required": true}]}]}"#;
    for (text, there, gone) in [(bmad, "there", "gone"), (creator, "1", "2"), (writing, "there", "gone")] {
        let project = project(&[("gull/SKILL.md", SKILL), ("gull/evals/evals.json", text)]);
        let checked = project.run(&["check", "gull"]).exits(2);
        assert!(checked.stdout.contains("no/such.csv does not exist"), "{}", checked.stdout);
        let run = ["run", "gull", "--arm", "with", "--no-judge", "--json"];
        let summary = project.run(&run).exits(3).json();
        let ended = |case: &str| {
            let cases = summary["cases"].as_array().expect("cases");
            let case = cases.iter().find(|known| known["id"] == *case).expect("a case");
            case["endings"].as_object().expect("endings").keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            (ended(there), ended(gone)),
            (vec!["finished".to_owned()], vec!["not_started".to_owned()])
        );
        project.run(&["check", "gull", "--json"]).exits(2);
    }
}

/// The artifact case of a spec whose input is missing is unscored; its trigger tests run.
#[test]
fn a_missing_input_of_a_spec_leaves_its_trigger_tests() {
    let spec = |input: &str| {
        format!(
            r#"{{"skill_name": "gull", "test_args": "x", "input_files": ["{input}"],
            "assertions": [{{"id": "a", "type": "contains", "needle": "done"}}],
            "trigger_tests": {{"should_trigger": [], "should_not_trigger": ["bake a cake"]}}}}"#
        )
    };
    let project = project(&[("gull/SKILL.md", SKILL), ("gull/SKILL.eval.json", &spec("gone.csv"))]);
    project.run(&["check", "gull"]).exits(2);
    let summary = project.run(&["run", "gull", "--no-probe", "--json"]).exits(3).json();
    assert_eq!(counts(&summary, "gull"), [0, 0, 1]);
    let cases = summary["cases"].as_array().expect("cases");
    let query = cases.iter().find(|case| case["id"] != "gull").expect("a query");
    assert_eq!(query["endings"]["finished"], 1, "{query}");
    // What leads out is an error before anything is spent.
    project.write("gull/SKILL.eval.json", &spec("../../gone.csv"));
    project.run(&["run", "gull", "--no-probe"]).exits(2);
}

#[test]
fn one_missing_skill_does_not_block_the_other_suites() {
    let suite = |skill: &str| {
        format!(
            "practicum: 1\nskill: ../{skill}\nworkspace: empty\ncases:\n  \
             - {{ id: c, prompt: p, checks: [{{ contains: done }}] }}\n"
        )
    };
    let project = project(&[
        ("gull/SKILL.md", SKILL),
        ("evals/good.practicum.yaml", &suite("gull")),
        ("evals/lost.practicum.yaml", &suite("nowhere")),
    ]);
    let ran = project.run(&["run", "."]).exits(3);
    assert!(ran.stdout.contains("INCOMPLETE  1 of 2 trials passed, 1 not scored"), "{}", ran.stdout);
    assert!(ran.stdout.contains("no skill at"), "the end says why: {}", ran.stdout);
    assert!(ran.stderr.contains("not run: suite lost"), "{}", ran.stderr);
    // Files may be checked where the skill is not.
    let checked = project.run(&["check", "."]).exits(0);
    assert!(checked.stdout.contains("warning[skill-not-found]"), "{}", checked.stdout);
    project.run(&["run", "evals/good.practicum.yaml", "-q"]).exits(0);
    // Where no suite can run, there is nothing to begin.
    let nothing = project.run(&["run", "evals/lost.practicum.yaml"]).exits(2).stderr;
    assert!(nothing.contains("no skill at"), "{nothing}");
    // A skill that is named takes the place of the missing one.
    project.run(&["run", "evals/lost.practicum.yaml", "--skill", "gull", "--no-cache", "-q"]).exits(0);
    project.run(&["check", "evals/lost.practicum.yaml", "--skill", "gull"]).exits(0);
}

#[test]
fn an_invalid_file_that_is_not_selected_does_not_block() {
    let eval = "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nassertions: [{type: contains, value: done}]\n";
    let project = project(&[("evals/good.yaml", eval), ("evals/bad.yaml", "timestamp: t\nprompt: p\n")]);
    project.run(&["run", "evals"]).exits(2);
    project.run(&["run", "evals", "--case", "b*"]).exits(2);
    let ran = project.run(&["run", "evals", "--case", "good"]).exits(0);
    assert!(ran.stderr.contains("bad.yaml cannot be understood"), "{}", ran.stderr);
    // In a file that names its cases itself, an id that was found elsewhere is not looked for.
    project.write("evals/evals.json", r#"{"evals": [{"id": "x", "prompt": 3}]}"#);
    project.run(&["run", "evals", "--case", "good"]).exits(0);
    project.run(&["run", "evals", "--case", "goo?"]).exits(2);
}

#[test]
fn a_broken_file_that_names_the_wanted_case_is_not_left_out() {
    let toml = "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n";
    let suite =
        |case: &str| format!("practicum: 1\nworkspace: empty\nrun: {{agents: [own]}}\ncases:\n  - {case}\n");
    let good = suite("{id: cc, prompt: p, checks: [{contains: done}]}");
    let broken = suite("{id: cc, prompt: p, chekcs: [{contains: no}]}");
    let other = suite("{id: dd, prompt: p, chekcs: [{contains: no}]}");
    for (second, code) in [(&broken, 2), (&other, 0)] {
        let project =
            Project::new(&[("a/evals/a.practicum.yaml", &good), ("b/evals/b.practicum.yaml", second)]);
        project.write("practicum.toml", toml);
        project.run(&["run", ".", "--case", "cc"]).exits(code);
    }
}
