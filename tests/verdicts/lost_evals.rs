//! Evals that were dropped while the rest looked like the whole.

use std::os::unix::fs::symlink;

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
