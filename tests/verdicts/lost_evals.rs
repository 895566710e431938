//! Evals that were dropped while the rest looked like the whole.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::common::Project;

fn eval(word: &str) -> String {
    format!(
        "timestamp: 2026-03-02T09:15:00Z\nname: gull\nprompt: say {word}\nexpected: Says it.\n\
         assertions:\n  - {{ type: contains, value: one }}\n"
    )
}

fn project() -> Project {
    Project::new(&[
        ("e/a.yaml", &eval("a")),
        ("e/b.yaml", &eval("b")),
        ("script.yaml", "practicum_script: 1\nscenarios:\n  - { to: agent, steps: [one] }\n"),
    ])
}

const RUN: [&str; 8] = ["run", "e", "--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];

#[test]
fn words_without_a_key_are_not_skipped() {
    let project = project();
    project.write("e/c.yaml", "hello\n");
    let ran = project.run(&RUN).exits(2);
    assert!(ran.stderr.contains("c.yaml"), "{}", ran.stderr);
    project.run(&["check", "e"]).exits(2);
}

#[test]
fn a_link_to_nothing_is_not_skipped() {
    let project = project();
    symlink("gone.yaml", project.path().join("e/c.yaml")).expect("a link");
    let ran = project.run(&RUN).exits(2);
    assert!(ran.stderr.contains("c.yaml"), "{}", ran.stderr);
}

#[test]
fn evals_in_a_linked_folder_are_not_lost() {
    let project = project();
    project.write("shared/c.yaml", &eval("c"));
    symlink("../shared", project.path().join("e/more")).expect("a link");
    // Circles are no trap.
    symlink(".", project.path().join("e/self")).expect("a link");
    symlink("../e", project.path().join("shared/back")).expect("a link");
    let ran = project.run(&[&RUN[..], &["--json"]].concat()).exits(0);
    let ids: Vec<_> =
        ran.json()["cases"].as_array().expect("cases").iter().map(|case| case["id"].clone()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(!ran.stderr.contains("skipped"), "{}", ran.stderr);
}

#[test]
fn a_folder_outside_the_project_is_named_with_the_reason() {
    let (project, elsewhere) = (project(), Project::new(&[("c.yaml", &eval("c"))]));
    symlink(elsewhere.path(), project.path().join("e/more")).expect("a link");
    project.write("e/settings.yaml", "port: 80\n");
    let ran = project.run(&RUN).exits(0);
    for part in ["more (a link to a folder outside the project)", "settings.yaml (it holds no eval)"] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
}

#[test]
fn an_eval_in_json_among_yaml_is_not_dropped() {
    let project = project();
    let eval = r#"{"timestamp": "2026-03-02T09:15:00Z", "name": "gull", "prompt": "say c", "expected": "Says it.", "assertions": [{"type": "contains", "value": "nothing like it"}]}"#;
    project.write("e/c.json", eval);
    let ran = project.run(&RUN);
    assert!(ran.code == 1 || ran.code == 2, "{}\n{}", ran.stdout, ran.stderr);
}

#[test]
fn a_case_that_nobody_has_is_not_ignored_beside_one_that_is_there() {
    let project = project();
    project.run(&[&RUN[..], &["--case", "*a"]].concat()).exits(0);
    let ran = project.run(&[&RUN[..], &["--case", "*a", "--case", "nope"]].concat()).exits(2);
    assert!(ran.stderr.contains("--case nope matches no case"), "{}", ran.stderr);
}

/// An eval was lost, and the run green, because only lines that begin with a key were looked at.
#[test]
fn an_eval_is_not_lost_because_of_how_its_yaml_is_written() {
    let fails = "assertions: [{type: contains, value: never}]";
    let block = format!("timestamp: 2025-01-15T10:30:00Z\nname: n\nprompt: p\nexpected: e\n{fails}\n");
    let indented: String = block.lines().map(|line| format!("  {line}\n")).collect();
    let one_line = format!("{{timestamp: 2025-01-15T10:30:00Z, name: n, prompt: p, expected: e, {fails}}}\n");
    let late = format!("actual: {}\n{block}", "x".repeat(20_000));
    let explicit = block.replace("prompt: p", "? prompt\n: p");
    for text in [&indented, &one_line, &late, &explicit, &block.replace('\n', "\r")] {
        let project = Project::new(&[
            ("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n"),
            ("sk/a.yaml", &block.replace("never", "done")),
            ("sk/b.yaml", text),
        ]);
        let ran = project.run(&["run", "sk", "--agent", "own", "--repeat", "1"]).exits(1);
        assert!(ran.stdout.contains("1 of 2 trials passed"), "{}", ran.stdout);
    }
    // What cannot be read among evals is an error.
    let broken = "{timestamp: 2025-01-15T10:30:00Z, name: n, prompt: a, expected: b\n";
    let project = Project::new(&[("sk/a.yaml", &block), ("sk/b.yaml", broken)]);
    project.run(&["check", "sk"]).exits(2);
    let project = Project::new(&[("sk/a.yaml", &block)]);
    std::os::unix::fs::symlink("nowhere", project.path().join("sk/more")).expect("a link");
    project.run(&["check", "sk"]).exits(2);
}

/// A spec that is a link to a file under another name was dropped for that file, which is no spec by its name.
#[test]
fn a_spec_that_is_a_link_is_not_lost_to_what_it_leads_to() {
    let spec = r#"{"test_args": "q", "assertions": [{"id": "a", "type": "contains", "needle": "never"}]}"#;
    let project = Project::new(&[
        ("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n"),
        (".claude/commands/x.md", "Do it.\n"),
        (".claude/commands/x.eval.json", &spec.replace("never", "done")),
        (".claude/commands/y.md", "Do it.\n"),
        ("shared/y-spec.json", spec),
    ]);
    symlink("../../shared/y-spec.json", project.path().join(".claude/commands/y.eval.json")).expect("a link");
    let checked = project.run(&["check"]).exits(0).stdout;
    assert!(checked.contains("2 files, 2 cases"), "{checked}");
    project.run(&["run", "--agent", "own", "--repeat", "1"]).exits(1);
}

/// An example among the files of a skill was run in place of its evals, which failed.
#[test]
fn an_example_that_a_skill_shows_is_not_run_in_place_of_its_evals() {
    let eval = |needle: &str| {
        format!(r#"{{"evals": [{{"id": "A", "prompt": "p", "expectations": ["says {needle}"]}}]}}"#)
    };
    let project = Project::new(&[
        ("practicum.toml", ""),
        ("skills/s/SKILL.md", "---\nname: s\ndescription: Says it.\n---\n\nSay it.\n"),
        ("skills/s/assets/sample.json", &eval("an example")),
        ("evals/s/evals.json", &eval("done")),
    ]);
    let checked = project.run(&["check", "skills/s"]).exits(0);
    assert!(checked.stdout.contains("ok evals/s/evals.json"), "{}", checked.stdout);
    assert!(!checked.stdout.contains("sample.json"), "{}", checked.stdout);
    assert!(checked.stderr.contains("sample.json"), "what is left out is listed: {}", checked.stderr);
}

#[test]
fn every_command_that_reads_evals_names_the_files_that_it_skips() {
    let project = project();
    project.write("e/settings.yaml", "port: 80\n");
    project.write("text.md", "one\n");
    for args in [
        &["check", "e"][..],
        &["list", "e"],
        &["convert", "e", "--to", "native"],
        &["convert", "e", "--to", "clauditor"],
        &["grade", "--output", "text.md", "--spec", "e"],
        &["compare", "text.md", "text.md", "--spec", "e", "--blind", "--case", "a"],
        &["create", "e"],
    ] {
        let ran = project.run(args);
        let skipped = "settings.yaml (it holds no eval)";
        assert!(ran.stderr.contains(skipped), "{args:?} {}\n{}", ran.code, ran.stderr);
    }
    let json = project.run(&["grade", "--output", "text.md", "--spec", "e", "--json"]).exits(0).json();
    assert!(json["notes"].to_string().contains("settings.yaml"), "{json}");
    // A run that is graded again is of the same files.
    project.run(&RUN).exits(0);
    let again = project.run(&["grade", "latest", "--json"]).exits(0).json();
    assert_eq!(again["summary"]["skipped"].as_array().map(Vec::len), Some(1), "{again}");
}

const SKILL: &str =
    "---\nname: gull\ndescription: Speaks like a gull. Use when asked to speak.\n---\n\nSay it.\n";

/// A skill with an eval that passes in this file, and this file beside it.
fn beside(evals: (&str, &str), (name, text): (&str, &str)) -> Project {
    Project::new(&[
        ("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n"),
        ("gull/SKILL.md", SKILL),
        (&format!("gull/evals/{}", evals.0), evals.1),
        (&format!("gull/evals/{name}"), text),
    ])
}

const IN_JSON: (&str, &str) = (
    "evals.json",
    r#"{"skill_name": "gull", "evals": [{"id": 1, "prompt": "p", "assertions": [{"name": "a", "type": "contains", "value": "done"}]}]}"#,
);
const IN_YAML: (&str, &str) = (
    "a.practicum.yaml",
    "practicum: 1\nskill: ..\nworkspace: empty\ncases: [{id: a, prompt: p, checks: [{contains: done}]}]\n",
);
const RUN_OWN: [&str; 6] = ["run", "gull", "--agent", "own", "--arm", "with"];

/// A trigger set, or more evals, under a name that is not usual was passed over, and the run was green.
#[test]
fn evals_beside_a_good_eval_file_are_not_lost() {
    let failing = IN_JSON.1.replace("done", "never");
    let native = IN_YAML.1.replace("done", "never").replace("id: a", "id: b");
    let in_json = r#"{"practicum": 1, "skill": "..", "workspace": "empty", "cases": [{"id": "b", "prompt": "p", "checks": [{"contains": "never"}]}]}"#;
    for (evals, name, text) in [
        (IN_JSON, "trigger-set.json", r#"[{"prompt": "boats", "should_trigger": true}]"#),
        (IN_JSON, "eval_queries.json", r#"[{"query": "boats", "should_trigger": true}]"#),
        (IN_JSON, "eval-set.json", r#"{"should_trigger": ["boats"], "should_not_trigger": []}"#),
        (IN_JSON, "more.json", &failing),
        (IN_JSON, "more.jsonl", r#"{"query": "boats", "should_trigger": true}"#),
        (IN_JSON, "more.ndjson", r#"{"query": "boats", "should_trigger": true}"#),
        (IN_JSON, "evals.yaml", &failing),
        (IN_YAML, "b.yaml", &native),
        (IN_YAML, "b.json", in_json),
        (IN_YAML, "b.practicum.json", in_json),
    ] {
        let project = beside(evals, (name, text));
        let ran = project.run(&RUN_OWN);
        assert!(ran.code == 1 || ran.code == 3, "{name} {text}: {}\n{}{}", ran.code, ran.stdout, ran.stderr);
        assert!(project.run(&["check", "gull"]).stdout.contains("2 files"), "{name} {text}");
    }
}

/// A file that was never finished was passed over; with a selection it was only a warning.
#[test]
fn an_empty_or_broken_file_beside_evals_is_not_passed_over() {
    let half = "name: x\nprompt: p\n";
    for (evals, name, text) in [
        (IN_JSON, "trigger-set.json", ""),
        (IN_JSON, "trigger-set.json", "[]"),
        (IN_JSON, "trigger-set.json", "[{\"query\":"),
        (IN_JSON, "trigger-set.json", r#"[{"query": "boats", "should_triger": false}]"#),
        (IN_JSON, "trigger-set.json", r#"{"should_trigger": []}"#),
        (IN_YAML, "b.yaml", ""),
        (IN_YAML, "b.yaml", "practicum: 1\ncases: [\n"),
        (IN_YAML, "b.yaml", half),
        (IN_YAML, "b.yaml", "- prompt: p\n"),
        (IN_YAML, "b.practicum.json", "{"),
    ] {
        let project = beside(evals, (name, text));
        for more in [&[][..], &["--case", "*"], &["--only", "artifact"]] {
            project.run(&[&RUN_OWN[..], more].concat()).exits(2);
        }
        project.run(&["check", "gull"]).exits(2);
    }
}

/// Other data beside evals was not named, so that nobody noticed evals in a form that is not known.
#[test]
fn a_file_beside_evals_that_is_not_read_is_named() {
    let (no_eval, no_syntax) = ("it holds no eval", "evals are written in JSON or YAML");
    for (evals, name, text, why) in [
        (IN_JSON, "data.jsonl", r#"{"port": 80}"#, no_syntax),
        (IN_JSON, "evals.jsonc", IN_JSON.1, no_syntax),
        (IN_YAML, "more.json5", IN_JSON.1, no_syntax),
        (IN_JSON, "data.json", r#"{"port": 80}"#, no_eval),
        (IN_JSON, "empty.yaml", "", no_eval),
        (IN_YAML, "settings.yaml", "port: 80\n", no_eval),
        (IN_YAML, "list.yaml", "- a\n", no_eval),
    ] {
        let project = beside(evals, (name, text));
        let ran = project.run(&RUN_OWN).exits(0);
        assert!(ran.stderr.contains(&format!("{name} ({why})")), "{name}: {}", ran.stderr);
    }
    // A fixture of a case is no loss, even if it is empty.
    let with_file = IN_JSON.1.replace(r#""prompt": "p""#, r#""prompt": "p", "files": ["evals/data.json"]"#);
    for text in ["[]", r#"{"port": 80}"#, r#"[{"query": "q"}]"#] {
        let project = beside((IN_JSON.0, &with_file), ("data.json", text));
        let ran = project.run(&RUN_OWN).exits(0);
        assert!(!ran.stderr.contains("skipped"), "{text}: {}", ran.stderr);
    }
}

/// Of a JSON file, only the beginning is looked at first.
#[test]
fn a_suite_whose_first_text_is_long_is_not_lost() {
    let long = "x ".repeat(10_000);
    let case = |prompt: &str| json!({"prompt": prompt, "expectation": "must_activate"});
    let skills = json!([{"name": "gull", "plugin": "birds", "test_cases": [case("say one")]}]);
    for suite in [
        json!({"name": "long", "description": long, "skills": skills}),
        json!({"skill": "gull", "cases": [case(&long)]}),
        json!([{"input": long, "expected_skill": "gull"}]),
        json!({"skill_name": "gull", "evals": [{"id": 1, "prompt": long, "expectations": ["Says one."]}]}),
    ] {
        let project = project();
        project
            .write("plugins/birds/skills/gull/SKILL.md", "---\nname: gull\ndescription: Says.\n---\nOne.\n");
        project.write("suites/long.json", &suite.to_string());
        // Data that only mentions the words is no suite.
        project.write(
            "data/words.json",
            &json!([{"input": long, "output": "\"test_cases\" and prompt"}]).to_string(),
        );
        let checked = project.run(&["check", "."]).exits(0).stdout;
        assert!(checked.contains("long.json"), "{checked}");
        assert!(!checked.contains("words.json"), "{checked}");
    }
}

/// Cases that a model proposed are not run before someone accepts them. An eval may be called like that by chance.
#[test]
fn an_eval_that_is_called_like_a_proposal_is_not_skipped_in_silence() {
    let project = project();
    project.write("e/job.candidates.yaml", &eval("c"));
    project.write("e/old.candidates/d.yaml", &eval("d"));
    let ran = project.run(&RUN).exits(0);
    assert!(ran.stderr.contains("skipped 2 files"), "{}", ran.stderr);
    assert!(ran.stderr.contains("job.candidates.yaml (its name has .candidates"), "{}", ran.stderr);
    let named =
        ["run", "e/job.candidates.yaml", "--agent", "builtin", "--script", "script.yaml", "--sandbox", "off"];
    assert!(project.run(&named).exits(0).stdout.contains("job.candidates"));
}

/// writing-skills, skill-creator and others write JSON; people also write the same in YAML.
#[test]
fn a_suite_in_yaml_is_not_lost_where_no_other_evals_lie_beside_it() {
    let writing = "version: '1.0'\nskill: skills/gull\ncases:\n  - id: a\n    prompt: p\n    expectations:\n      \
                   - { criterion: c, description: Says one, required: true }\n";
    let creator = "skill_name: gull\nevals:\n  - { id: 1, prompt: p, expectations: [Says one] }\n";
    let skill = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\nkee-ow\n";
    for (path, text) in [
        ("skills/gull/evals/evals.yaml", writing),
        ("evals/gull/evals.yml", writing),
        ("evals/gull/my-cases.yaml", writing),
        ("evals/gull/evals.yaml", creator),
        ("evals/gull/triggers.yaml", "- { query: q, should_trigger: true }\n"),
    ] {
        let project = Project::new(&[("skills/gull/SKILL.md", skill), (path, text)]);
        project.write(
            "other/e.practicum.yaml",
            "practicum: 1\ncases: [{ id: x, prompt: p, checks: [{ contains: x }] }]\n",
        );
        let checked = project.run(&["check", ".", "--json"]).exits(0).json();
        let files: Vec<&str> = checked["files"]
            .as_array()
            .expect("files")
            .iter()
            .filter_map(|file| file["path"].as_str())
            .collect();
        assert!(files.iter().any(|file| file.ends_with(path)), "{path}: {files:?}");
    }
}

#[test]
fn a_file_that_is_called_evals_and_is_not_read_is_named() {
    for name in ["evals.yaml", "evals.jsonl", "evals.jsonc", "evals.json5", "triggers.yml"] {
        let project = project();
        project.write(&format!("other/{name}"), "");
        let checked = project.run(&["check", "."]).exits(0);
        assert!(checked.stderr.contains(name), "{name}: {}", checked.stderr);
    }
    // The cases of another tool, which ask under another key, are not read as evals with an error.
    let project = project();
    project.write("other/cases.yaml", "cases:\n  - { id: a, user_input: p, rubric: [Says one] }\n");
    let checked = project.run(&["check", "."]).exits(0);
    assert!(checked.stderr.contains("cases.yaml"), "{}", checked.stderr);
    // What is plainly something else is not: a workflow that runs evals.
    project.write(".github/workflows/evals.yml", "on: push\njobs:\n  evals: { runs-on: ubuntu }\n");
    let checked = project.run(&["check", "."]).exits(0);
    assert!(!checked.stderr.contains("evals.yml"), "{}", checked.stderr);
}

/// A fixture with the name of evals was counted once as a fixture and once as ignored by git, which it is not.
#[test]
fn a_skipped_file_is_not_counted_twice() {
    for name in ["files/evals.json", "setup/cases.json", "c/setup/triggers.json"] {
        let project =
            beside(IN_JSON, (name, r#"{"evals": [{"id": "x", "prompt": "q", "expectations": ["e"]}]}"#));
        let ran = project.run(&RUN_OWN);
        assert!(ran.stderr.contains("skipped 1 file: "), "{name}: {}", ran.stderr);
        assert!(!ran.stderr.contains("ignored by git"), "{name}: {}", ran.stderr);
    }
}
