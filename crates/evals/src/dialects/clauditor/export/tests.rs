//! Tests of the export to clauditor specs.

use std::path::Path;

use serde_json::{Value, json};

use super::super::super::testing::{location_in, lower_source, parse_source};
use super::export_suite;
use crate::checks::rule_kind;
use crate::dialects::{EvalFileLocation, ExportedSuite, find_dialect};
use practicum_core::model::{
    CheckEvidence, CheckKind, CheckTarget, CheckedText, Observation, RelPath, Suite, WorkspaceView,
};
use practicum_core::tree::TreeNode;

fn native(document: &Value, folder: &Path) -> Suite {
    let source = parse_source(folder.join("a.practicum.json"), &document.to_string());
    // The project also holds files beside the folder of the evals.
    let project = folder.parent().unwrap_or(folder).to_owned();
    let (suite, diagnostics) = lower_source(
        find_dialect("native").expect("known"),
        &source,
        &EvalFileLocation { project, ..location_in(folder) },
    );
    assert!(!diagnostics.has_errors(), "{document}\n{diagnostics:?}");
    suite.expect("a suite")
}

/// Exports a suite of one skill `s` with these cases and other keys.
fn raised(cases: &Value, more: &Value, folder: &Path) -> ExportedSuite {
    let mut document = json!({"practicum": 1, "name": "n", "skill": {"name": "s"}, "cases": cases});
    for (key, value) in more.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    export_suite(&native(&document, folder), folder)
}

/// Gives the only spec of a case with these keys, and the losses.
fn only(case: &Value) -> (Value, Vec<String>) {
    with(case, &json!({}))
}

fn with(case: &Value, more: &Value) -> (Value, Vec<String>) {
    let mut full = json!({"id": "s", "command": ""});
    for (key, value) in case.as_object().into_iter().flatten() {
        full[key] = value.clone();
    }
    let mut raised = raised(&json!([full]), more, Path::new("/nowhere"));
    assert_eq!(raised.files.len(), 1, "{case}");
    (raised.files.remove(0).document, raised.losses)
}

#[test]
fn every_case_is_a_spec_and_the_queries_stand_in_the_first() {
    let checks = json!([{"contains": "x"}]);
    let cases = json!([
        {"id": "q", "prompt": "Go!", "activation": "must", "repeat": 1},
        {"id": "a", "command": "--a", "checks": checks},
        {"id": "a b/c", "prompt": "/s --c", "checks": checks},
        {"id": "lost", "prompt": "p", "checks": [{"tool_used": "Write"}]},
    ]);
    let raised = raised(&cases, &json!({"description": "d"}), Path::new("/nowhere"));
    let names: Vec<&str> = raised.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["s.eval.json", "s-a-b-c.eval.json"]);
    let [first, second] = raised.files.as_slice() else { panic!("two files") };
    assert_eq!(first.document["trigger_tests"], json!({"should_trigger": ["Go!"], "should_not_trigger": []}));
    assert_eq!((&first.document["test_args"], &second.document["test_args"]), (&json!("--a"), &json!("--c")));
    assert_eq!(second.document["description"], "d");
    assert_eq!(
        raised.losses,
        [
            "case lost: its checks of the kind \"tool_used\"",
            "case lost: the whole case, because nothing is left to expect of it",
            "cases a, a b/c: its id, which here is the name of its skill",
            "case q: its id, which here is made from its words",
        ]
    );
}

#[test]
fn names_that_cannot_be_file_names() {
    for (name, file) in [
        ("../up", "up.eval.json"),
        ("a/b", "a-b.eval.json"),
        ("a b", "a-b.eval.json"),
        ("...", "suite.eval.json"),
        ("größe", "größe.eval.json"),
    ] {
        let checks = json!([{"id": name, "command": "", "checks": [{"contains": "x"}]}]);
        let raised = raised(&checks, &json!({"skill": {"name": name}}), Path::new("/nowhere"));
        assert_eq!(
            (raised.files[0].name.as_str(), &raised.files[0].document["skill_name"]),
            (file, &json!(name))
        );
        assert_eq!(raised.losses, [""; 0]);
    }
}

struct NoFiles;

impl WorkspaceView for NoFiles {
    fn read(&self, _: &RelPath) -> std::io::Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn exists(&self, _: &RelPath) -> std::io::Result<bool> {
        Ok(false)
    }
}

#[test]
fn a_needle_that_becomes_a_pattern_finds_the_same() {
    let texts = ["", "a.b", "A.B", "axb", " a.b", "a.b\n", "x\na.b\ny", "x A.B", "A.B x", "[a.b", "a.b$ "];
    for key in ["contains", "not_contains", "starts_with", "ends_with"] {
        for value in [
            json!("a.b"),
            json!({"text": "a.b", "ignore_case": true}),
            json!({"text": " a.b", "ignore_case": true}),
            json!({"text": "A.B\n", "ignore_case": true}),
            json!({"text": "[a.b", "ignore_case": true}),
            json!("a.b$ "),
        ] {
            let (spec, losses) = only(&json!({"checks": [{key: value}]}));
            assert_eq!(losses, [""; 0]);
            let entry = &spec["assertions"][0];
            let kind = rule_kind(entry["type"].as_str().expect("a type")).expect("a rule");
            let payload = entry.get("needle").or(entry.get("pattern")).expect("a payload");
            let mut said = Default::default();
            let decode = |kind: &crate::checks::RuleKind, value: &Value, said: &mut _| {
                (kind.decode)(&TreeNode::from_value(value, Default::default()), said).expect("a rule")
            };
            let there = decode(kind, payload, &mut said);
            let here = decode(rule_kind(key).expect("a rule"), &value, &mut said);
            for text in texts {
                let observation = Observation::with_ending(practicum_core::model::AgentEnding::Finished);
                let texts = [CheckedText::without_path(text)];
                let evidence = CheckEvidence {
                    texts: &texts,
                    observation: &observation,
                    workspace: &NoFiles,
                    url_checker: None,
                };
                assert_eq!(
                    there.check(&evidence).verdict,
                    here.check(&evidence).verdict,
                    "{key} {value} {text:?}"
                );
            }
        }
    }
}

#[test]
fn checks_look_at_one_thing() {
    let on = |places: &[Value]| {
        let checks: Vec<Value> = places
            .iter()
            .enumerate()
            .map(|(n, on)| json!({"contains": "x", "id": format!("c{n}"), "on": on}))
            .collect();
        let (spec, losses) = only(&json!({ "checks": checks }));
        let kept: Vec<String> = spec["assertions"]
            .as_array()
            .expect("assertions")
            .iter()
            .map(|entry| entry["id"].as_str().expect("an id").to_owned())
            .collect();
        let place = spec.get("output_file").or(spec.get("output_files")).cloned();
        (kept.join(" "), place, losses)
    };
    let file = json!({"file": "a.md"});
    let files = json!({"files": ["*.md"]});
    let lost = |what: &str| vec![format!("case s: {what}")];
    assert_eq!(on(std::slice::from_ref(&file)), ("c0".to_owned(), Some(json!("a.md")), vec![]));
    assert_eq!(on(&[files.clone(), files.clone()]), ("c0 c1".to_owned(), Some(json!(["*.md"])), vec![]));
    assert_eq!(
        on(&[json!("output"), file.clone(), file.clone()]),
        (
            "c1 c2".to_owned(),
            Some(json!("a.md")),
            lost("its checks of the response, because here all are of the file a.md")
        )
    );
    assert_eq!(
        on(&[json!("output"), files]),
        ("c0".to_owned(), None, lost("its checks of the files *.md, because here all are of the response"))
    );
    assert_eq!(
        on(&[json!("all"), json!("output")]),
        (
            "c0 c1".to_owned(),
            None,
            lost("that its checks look at all that was said, not only at the response")
        )
    );
    assert_eq!(on(&[json!("run")]), ("c0".to_owned(), None, vec![]));
    let mut suite = native(
        &json!({"practicum": 1, "cases": [{"id": "s", "command": "", "checks": [{"contains": "x"}]}]}),
        Path::new("/nowhere"),
    );
    suite.cases[0].checks[0].target = CheckTarget::Files(vec!["../x".to_owned()]);
    assert!(export_suite(&suite, Path::new("/nowhere")).files.is_empty());
}

/// Tests that the thresholds in the spec make the case pass in the same situations as before.
#[test]
fn thresholds() {
    let judge = |required: bool| json!({"judge": {"statement": "x", "scale": "0-1"}, "on": "output", "required": required});
    let exact = json!({"contains": "x"});
    let advice = "case s: that some checks are only advice";
    for (case, expected, losses) in [
        (json!({"checks": [judge(true)]}), Some((1.0, 0.0)), vec![]),
        (json!({"checks": [judge(false), exact]}), Some((0.0, 0.0)), vec![]),
        (json!({"checks": [judge(true), judge(false)]}), Some((1.0, 0.0)), vec![advice]),
        (json!({"checks": [judge(false)]}), None, vec![advice]),
        (
            json!({"checks": [judge(false)], "pass_when": {"pass_rate": 0.4, "mean_score": 0.6}}),
            Some((0.4, 0.6)),
            vec![],
        ),
        (json!({"checks": [judge(false)], "pass_when": {"pass_rate": 0.7, "mean_score": 0.5}}), None, vec![]),
        (
            json!({"checks": [judge(true)], "pass_when": {"pass_rate": 0.4, "mean_score": 0.6}}),
            Some((0.4, 0.6)),
            vec!["case s: that some judged checks must hold each on its own"],
        ),
    ] {
        let (spec, lost) = only(&case);
        let found = spec.get("grade_thresholds").map(|given| {
            (
                given["min_pass_rate"].as_f64().expect("a share"),
                given["min_mean_score"].as_f64().expect("a share"),
            )
        });
        let mut lost = lost;
        lost.retain(|loss| loss != "the gates");
        assert_eq!(
            (found, lost),
            (expected, losses.iter().map(|loss| (*loss).to_owned()).collect()),
            "{case}"
        );
    }
}

#[test]
fn repeats_and_gates() {
    let exact = json!([{"contains": "x"}]);
    let judged = json!([{"judge": {"statement": "x", "scale": "0-1"}, "on": "output"}]);
    let gates = ["the gates".to_owned()];
    for (checks, more, variance, lost) in [
        (&exact, json!({}), Value::Null, false),
        (&exact, json!({"run": {"repeat": 1}}), Value::Null, false),
        (&exact, json!({"run": {"repeat": 4}}), json!({"n_runs": 4, "min_stability": 1.0}), false),
        (&exact, json!({"gates": {"stability": 0.5}}), json!({"n_runs": 1, "min_stability": 0.5}), false),
        // In clauditor, required checks decide whatever the stability, so a suite without gates cannot be
        // expressed.
        (&exact, json!({"gates": {}}), json!({"n_runs": 1, "min_stability": 0.0}), true),
        (&exact, json!({"gates": {"f1": 0.5}}), json!({"n_runs": 1, "min_stability": 0.0}), true),
        // "All cases pass" already says that all criteria must pass.
        (&judged, json!({}), Value::Null, false),
        (&judged, json!({"gates": {}}), json!({"n_runs": 1, "min_stability": 0.0}), true),
        (
            &judged,
            json!({"gates": {"stability": 0.5, "criteria_pass_rate": 1}}),
            json!({"n_runs": 1, "min_stability": 0.5}),
            false,
        ),
    ] {
        let (spec, losses) = with(&json!({ "checks": checks }), &more);
        assert_eq!(spec.get("variance").cloned().unwrap_or_default(), variance, "{checks} {more}");
        assert_eq!(losses, if lost { &gates[..] } else { &[] }, "{checks} {more}");
    }
}

#[test]
fn settings() {
    let checks = json!([{"contains": "x"}]);
    for (case, more, key, expected, losses) in [
        (json!({"timeout": 20}), json!({}), "timeout", json!(20), &[] as &[&str]),
        (
            json!({"timeout": "1500ms"}),
            json!({}),
            "timeout",
            json!(2),
            &["time limits that are no whole seconds; they are rounded up"],
        ),
        (json!({}), json!({"defaults": {"timeout": 300}}), "timeout", Value::Null, &[]),
        (json!({}), json!({"defaults": {"timeout": 600}}), "timeout", json!(600), &[]),
        (json!({}), json!({"run": {"agents": ["claude"]}}), "harness", json!("claude-code"), &[]),
        (
            json!({}),
            json!({"run": {"agents": ["gemini"]}}),
            "harness",
            Value::Null,
            &["the setting \"agents\""],
        ),
        (json!({}), json!({"judge": {"provider": "auto"}}), "grading_provider", Value::Null, &[]),
        (json!({}), json!({"judge": {"transport": "api"}}), "transport", json!("api"), &[]),
        (
            json!({}),
            json!({"judge": {"model": " "}}),
            "grading_model",
            Value::Null,
            &["the judge's settings"],
        ),
        (json!({}), json!({"judge": {"votes": 3}}), "grading_model", Value::Null, &["the judge's settings"]),
        (json!({}), json!({"run": {"system_prompt": "p"}}), "system_prompt", json!("p"), &[]),
        (json!({}), json!({}), "allow_hang_heuristic", json!(false), &[]),
        (
            json!({}),
            json!({"defaults": {"detect_questions": true}}),
            "allow_hang_heuristic",
            Value::Null,
            &[],
        ),
        (json!({}), json!({"defaults": {"sync_tasks": true}}), "sync_tasks", json!(true), &[]),
    ] {
        let mut case = case;
        case["checks"] = checks.clone();
        let (spec, lost) = with(&case, &more);
        assert_eq!(spec.get(key).cloned().unwrap_or_default(), expected, "{case} {more}");
        assert_eq!(lost, losses, "{case} {more}");
    }
}

#[test]
fn kept_keys_stay_where_they_mean_nothing() {
    let case = json!({"checks": [{"contains": "x"}]});
    for (key, value, kept) in [
        ("owner", json!("me"), true),
        ("name", json!("n"), true),
        ("grade_thresholds", json!({"min_pass_rate": 0.9}), true),
        ("output_file", json!("a.md"), false),
        ("variance", json!({"n_runs": 3}), false),
        ("timeout", json!(3), false),
        ("practicum", json!(1), false),
        ("evals", json!([]), false),
        ("sections", json!({"0": {"note": 1}}), false),
    ] {
        let (spec, losses) = with(&case, &json!({"meta": {key: value}}));
        assert_eq!((spec.get(key) == Some(&value), losses.is_empty()), (kept, kept), "{key} {losses:?}");
    }
}

#[test]
fn ids_are_one_set() {
    let field = |id: &str| json!({"id": id, "name": "n", "format": "("});
    let sections = json!([{"name": "S", "tiers": [{"label": "t", "fields": [field("a"), field("b")]}]}]);
    let (spec, losses) = only(
        &json!({"checks": [{"sections": sections, "id": "x"}, {"contains": "x", "id": "a", "name": "N"}]}),
    );
    let fields = &spec["sections"][0]["tiers"][0]["fields"];
    assert_eq!(spec["assertions"][0], json!({"id": "a", "name": "N", "type": "contains", "needle": "x"}));
    assert_eq!(fields[0], json!({"id": "a-2", "name": "n", "required": true}));
    assert_eq!(fields[1]["id"], "b");
    assert_eq!(
        losses,
        [
            "case s: the id \"a\" of a field, which here is \"a-2\"",
            "case s: the format \"(\", which is no pattern",
            "case s: the names of its checks of sections, which here are one, \"sections\"",
        ]
    );
}

#[test]
fn inputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("in/b")).expect("create");
    for path in ["in/a.csv", "in/b/a.csv", "in/out.md", "far.csv"] {
        std::fs::write(folder.join(path), "1").expect("write");
    }
    let spec_folder = folder.join("in");
    let mutable = |from: &str, to: &str| json!({"from": from, "to": to, "mutable": true});
    for (files, expected, losses) in [
        (json!([mutable("a.csv", "a.csv")]), json!(["a.csv"]), vec![]),
        (json!(["a.csv"]), json!(["a.csv"]), vec!["that its files must not be changed"]),
        (
            json!([mutable("b/a.csv", "data/a.csv")]),
            json!(["b/a.csv"]),
            vec!["where its file data/a.csv lies; here it is a.csv"],
        ),
        (
            json!([mutable("a.csv", "a.csv"), mutable("b/a.csv", "b.csv")]),
            json!(["a.csv"]),
            vec!["its file b.csv, because another of its files has that name"],
        ),
        (
            json!([mutable("../far.csv", "far.csv"), mutable("gone", "gone"), mutable("b", "b")]),
            Value::Null,
            vec![
                "its file far.csv (copy ../far.csv beside the spec and name it in \"input_files\")",
                "its file gone (copy gone beside the spec and name it in \"input_files\")",
                "its file b (copy b beside the spec and name it in \"input_files\")",
            ],
        ),
        (
            json!([mutable("out.md", "out.md")]),
            Value::Null,
            vec!["its file out.md, because an output has that name"],
        ),
    ] {
        let checks = json!([{"contains": "x", "on": {"files": ["sub/out.md"]}}]);
        let cases = json!([{"id": "s", "command": "", "files": files, "checks": checks}]);
        let raised = raised(&cases, &json!({}), &spec_folder);
        let spec = &raised.files[0].document;
        assert_eq!(spec.get("input_files").cloned().unwrap_or_default(), expected, "{files}");
        let losses: Vec<String> = losses.iter().map(|loss| format!("case s: {loss}")).collect();
        assert_eq!(raised.losses, losses, "{files}");
    }
}

#[test]
fn a_check_that_is_no_rule_is_not_made_one() {
    let suite = native(
        &json!({"practicum": 1, "skill": {"name": "s"}, "cases": [
            {"id": "s", "command": "", "activation": "must", "checks": [{"judge": "It is so."}]}
        ]}),
        Path::new("/nowhere"),
    );
    assert!(matches!(suite.cases[0].checks[0].kind, CheckKind::Activation(_)));
    let raised = export_suite(&suite, Path::new("/nowhere"));
    assert_eq!(
        raised.files[0].document["grading_criteria"],
        json!([{"id": "judge-it-is-so", "criterion": "It is so."}])
    );
    assert_eq!(
        raised.losses,
        [
            "case s: its activation",
            "case s: the scale pass-fail of its checks",
            "case s: that its judge sees the whole run, not only the response",
        ]
    );
}
