//! Tests of the reader of skill-test suites.

use super::*;
use crate::dialects::testing;
use practicum_core::model::PassRule;

fn check(text: &str, expected: &[&str]) -> Option<Suite> {
    testing::check_diagnostics(&SkillTest, "suite.json", text, expected)
}

#[test]
fn what_is_wrong_is_said_at_its_place() {
    for (text, expected) in [
        ("{}", &["error missing-key 1:1", "error no-skill 1:1"] as &[&str]),
        (r#"{"name": " ", "skills": []}"#, &["error empty-text 1:10", "error no-skill 1:25"]),
        (
            r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []}]}"#,
            &["error no-cases 1:1"],
        ),
        (
            r#"{"name": "n", "skills": [{}, 3]}"#,
            &[
                "error missing-key 1:26",
                "error missing-key 1:26",
                "error missing-key 1:26",
                "error wrong-type 1:30",
            ],
        ),
        (
            r#"{"name": "n", "runs_per_case": 0, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "x", "expectation": "must_activate"}]}]}"#,
            &["error out-of-range 1:32"],
        ),
        (
            r#"{"name": "n", "runs_per_case": 21, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "x", "expectation": "must_activate"}]}]}"#,
            &["error out-of-range 1:32"],
        ),
        (
            r#"{"name": "n", "runs_per_case": 2.5, "skills": [{"name": "s", "plugin": "p", "test_cases": [{"prompt": "", "expectation": "must_activat"}, {}]}]}"#,
            &[
                "error wrong-type 1:32",
                "error empty-text 1:103",
                "error unknown-value 1:122",
                "error missing-key 1:139",
                "error missing-key 1:139",
            ],
        ),
        (
            r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []}], "negative_cases": [{"prompt": "x", "expectation": "must_activate"}, {"prompt": "y", "expectation": "acceptable"}]}"#,
            &["error unknown-value 1:125", "error unknown-value 1:174"],
        ),
        (r#"{"skill": "s", "cases": []}"#, &["error no-cases 1:1"]),
        (
            r#"{"skill": "s", "cases": [], "negative_cases": [{"prompt": "x", "expectation": "should_not_activate"}]}"#,
            &[],
        ),
        (
            r#"{"skill": "s", "cases": [], "negative_cases": [{"prompt": "x", "expectation": "must_activate"}]}"#,
            &["error unknown-value 1:79"],
        ),
        (
            r#"{"cases": [{"id": "a", "prompt": "x", "expectation": "must"}, {"id": "a", "prompt": "x", "expectation": "must"}]}"#,
            &["error duplicate-id 1:70"],
        ),
        (r#"[{"input": "x", "expected_skill": null}]"#, &["error no-skill 1:1"]),
        (
            r#"[{"input": "x", "expected_skill": "s"}, {"input": "y"}, {"expected_skill": 3}, 4]"#,
            &[
                "error missing-key 1:41",
                "error missing-key 1:57",
                "error wrong-type 1:76",
                "error wrong-type 1:80",
            ],
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn every_seen_spelling_of_a_label() {
    for (labels, expect) in [
        (
            &["must_activate", "must_trigger", "must_pass", "must", "MUST", "must-activate"] as &[&str],
            ActivationExpectation::Must,
        ),
        (
            &["should_not_activate", "should_not_trigger", "must_fail", "should_not", "must_not"],
            ActivationExpectation::MustNot,
        ),
        (&["acceptable", "ok"], ActivationExpectation::Either),
    ] {
        for label in labels {
            let text = format!(r#"{{"skill": "s", "cases": [{{"prompt": "p", "expectation": "{label}"}}]}}"#);
            let suite = check(&text, &[]).expect("a suite");
            assert_eq!(
                suite.cases[0].checks,
                [reading::activation_check(vec!["s".to_owned()], expect)],
                "{label}"
            );
            assert_eq!(suite.cases[0].pass_rule, PassRule::EveryRequiredCheck);
        }
    }
}

#[test]
fn a_label_that_is_none_is_never_taken_for_its_opposite() {
    let help = |label: &str| {
        let text = format!(r#"{{"skill": "s", "cases": [{{"prompt": "p", "expectation": {label}}}]}}"#);
        let source = testing::parse_source("/nowhere/suite.json".into(), &text);
        let (_, found) =
            testing::lower_source(&SkillTest, &source, &testing::location_in(Path::new("/nowhere")));
        let problem = found.iter().find(|problem| problem.severity == practicum_core::model::Severity::Error);
        problem.and_then(|problem| problem.help.clone()).unwrap_or_default()
    };
    for (label, expected) in [
        (r#""must_activat""#, "did you mean \"must_activate\"?"),
        (r#""should_not_activat""#, "did you mean \"should_not_activate\"?"),
        (r#""accept""#, "did you mean \"acceptable\"?"),
        (r#""should_activate""#, LABELS_TEXT),
        ("true", LABELS_TEXT),
    ] {
        assert_eq!(help(label), expected, "{label}");
    }
}

#[test]
fn a_negative_case_forbids_every_skill() {
    for text in [
        r#"{"name": "n", "skills": [
                {"name": "a", "plugin": "p", "test_cases": [{"prompt": "x", "expectation": "must"}]},
                {"name": "b", "plugin": "p", "test_cases": []}, {"name": "a", "plugin": "q", "test_cases": []}],
                "negative_cases": [{"prompt": "y", "expectation": "should_not"}]}"#,
        r#"[{"input": "x", "expected_skill": "a"}, {"input": "y", "expected_skill": null},
                {"input": "z", "expected_skill": "b"}]"#,
    ] {
        let suite = check(text, &[]).expect("a suite");
        let forbidden: Vec<&[String]> = suite
            .cases
            .iter()
            .filter(|case| case.group.as_deref() == Some(NEGATIVE_GROUP))
            .map(|case| match &case.checks[0].kind {
                CheckKind::Activation(activation) => activation.skills.as_slice(),
                CheckKind::Rule(_) | CheckKind::Judged(_) | CheckKind::Sections(_) => &[],
            })
            .collect();
        assert_eq!(forbidden, [["a".to_owned(), "b".to_owned()]]);
        assert_eq!((suite.run_policy.repeat, suite.format_defaults.repeat), (None, Some(5)));
    }
}

#[test]
fn skills_are_looked_for_where_the_user_says_then_beside_the_suite() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for skill in ["plugins/p/skills/s", "plugins/q/skills/s", "plugins/single", "mine/p/skills/s"] {
        std::fs::create_dir_all(root.join(skill)).expect("create");
        std::fs::write(root.join(skill).join("SKILL.md"), "text").expect("write");
    }
    let suite = |plugin: &str, name: &str, plugins: Option<&str>| {
        let text = format!(
            r#"{{"name": "n", "skills": [{{"name": "{name}", "plugin": "{plugin}", "test_cases": []}}]}}"#
        );
        let source = testing::parse_source(root.join("evals/suite.json"), &text);
        let place = EvalFileLocation {
            plugins: plugins.map(Into::into),
            ..EvalFileLocation::new(root.join("evals"), root.join("evals"))
        };
        let suite = testing::lower_source(&SkillTest, &source, &place).0.expect("a suite");
        let inside = |skill: &SkillRef| {
            let path = skill.path.as_ref()?.strip_prefix(root).ok()?;
            Some(path.to_string_lossy().into_owned())
        };
        (inside(&suite.skills[0]), suite.rivals.iter().filter_map(inside).collect::<Vec<_>>())
    };
    let (p, q, single) = ("plugins/p/skills/s", "plugins/q/skills/s", "plugins/single");
    let some = |path: &str| Some(path.to_owned());
    // A workspace can hold only one skill of each name.
    for plugins in [None, Some("../plugins")] {
        assert_eq!(suite("p", "s", plugins), (some(p), vec![single.to_owned()]));
        assert_eq!(suite("q", "s", plugins), (some(q), vec![single.to_owned()]));
        assert_eq!(suite("single", "single", plugins), (some(single), vec![p.to_owned()]));
    }
    assert_eq!(suite("p", "s", Some("../mine")), (some("mine/p/skills/s"), vec![]));
    let mine = root.join("mine");
    assert_eq!(suite("p", "s", mine.to_str()), (some("mine/p/skills/s"), vec![]));
    assert_eq!(suite("r", "s", None).0, None);
    // A user who gives a folder does not mean any other.
    assert_eq!(suite("p", "s", Some("../nowhere")), (None, vec![]));

    let both = r#"{"name": "n", "skills": [{"name": "s", "plugin": "p", "test_cases": []},
            {"name": "s", "plugin": "q", "test_cases": []}, {"name": "s", "plugin": "q", "test_cases": []}]}"#;
    let source = testing::parse_source(root.join("evals/suite.json"), both);
    let place = EvalFileLocation::new(root.join("evals"), root.join("evals"));
    let said = testing::lower_source(&SkillTest, &source, &place).1;
    let warnings = said.iter().filter(|said| said.code == "same-name-skills").count();
    assert_eq!(warnings, 1, "{said:?}");
}
