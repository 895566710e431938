//! Tests of the reader of BMad's evals.

use super::*;
use crate::dialects::testing;
use practicum_core::model::{CasePrompt, CheckKind};

fn check(text: &str, expected: &[&str]) -> Option<Suite> {
    testing::check_diagnostics(&Bmad, "evals.json", text, expected)
}

/// Gives an eval with a prompt, an expectation and these entries.
fn eval(entries: &str) -> String {
    format!(r#"{{"evals": [{{"id": "A", "prompt": "p", "expectations": ["e"]{entries}}}]}}"#)
}

#[test]
fn what_is_wrong_is_said_at_its_place() {
    for (text, expected) in [
        (r#"{"skill_name": "s"}"#, &["error missing-key 1:1"] as &[&str]),
        (r#"{"evals": {}}"#, &["error wrong-type 1:11"]),
        (r#"{"evals": []}"#, &["error no-cases 1:1"]),
        (r#"{"evals": ["x"]}"#, &["error wrong-type 1:12"]),
        (
            r#"{"skill_name": 3, "evals": [{"id": "A", "prompt": "p", "expectations": ["e"]}]}"#,
            &["error wrong-type 1:16"],
        ),
        (
            r#"{"evals": [{}]}"#,
            &["error missing-key 1:12", "error missing-key 1:12", "error missing-key 1:12"],
        ),
        (
            r#"{"evals": [{"id": "A", "prompt": " ", "expectations": []}]}"#,
            &["error empty-text 1:34", "error no-checks 1:55"],
        ),
        (r#"{"evals": [{"id": true, "prompt": "p", "expectations": "e"}]}"#, &["error wrong-type 1:19"]),
        (
            r#"{"evals": [{"id": "A", "prompt": "p", "expectations": [1, " ", {"a": 1}]}]}"#,
            &["error wrong-type 1:56", "error wrong-type 1:64", "error empty-text 1:59"],
        ),
        (
            r#"{"evals": [{"id": 1, "prompt": "p", "expectations": ["e"]}, {"id": "1", "prompt": "p", "expectations": ["e"]}]}"#,
            &["error duplicate-id 1:68"],
        ),
        (
            r#"{"evals": [{"id": "A", "prompt": "p", "input": "i", "expectations": ["e"]}]}"#,
            &["error contradiction 1:34"],
        ),
        (
            r#"{"cases": [{"input": "i", "rubric": ["r"]}], "evals": []}"#,
            &["error contradiction 1:11", "error no-cases 1:1"],
        ),
        ("[]", &["error no-cases"]),
        (
            r#"[{"query": "q"}, {"should_trigger": "yes"}, 3]"#,
            &[
                "error missing-key 1:2",
                "error missing-key 1:18",
                "error wrong-type 1:37",
                "error wrong-type 1:45",
            ],
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn the_entries_of_an_eval() {
    for (entries, expected) in [
        ("", &[] as &[&str]),
        (r#", "timeout": 900"#, &[]),
        (r#", "timeout": null, "files": null, "expected_output": null, "state_prefix": null"#, &[]),
        (r#", "_note": 1, "_": {}"#, &[]),
        (r#", "timeout": 0"#, &["error out-of-range 1:73"]),
        (r#", "timeout": "9"#.replace('9', "9m\"").as_str(), &["error wrong-type 1:73"]),
        (r#", "timeout": true"#, &["error wrong-type 1:73"]),
        (r#", "timeot": 9"#, &["warning unknown-key 1:62"]),
        (r#", "files": ["../secret"]"#, &["error escaping-path 1:72"]),
        (r#", "files": ["/etc/passwd"]"#, &["error escaping-path 1:72"]),
        (r#", "files": [3]"#, &["error wrong-type 1:72"]),
        (r#", "files": ["a.md", "./a.md"]"#, &["warning file-not-found 1:72", "notice duplicate-file 1:80"]),
        (r#", "expected_output": ["x"]"#, &["error wrong-type 1:81"]),
    ] {
        check(&eval(entries), expected);
    }
}

#[test]
fn all_seen_shapes_become_the_same_case() {
    for text in [
        r#"{"evals": [{"id": "A", "prompt": "p", "expectations": ["e", "f"]}]}"#,
        r#"{"cases": [{"id": "A", "input": "p", "rubric": ["e", "f"], "state_prefix": null}]}"#,
        r#"[{"id": "A", "input": "p", "rubric": ["e", "f"]}]"#,
        r#"[{"id": "A", "prompt": "p", "rubric": ["e", "f"]}]"#,
    ] {
        let suite = check(text, &[]).expect("a suite");
        let [case] = suite.cases.as_slice() else { panic!("one case") };
        assert_eq!(case.id, "A");
        assert_eq!(case.prompt, CasePrompt::Turns(vec!["p".to_owned()]));
        assert_eq!(case.workspace.base, WorkspaceBase::Project);
        let statements: Vec<&str> = case
            .checks
            .iter()
            .filter_map(|check| match &check.kind {
                CheckKind::Judged(judged) => Some(judged.statement.as_str()),
                CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
            })
            .collect();
        assert_eq!(statements, ["e", "f"]);
    }
}

#[test]
fn overlays_of_the_folders_around_come_before_the_own_one() {
    let project = tempfile::tempdir().expect("a folder");
    let root = project.path();
    let overlays = |folder: &str| -> Vec<String> {
        let found = base_overlays(&root.join(folder)).into_iter();
        found.map(|path| path.strip_prefix(root).expect("inside").display().to_string()).collect()
    };
    for folder in ["evals/setup", "evals/group/setup", "evals/group/s/setup", "s/evals/setup", "setup"] {
        std::fs::create_dir_all(root.join(folder)).expect("create");
    }
    let all = ["evals/setup", "evals/group/setup", "evals/group/s/setup"];
    assert_eq!(overlays("evals/group/s"), all);
    assert_eq!(overlays("evals/other"), ["evals/setup"]);
    assert_eq!(overlays("s/evals"), ["s/evals/setup"]);
    assert_eq!(overlays("elsewhere/s"), [""; 0]);
    std::fs::write(root.join("evals/setup/evals.json"), "{}").expect("write");
    assert_eq!(overlays("evals/other"), ["evals/setup"], "no skill is called setup");
    std::fs::create_dir_all(root.join("skills/setup")).expect("create");
    std::fs::write(root.join("skills/setup/SKILL.md"), "").expect("write");
    assert_eq!(overlays("evals/other"), [""; 0], "the evals of a skill that is called setup");
    assert_eq!(overlays("evals/setup"), [""; 0]);
}

#[test]
fn files_are_looked_for_in_the_project_then_beside_the_evals() {
    let project = tempfile::tempdir().expect("a folder");
    let root = project.path();
    let evals = root.join("evals/group/s");
    for file in ["both.md", "evals/group/s/both.md", "evals/group/s/files/own.md", "evals/group/s/top.md"] {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
        std::fs::write(path, "x").expect("write");
    }
    for (declared, from) in [
        ("both.md", "both.md"),
        ("files/own.md", "evals/group/s/files/own.md"),
        ("evals/group/s/files/own.md", "evals/group/s/files/own.md"),
        ("evals/elsewhere/s/files/own.md", "evals/group/s/files/own.md"),
        ("evals/files/own.md", "evals/group/s/files/own.md"),
        ("evals/group/s/top.md", "evals/group/s/top.md"),
    ] {
        let source =
            testing::parse_source(evals.join("evals.json"), &eval(&format!(r#", "files": ["{declared}"]"#)));
        let place = EvalFileLocation::new(evals.clone(), root.to_owned());
        let (suite, diagnostics) = testing::lower_source(&Bmad, &source, &place);
        let suite = suite.expect("a suite");
        let [file] = suite.cases[0].workspace.files.as_slice() else { panic!("one file for {declared}") };
        assert_eq!(
            (file.source.clone(), file.destination.as_str()),
            (root.join(from), declared),
            "{diagnostics:?}"
        );
    }
}

#[test]
fn a_link_does_not_lead_an_agent_out_of_the_project() {
    let around = tempfile::tempdir().expect("a folder");
    let root = around.path().join("project");
    let evals = root.join("evals/s");
    std::fs::create_dir_all(evals.join("files")).expect("create");
    for file in ["secret.md", "project/own.md"] {
        std::fs::write(around.path().join(file), "x").expect("write");
    }
    for (target, link) in
        [("../../../../secret.md", "out.md"), ("../../../own.md", "in.md"), ("../../../..", "all")]
    {
        std::os::unix::fs::symlink(target, evals.join("files").join(link)).expect("link");
    }
    for (declared, expected) in [
        ("files/in.md", &[] as &[&str]),
        ("files/out.md", &["escaping-path"]),
        ("files/all", &["escaping-path"]),
        ("files/all/secret.md", &["escaping-path"]),
    ] {
        let text = eval(&format!(r#", "files": ["{declared}"]"#));
        let source = testing::parse_source(evals.join("evals.json"), &text);
        let place = EvalFileLocation::new(evals.clone(), root.clone());
        let (_, diagnostics) = testing::lower_source(&Bmad, &source, &place);
        let codes: Vec<&str> =
            diagnostics.iter().map(|said| said.code).filter(|code| *code != "skill-not-found").collect();
        assert_eq!(codes, expected, "{declared}");
    }
}
