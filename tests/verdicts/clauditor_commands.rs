//! The conveniences of clauditor's commands, and what its reports say.

use serde_json::{Value, json};

use crate::clauditor::{file_script, project, run};
use crate::common::Project;

#[test]
fn two_texts_are_compared_by_the_checks_of_a_spec() {
    let spec = json!({"skill_name": "x", "assertions": [
        {"id": "park", "type": "contains", "needle": "Park"},
        {"id": "zoo", "type": "contains", "needle": "Zoo"},
        {"id": "long", "type": "min_length", "length": 3},
    ], "grading_criteria": [{"id": "near", "criterion": "Is it near?"}]});
    let project =
        Project::new(&[("x.eval.json", &spec.to_string()), ("a.txt", "The Park"), ("b.txt", "The Zoo")]);
    let compare =
        |before: &str, after: &str| project.run(&["compare", before, after, "--spec", "x.eval.json"]);
    let flipped = compare("a.txt", "b.txt").exits(1);
    for words in ["lost         park", "gained       zoo", "in both: 1 pass, 0 fail, 1 not scored"] {
        assert!(flipped.stdout.contains(words), "{}", flipped.stdout);
    }
    let same = compare("a.txt", "a.txt").exits(0);
    assert!(same.stdout.contains("nothing flipped"), "{}", same.stdout);
    let args = ["compare", "a.txt", "b.txt", "--spec", "x.eval.json", "--json"];
    let document = project.run(&args).exits(1).json();
    assert_eq!(document["flips"][0]["check"], "park", "{document}");
    compare("a.txt", "gone.txt").exits(2);
    project.run(&["compare", "a.txt", "--spec", "x.eval.json"]).exits(2);
}

#[test]
fn a_skill_can_be_called_without_evals_and_its_answer_is_printed() {
    let project = project(&json!({}));
    project.write(".claude/commands/tidy.md", "---\ndescription: Tidies.\n---\nTidy it.\n");
    let call = |skill: &str, args: &str, more: &[&str]| {
        let call = ["try", "--skill", skill, "--args", args, "--agent", "builtin", "--script", "script.yaml"];
        project.run(&[&call[..], more].concat())
    };
    let skill = ".claude/skills/clean";
    assert_eq!(call(skill, "bbb", &[]).exits(0).stdout, "Done.\n");
    assert_eq!(call(".claude/commands/tidy.md", "--strict", &[]).exits(0).stdout, "Done.\n");
    let document = call(skill, "bbb", &["--json"]).exits(0).json();
    assert_eq!(
        (&document["output"], &document["ended"]),
        (&json!("Done."), &json!("finished")),
        "{document}"
    );
    let hanging = call(skill, "hang", &["--timeout", "1s", "--json"]).exits(3);
    assert_eq!(hanging.json()["ended"], "timed_out", "{}", hanging.stdout);
    project.run(&["try", "--skill", skill]).exits(2);
}

#[test]
fn inputs_that_a_captured_text_never_had_are_warned_of() {
    let project = Project::new(&[("sales.csv", "a\n"), ("out.txt", "Park")]);
    let spec = json!({"skill_name": "x", "input_files": ["sales.csv"], "assertions": [
        {"id": "park", "type": "contains", "needle": "Park"},
    ]});
    project.write("x.eval.json", &spec.to_string());
    let ran = project.run(&["grade", "--output", "out.txt", "--spec", "x.eval.json"]).exits(0);
    assert!(ran.stderr.contains("input_files declaration is ignored"), "{}", ran.stderr);
}

/// A pattern that nothing matched beside one that did left no trace: the checks read only a part.
#[test]
fn an_output_pattern_that_matches_nothing_beside_another_is_told() {
    let spec = |files: Value| {
        json!({"skill_name": "clean", "test_args": "x", "output_files": files,
            "assertions": [{"id": "a", "type": "contains", "needle": "one"}]})
    };
    for (files, note) in [
        (json!(["a*.md", "b*.md"]), Some("no file was created or changed that matches b*.md")),
        (json!(["a*.md"]), None),
    ] {
        let project = project(&spec(files));
        project.write("script.yaml", &file_script("echo one > a1.md", "one"));
        run(&project, &[]).exits(0);
        let message = project.run(&["show", "latest", "clean"]).exits(0).stdout;
        assert_eq!(
            message.contains("no file was created or changed that matches"),
            note.is_some(),
            "{message}"
        );
        assert!(note.is_none_or(|note| message.contains(note)), "{message}");
    }
}

/// The name of an assertion stood in two of the reports only.
#[test]
fn the_name_of_an_assertion_is_in_every_report() {
    let project = project(&json!({"test_args": "x", "assertions": [
        {"id": "a", "name": "Names the park", "type": "contains", "needle": "Park"},
    ]}));
    let formats = ["md", "html", "junit", "csv", "json", "github"];
    let reports: Vec<String> = formats.iter().map(|format| format!("{format}=out/{format}.txt")).collect();
    let more: Vec<&str> = reports.iter().flat_map(|report| ["--report", report]).collect();
    let ran = run(&project, &more).exits(1);
    assert!(ran.stdout.contains("a (Names the park): "), "{}", ran.stdout);
    for format in formats {
        let text = std::fs::read_to_string(project.path().join(format!("out/{format}.txt"))).expect(format);
        assert!(text.contains("Names the park"), "{format}: {text}");
    }
    let shown = project.run(&["show", "latest", "clean"]).stdout;
    assert!(shown.contains("a (Names the park): "), "{shown}");
    project.write("out.txt", "Bench");
    let grade = ["grade", "--output", "out.txt", "--spec", ".claude/skills/clean/SKILL.eval.json"];
    assert!(project.run(&grade).exits(1).stdout.contains("a (Names the park): "));
    let document = project.run(&[&grade[..], &["--json"]].concat()).exits(1).json();
    assert_eq!(document["results"][0]["name"], "Names the park", "{document}");
}

/// The format's agents are claude and codex. Where neither is installed, the builtin agent took their place.
#[test]
fn a_spec_that_names_no_agent_is_not_run_with_the_builtin_one() {
    let check = json!([{"id": "a", "type": "contains", "needle": "Done"}]);
    for harness in [None, Some("auto")] {
        let mut spec = json!({"assertions": check});
        if let Some(harness) = harness {
            spec["harness"] = json!(harness);
        }
        let project = project(&spec);
        let ran = project.run(&["run", "--script", "script.yaml"]);
        assert!(ran.stderr.contains("means claude or codex, and neither is installed"), "{}", ran.stderr);
        assert!(!project.path().join(".practicum/runs").exists(), "{}", ran.stderr);
        project.run(&["check"]).exits(0);
        let plan = project.run(&["run", "--dry-run"]).exits(0);
        assert!(plan.stderr.contains("agent auto: claude, which is not installed here"), "{}", plan.stderr);
        // Whoever wants it says so, once or in the settings.
        run(&project, &[]).exits(0);
        project.write("practicum.toml", "agent = \"builtin\"\n");
        project.run(&["run", "--script", "script.yaml"]).exits(0);
    }
    let project = project(&json!({"harness": "gemini", "assertions": check}));
    run(&project, &[]).exits(2);
}
