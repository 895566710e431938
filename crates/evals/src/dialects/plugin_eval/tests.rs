//! Tests of cases of `claude plugin eval`, written to a folder.

use serde_json::{Value, json};

use super::*;
use crate::dialects::{LoadedFile, load_eval_file, to_native};
use practicum_core::model::Severity;

/// Writes a plugin with these files, and loads the case in evals/c.
fn load(files: &[(&str, &str)]) -> (tempfile::TempDir, LoadedFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let usual = [
        (".claude-plugin/plugin.json", r#"{"name": "kit"}"#),
        ("skills/tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies.\n---\nTidy.\n"),
    ];
    for (path, text) in usual.iter().chain(files) {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("create");
        std::fs::write(path, text).expect("write");
    }
    let place = EvalFileLocation::new(folder.path(), folder.path());
    let loaded = load_eval_file(&folder.path().join("evals/c"), &place, None);
    (folder, loaded)
}

fn errors(loaded: &LoadedFile) -> Vec<String> {
    let found = loaded.lowered.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    found.map(|found| format!("{}: {}", found.code, found.message)).collect()
}

fn case_of(files: &[(&str, &str)]) -> Value {
    let (folder, loaded) = load(files);
    let suite = loaded.lowered.suite.unwrap_or_else(|| panic!("{:#?}", loaded.lowered.diagnostics));
    to_native(&suite, folder.path())["cases"][0].clone()
}

#[test]
fn a_case_has_its_prompt_settings_and_weights() {
    let case = case_of(&[
        ("evals/c/prompt.md", "---\nname: own\nruns: 2\ntimeout_seconds: 60\n---\n\nDo it.\n"),
        ("evals/c/graders/a.md", "---\ntype: regex\npattern: done$\nflags: i\nweight: 3\n---\n"),
        ("evals/c/graders/b.md", "---\ntype: llm\n---\nPASS if it is good.\n"),
        (
            "evals/c/graders/s.md",
            "---\ntype: tool_used\ntool: Skill\ninput_match: '\"skill\"\\s*:\\s*\"(?:[\\w-]+:)?tidy\"'\n---\n",
        ),
    ]);
    assert_eq!(case["id"], "own");
    assert_eq!((&case["prompt"], &case["repeat"]), (&json!("Do it."), &json!(2)));
    assert_eq!(case["pass_when"], json!({"mean_of_scores": 1.0}));
    let checks = case["checks"].as_array().expect("checks");
    assert_eq!((&checks[0]["regex"], &checks[0]["weight"]), (&json!(r"(?i)done\Z"), &json!(3.0)));
    assert_eq!(checks[1]["on"], "output");
    // In a run with two arms, a grader about the skill is shown and does not count.
    assert_eq!((&checks[2]["activation"]["expect"], &checks[2]["weight"]), (&json!("must"), &json!(0.0)));
}

#[test]
fn a_grader_about_the_skill_counts_if_nothing_else_does_or_it_says_so() {
    let alone = case_of(&[
        ("evals/c/prompt.md", "Do it."),
        ("evals/c/graders/s.md", "---\ntype: tool_used\ntool: Skill\n---\n"),
    ]);
    assert_eq!(alone["checks"][0].get("weight"), None, "{alone}");
    let both = case_of(&[
        ("evals/c/prompt.md", "Do it."),
        ("evals/c/graders/r.md", "---\ntype: regex\n---\ndone\n"),
        ("evals/c/graders/s.md", "---\ntype: tool_used\ntool: Skill\nmin: 0\nmax: 0\narm: both\n---\n"),
        ("evals/c/graders/t.md", "---\ntype: file_exists\npath: out.md\narm: with-only\n---\n"),
    ]);
    let weights: Vec<Value> = (0..3).map(|at| both["checks"][at]["weight"].clone()).collect();
    assert_eq!(weights, [Value::Null, Value::Null, json!(0.0)], "{both}");
    assert_eq!(both["checks"][0]["regex"], "done", "the body is the pattern");
}

#[test]
fn what_prompt_md_says_wins_and_both_have_graders() {
    let case = case_of(&[
        (
            "evals/c/case.yaml",
            "schema_version: '1.1'\nname: a\nruns: 5\nexecution: {prompt: Not this., timeout_seconds: 9}\ncontext: {scaffold_script: s.sh, add_dirs: [data]}\ngraders: [{name: g, type: regex, pattern: x}]\n",
        ),
        ("evals/c/s.sh", "echo hi > a.txt\n"),
        ("evals/c/data/x.txt", "x"),
        ("evals/c/prompt.md", "---\nruns: 4\n---\nThis."),
        ("evals/c/graders/h.md", "---\ntype: regex\npattern: y\n---\n"),
    ]);
    assert_eq!((&case["id"], &case["prompt"], &case["repeat"]), (&json!("a"), &json!("This."), &json!(4)));
    assert_eq!(case["setup"], "echo hi > a.txt\n");
    assert_eq!(case["files"][0]["to"], "data");
    let ids: Vec<&Value> =
        case["checks"].as_array().expect("checks").iter().map(|check| &check["id"]).collect();
    assert_eq!(ids, [&json!("g"), &json!("h")]);
}

#[test]
fn what_cannot_be_done_here_leaves_the_case_unscored() {
    for (files, part) in [
        (vec![("evals/c/prompt.md", "---\nenv: {EVAL_A: b}\n---\nDo it.")], "environment variables"),
        (
            vec![("evals/c/prompt.md", "---\nappend_system_prompt: Be brief.\n---\nDo it.")],
            "append_system_prompt",
        ),
        (vec![("evals/c/prompt.md", "Do it."), ("evals/mocks/a/.replay/1.json", "{}")], "recorded"),
        (
            vec![
                ("evals/c/prompt.md", "Do it."),
                ("evals/c/graders/b.md", "---\ntype: baseline\nbaseline_file: b.jsonl\n---\n"),
            ],
            "recorded run",
        ),
        (
            vec![
                ("evals/c/prompt.md", "Do it."),
                ("evals/c/graders/b.md", "---\ntype: regex\npattern: '\\p{L}'\n---\n"),
            ],
            "Unicode",
        ),
        (
            vec![(
                "evals/c/case.yaml",
                "schema_version: '1.1'\nname: a\ncontext: {history_file: h.jsonl}\nexecution: {prompt: p}\n",
            )],
            "earlier conversation",
        ),
        (
            vec![
                (
                    "evals/c/case.yaml",
                    "schema_version: '1.1'\nname: a\ncontext: {scaffold_script: s.sh}\nexecution: {prompt: p}\n",
                ),
                ("evals/c/s.sh", "cp \"$(dirname \"$0\")/x\" ."),
            ],
            "its own path",
        ),
    ] {
        let mut files = files;
        files.push(("evals/c/graders/z.md", "---\ntype: regex\npattern: x\n---\n"));
        let case = case_of(&files);
        let said = case["unsupported"].as_str().unwrap_or_default();
        assert!(said.contains(part), "{part}: {case}");
    }
}

#[test]
fn what_the_original_refuses_is_refused() {
    let grader = ("evals/c/graders/z.md", "---\ntype: regex\npattern: x\n---\n");
    for (files, code) in [
        (vec![("evals/c/prompt.md", "---\nretries: 2\n---\nDo it."), grader], "unknown-key"),
        (vec![("evals/c/prompt.md", "---\nruns: 51\n---\nDo it."), grader], "out-of-range"),
        (vec![("evals/c/prompt.md", "---\nname: a\n---\n"), grader], "missing-key"),
        (vec![("evals/c/prompt.md", "Do it."), ("evals/c/graders/z.md", "PASS if good")], "missing-key"),
        (
            vec![("evals/c/prompt.md", "Do it."), ("evals/c/graders/z.md", "---\ntype: regexp\n---\nx")],
            "unknown-value",
        ),
        (
            vec![("evals/c/prompt.md", "Do it."), ("evals/c/graders/z.md", "---\npattern: x\n---\n")],
            "missing-key",
        ),
        (
            vec![
                ("evals/c/prompt.md", "Do it."),
                ("evals/c/graders/z.md", "---\ntype: tool_used\ntool: Read\nmax: 0\n---\n"),
            ],
            "contradiction",
        ),
        (
            vec![
                ("evals/c/prompt.md", "Do it."),
                ("evals/c/graders/z.md", "---\ntype: regex\npattern: x\nweight: 0\n---\n"),
            ],
            "out-of-range",
        ),
        (vec![("evals/c/prompt.md", "Do it."), ("evals/c/graders/README", "x")], "no-checks"),
        (vec![("evals/c/case.yaml", "name: a\nexecution: {prompt: p}\n"), grader], "missing-key"),
        (
            vec![
                (
                    "evals/c/case.yaml",
                    "schema_version: '1.1'\nname: a\nexecution: {prompt: p}\ncontext: {scaffold_script: ../../x.sh}\n",
                ),
                grader,
            ],
            "unreadable-file",
        ),
        (
            vec![
                (
                    "evals/c/case.yaml",
                    "schema_version: '1.1'\nname: a\nexecution: {prompt: p}\ncontext: {add_dirs: [../..]}\n",
                ),
                grader,
            ],
            "escaping-path",
        ),
    ] {
        let (_folder, loaded) = load(&files);
        let found = errors(&loaded);
        assert!(found.iter().any(|error| error.starts_with(code)), "{code}: {found:?} {files:?}");
        assert!(loaded.lowered.suite.is_none());
    }
}

#[test]
fn a_folder_without_graders_is_another_thing() {
    for files in [vec![("evals/c/prompt.md", "Do it.")], vec![("evals/c/case.yaml", "port: 80\n")]] {
        let (folder, _) = load(&files);
        let opened = EvalFolder::open(&folder.path().join("evals/c")).expect("a folder");
        assert_eq!(PluginEval.recognise_folder(&opened), FormatMatch::NO);
    }
}

#[test]
fn a_model_plays_the_tools_that_have_no_fixed_answer() {
    let case = case_of(&[
        ("evals/c/prompt.md", "Do it."),
        ("evals/c/graders/z.md", "---\ntype: regex\npattern: x\n---\n"),
        (
            "evals/mocks/a/_server.md",
            "---\ntype: agent\ntools: [b, d, e]\nabort_when: Never abort.\n---\nA shop.\n",
        ),
        ("evals/mocks/a/b.md", "fixed\n"),
        ("evals/c/mocks/a/g.md", "---\ntype: agent\nabort_when: It is deleted.\n---\nA bin.\n"),
    ]);
    assert_eq!(case["unsupported"], Value::Null);
    let server = &case["mocks"]["servers"]["plugin_kit_a"];
    // The role of several tools is written once.
    assert_eq!(server["model"], json!({"role": "A shop."}));
    assert_eq!(server["tools"]["b"], json!({"result": "fixed"}));
    assert_eq!((&server["tools"]["d"], &server["tools"]["e"]), (&json!({}), &json!({})));
    assert_eq!(server["tools"]["g"], json!({"model": {"role": "A bin.", "fail_when": "It is deleted."}}));
    // A condition under which a call is a mistake needs the check that fails then.
    let checks = case["checks"].as_array().expect("checks");
    assert!(checks.iter().any(|check| check["mock_inputs"] == true), "{case}");
}
