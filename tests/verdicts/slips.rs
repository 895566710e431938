//! Slips of an author or a user that a run passed over in silence.

use crate::common::{Project, Ran, claude, path_with};

const EVAL: &str =
    "timestamp: 2025-01-15\nname: n\nprompt: p\nexpected: e\nassertions: [{type: contains, value: done}]\n";
const SKILL: &str = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\nkee-ow\n";

fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(files);
    let agent = "[agents.own]\ncommand = [\"/bin/bash\", \"-c\", \"ls .agents/skills; echo done\"]\n";
    project.write("practicum.toml", &format!("sandbox = \"off\"\nagent = \"own\"\n{agent}"));
    project
}

/// A setup that never ran, a time limit that never held: no message said so.
#[test]
fn a_misspelt_key_is_not_passed_over_in_a_run() {
    let bmad = r#"{"skill_name": "gull", "evals": [{"id": "A", "prompt": "p", "expectations": ["e"],
        "timeot": 5, "_timeot": 1}]}"#;
    let creator = r#"{"skill_name": "gull", "evals": [{"id": 1, "prompt": "p", "expectation": ["x"],
        "assertions": [{"name": "n", "type": "contains", "value": "done", "expct": true}]}]}"#;
    let writing = r#"{"version": "1.0", "skill": "gull", "cases": [{"id": "a", "prompt": "p", "fils": [],
        "expectations": [{"criterion": "c", "description": "d", "require": false, "required": true}]}]}"#;
    let spec = r#"{"skill_name": "gull", "test_arg": "x", "assertions":
        [{"id": "a", "type": "contains", "needle": "done"}]}"#;
    let tests = r#"{"name": "s", "run_per_case": 1, "skills": [{"name": "gull", "plugin": "p", "test_cases":
        [{"prompt": "p", "expectation": "must_activate", "rationle": "r"}]}]}"#;
    let triggers = r#"[{"query": "q", "should_trigger": true, "ID": "x"}]"#;
    for (path, text, wrong, meant) in [
        ("evals/a.yaml", format!("{EVAL}set_up: 'exit 1'\n"), "set_up", "setup"),
        ("evals/a.yaml", format!("{EVAL}tear-down: 'exit 1'\n"), "tear-down", "teardown"),
        ("gull/evals/evals.json", bmad.to_owned(), "timeot", "timeout"),
        ("gull/evals/evals.json", creator.to_owned(), "expectation", "expectations"),
        ("gull/evals/evals.json", writing.to_owned(), "fils", "files"),
        ("gull/SKILL.eval.json", spec.to_owned(), "test_arg", "test_args"),
        ("evals/suite.json", tests.to_owned(), "run_per_case", "runs_per_case"),
        ("evals/suite.json", tests.to_owned(), "rationle", "rationale"),
        ("gull/evals/triggers.json", triggers.to_owned(), "ID", "id"),
    ] {
        let project = project(&[("gull/SKILL.md", SKILL), (path, &text)]);
        let checked = project.run(&["check", path, "--json"]).json();
        let problems = checked["files"][0]["problems"].as_array().expect("problems");
        let said = problems.iter().find(|problem| {
            problem["code"] == "unknown-key"
                && problem["message"].as_str().is_some_and(|text| text.contains(&format!("\"{wrong}\"")))
        });
        let said = said.unwrap_or_else(|| panic!("{wrong}: {checked:#}"));
        assert_eq!(said["severity"], "warning", "{wrong}: {said}");
        assert_eq!(said["help"], format!("did you mean \"{meant}\"?"));
        assert!(!checked.to_string().contains("\\\"_timeot\\\""), "a note to oneself: {checked}");
        let ran = project.run(&["run", path, "--dry-run"]);
        assert!(ran.stderr.contains(&format!("did you mean \"{meant}\"")), "{wrong}: {}", ran.stderr);
    }
    // A key that is like no other is kept, and only `check` says so.
    let project = project(&[("evals/a.yaml", &format!("{EVAL}ticket: 17\n"))]);
    let checked = project.run(&["check", "evals", "--json"]).exits(0).json();
    assert_eq!(checked["files"][0]["problems"][0]["severity"], "notice", "{checked}");
    assert!(!project.run(&["run", "evals", "--dry-run"]).stderr.contains("ticket"));
}

/// `run evals skills/gull` ran the evals without the skill.
#[test]
fn a_skill_beside_the_evals_is_not_ignored() {
    let project = project(&[("skills/gull/SKILL.md", SKILL), ("evals/a.yaml", EVAL)]);
    let ran = project.run(&["run", "evals", "skills/gull", "--repeat", "1"]).exits(0);
    assert!(ran.stderr.contains("it is the skill under test"), "{}", ran.stderr);
    let output = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten().next();
    let said = std::fs::read_to_string(output.expect("a trial").path().join("output.txt")).expect("output");
    assert!(said.contains("gull"), "it was staged: {said}");
    // Two skills for the same evals are refused, and so is a path that leads to nothing.
    project.write("skills/tern/SKILL.md", &SKILL.replace("gull", "tern"));
    let refused = project.run(&["run", "evals", "skills/gull", "skills/tern"]).exits(2).stderr;
    assert!(refused.contains("--skill"), "{refused}");
    std::fs::create_dir(project.path().join("empty")).expect("made");
    let refused = project.run(&["run", "evals", "empty"]).exits(2).stderr;
    assert!(refused.contains("no eval files found") && refused.contains("empty"), "{refused}");
}

#[test]
fn half_an_eval_is_not_skipped() {
    for (name, text, message) in [
        ("no-expected.yaml", "name: n\nprompt: p\n", "\"expected\" is missing"),
        ("no-prompt.yml", "name: n\nexpected: e\n", "\"prompt\" is missing"),
        ("empty.yaml", "", "empty"),
        ("only-comments.yaml", "# later\n", ""),
        ("list.yaml", "- prompt: p\n  expected: e\n", "a list"),
        ("names.yaml", "- a\n- b\n", "a list"),
    ] {
        let project = project(&[("evals/good.yaml", EVAL), (&format!("evals/{name}"), text)]);
        let ran = project.run(&["run", "evals"]).exits(2);
        assert!(ran.stderr.contains(name) && ran.stderr.contains(message), "{name}: {}", ran.stderr);
        project.run(&["check", "evals"]).exits(2);
    }
}

/// A folder of another tool's files beside Skillet's stays as it is.
#[test]
fn files_of_other_tools_are_no_half_evals() {
    let other = "- description: d\n  vars:\n    prompt: p\n";
    let project = project(&[
        ("all/skillet/evals/good.yaml", EVAL),
        ("all/skillet/more/half.yaml", "name: n\nprompt: p\n"),
        ("all/other/tests/a.yaml", other),
        ("all/other/config.yaml", "prompt: p\nmodel: m\n"),
    ]);
    let refused = project.run(&["check", "all"]).exits(2).stdout;
    assert!(refused.contains("half.yaml") && !refused.contains("config.yaml"), "{refused}");
    std::fs::remove_dir_all(project.path().join("all/skillet/more")).expect("removed");
    project.run(&["check", "all"]).exits(0);
}

#[test]
fn what_is_skipped_in_a_folder_is_counted_and_named() {
    let project = project(&[
        ("evals/good.yaml", EVAL),
        ("evals/fixtures/config.yaml", "port: 80\n"),
        ("evals/fixtures/names.yaml", "- a\n"),
        ("evals/node_modules/x/evals.json", "{}"),
        ("evals/local/mine.yaml", EVAL),
        (".gitignore", "local/\n"),
    ]);
    let ran = project.run(&["run", "evals", "--repeat", "1"]).exits(0);
    assert!(ran.stderr.contains("note: skipped 4 files: "), "{}", ran.stderr);
    for name in ["config.yaml", "names.yaml", "node_modules/x/evals.json", "local/mine.yaml"] {
        assert!(ran.stderr.contains(name), "{name}: {}", ran.stderr);
    }
    let checked = project.run(&["check", "evals"]).exits(0);
    assert!(checked.stderr.contains("skipped 4 files"), "{}", checked.stderr);
}

/// A folder that git ignores was searched in vain when it was named.
#[test]
fn an_ignored_folder_that_is_named_is_searched() {
    let project = project(&[
        ("target/evals/a.yaml", EVAL),
        ("node_modules/pkg/b.yaml", EVAL),
        ("local/c.yaml", EVAL),
        ("private/d.yaml", EVAL),
        (".gitignore", "local/\nprivate\n"),
    ]);
    for path in
        ["target", "target/evals", "node_modules", "node_modules/pkg", "local", "private", "local/c.yaml"]
    {
        project.run(&["run", path, "--repeat", "1", "-q"]).exits(0);
    }
    let nothing = project.run(&["run", "."]).exits(2).stderr;
    assert!(nothing.contains("ignored") && nothing.contains("local/c.yaml"), "{nothing}");
    // A folder of which git ignores every file and that is none itself: what was skipped is listed.
    project.write(".gitignore", "/target/evals/*.yaml\n");
    let nothing = project.run(&["run", "target/evals"]).exits(2).stderr;
    assert!(nothing.contains("ignored") && nothing.contains("target/evals/a.yaml"), "{nothing}");
}

#[test]
fn evals_behind_links_and_other_endings_are_not_passed_over_in_silence() {
    let eval = |expected: &str| {
        format!(
            "timestamp: 2025-01-15T10:30:00Z\nname: n\nprompt: p\nexpected: {expected}\nassertions: [{{type: contains, value: {expected}}}]\n"
        )
    };
    let project = Project::new(&[
        ("sk/a.yaml", &eval("done")),
        ("sk/c.YAML", &eval("never")),
        ("real/d.yaml", &eval("never")),
    ]);
    project.write("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/echo\", \"done\"]\n");
    std::os::unix::fs::symlink("../real", project.path().join("sk/linked")).expect("a link");
    std::os::unix::fs::symlink("nowhere.yaml", project.path().join("sk/gone.yaml")).expect("a link");
    let run = ["run", "sk", "--agent", "own", "--repeat", "1"];
    let refused = project.run(&run).exits(2).stderr;
    assert!(refused.contains("sk/gone.yaml"), "{refused}");
    std::fs::remove_file(project.path().join("sk/gone.yaml")).expect("removed");
    let ran = project.run(&run).exits(1);
    assert!(ran.stdout.contains("1 of 3 trials passed"), "{}", ran.stdout);
}

/// The problems that `check` finds in a file, as "severity: message (help)".
fn problems(path: &str, text: &str) -> (Project, Vec<String>) {
    let project =
        project(&[("gull/SKILL.md", SKILL), ("plugins/p/skills/gull/SKILL.md", SKILL), (path, text)]);
    let checked = project.run(&["check", path, "--json"]).json();
    let found = checked["files"][0]["problems"].as_array().expect("problems").iter().map(|problem| {
        let word = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {} ({})", word("severity"), word("message"), word("help"))
    });
    let found = found.collect();
    (project, found)
}

/// A suite of skill-test with these keys in its only skill, in its only case, and at the top.
fn skill_test(in_skill: &str, in_case: &str, at_top: &str) -> String {
    format!(
        r#"{{"name": "s", "skills": [{{"name": "gull", "plugin": "p", "test_cases":
            [{{"prompt": "p", "expectation": "must_activate"{in_case}}}]{in_skill}}}]{at_top}}}"#
    )
}

/// Negative cases stood under a key that nobody reads, and the run was green without them.
#[test]
fn cases_under_an_unknown_key_are_not_lost_in_silence() {
    let list = r#"[{"prompt": "x", "expectation": "should_not_activate"}, {"query": "y"}]"#;
    let mut files = Vec::new();
    for key in ["test_case", "cases", "tests", "anti_cases", "negative_test_cases"] {
        files.push((key, "suite.json", skill_test(&format!(r#", "{key}": {list}"#), "", ""), "2 cases"));
    }
    for key in ["tests", "negatives", "acceptable_cases", "edge_cases"] {
        files.push((key, "suite.json", skill_test("", "", &format!(r#", "{key}": {list}"#)), "2 cases"));
    }
    let nested = format!(r#", "more": {{"easy": {list}, "hard": {list}}}"#);
    files.push(("more", "suite.json", skill_test("", "", &nested), "4 cases"));
    for key in ["negative_cases", "negative_evals"] {
        let evals = format!(
            r#"{{"skill_name": "gull", "evals": [{{"id": 1, "prompt": "p", "assertions": ["a"]}}], "{key}": {list}}}"#
        );
        files.push((key, "gull/evals/evals.json", evals, "2 cases"));
    }
    files.push((
        "negative_prompts",
        "suite.json",
        skill_test("", "", r#", "negative_prompts": ["x"]"#),
        "1 case",
    ));
    for (key, path, text, count) in files {
        let (project, found) = problems(path, &text);
        let severity = if path == "suite.json" { "error" } else { "warning" };
        let message = format!("{severity}: {count} below \"{key}\"");
        assert!(found.iter().any(|one| one.starts_with(&message)), "{key}: {found:#?}");
        let ran = project.run(&["run", path, "--dry-run"]);
        assert!(ran.stderr.contains(&format!("{count} below \"{key}\"")), "{key}: {}", ran.stderr);
    }
    let (_, found) = problems("suite.json", &skill_test("", "", &format!(r#", "negatives": {list}"#)));
    assert!(found.iter().any(|one| one.contains("did you mean \"negative_cases\"?")), "{found:#?}");
}

#[test]
fn negative_cases_of_one_skill_are_not_left_out() {
    let list = r#", "negative_cases": [{"prompt": "x", "expectation": "should_not_activate"}]"#;
    let (project, found) = problems("suite.json", &skill_test(list, "", ""));
    assert!(!found.iter().any(|one| one.contains("negative_cases")), "{found:#?}");
    let checked = project.run(&["check", "suite.json", "--json"]).json();
    assert_eq!(checked["files"][0]["cases"], 2, "{checked}");
}

#[test]
fn a_label_under_an_unknown_key_is_not_passed_over() {
    let (_, found) = problems("suite.json", &skill_test("", r#", "expected": "should_not_activate""#, ""));
    let message = found.iter().find(|one| one.contains("\"should_not_activate\" under \"expected\""));
    assert!(
        message.is_some_and(|one| one.starts_with("warning") && one.contains("\"expectation\"")),
        "{found:#?}"
    );
    // Words about other things are no labels.
    let (_, found) = problems("suite.json", &skill_test("", r#", "remark": "must be quick""#, ""));
    assert!(!found.iter().any(|one| one.starts_with("warning")), "{found:#?}");
}

#[test]
fn a_misspelt_trigger_key_is_not_explained_as_another_key() {
    let spec = r#"{"skill_name": "gull", "assertions": [{"id": "a", "type": "contains", "needle": "done"}],
        "trigger_test": {"should_trigger": ["x"]}}"#;
    let (_, found) = problems("gull/SKILL.eval.json", spec);
    assert!(found.iter().any(|one| one.contains("did you mean \"trigger_tests\"?")), "{found:#?}");
    assert!(!found.iter().any(|one| one.contains("say it with")), "{found:#?}");
}

/// The agent was paid for runs that nothing could score.
#[test]
fn a_case_without_a_check_does_not_start_an_agent() {
    for text in ["{}", r#"{"skill_name": "gull"}"#, r#"{"test_args": "x"}"#] {
        let (project, found) = problems("gull/gull.eval.json", text);
        let message =
            found.iter().find(|one| one.contains("has no check")).unwrap_or_else(|| panic!("{found:#?}"));
        assert!(message.starts_with("warning") && message.contains("\"grading_criteria\""), "{message}");
        let started = project.path().join("started");
        let agent = format!("command = [\"/bin/touch\", \"{}\"]\n", started.display());
        project
            .write("practicum.toml", &format!("sandbox = \"off\"\nagent = \"own\"\n[agents.own]\n{agent}"));
        let ran = project.run(&["run", "gull/gull.eval.json"]).exits(3);
        assert!(ran.stderr.contains("it has no check"), "{}", ran.stderr);
        assert!(ran.stdout.contains("the agent was not started"), "{}", ran.stdout);
        assert!(ran.stdout.contains("it has no check; add one"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("--resume"), "{}", ran.stdout);
        assert!(!started.exists(), "an agent was started for {text}");
    }
}

const NATIVE: &str = "\
practicum: 1
skill: ../gull
workspace: empty
cases:
  - { id: first, prompt: p, checks: [{ contains: done }] }
";

fn named(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Speaks. Use when asked to.\n---\nkee-ow {more}\n")
}

/// A skill called `a/b` was staged where no agent looks for it, and one of 300 characters voided every trial.
#[test]
fn a_skill_that_no_folder_can_be_called_after_is_not_tested() {
    for name in ["a/b", "../up", &"x".repeat(300)] {
        let project = project(&[("gull/SKILL.md", &named(name, "")), ("evals/e.practicum.yaml", NATIVE)]);
        let ran = project.run(&["run", "evals", "-q"]).exits(2);
        assert!(ran.stderr.contains("cannot be the name of a folder"), "{}", ran.stderr);
        let checked = project.run(&["check", "evals"]).exits(2);
        assert!(checked.stdout.contains("cannot be the name of a folder"), "{}", checked.stdout);
        // Beside another skill it is left out, with a warning.
        project.write("rival/SKILL.md", &named(name, ""));
        project.write("gull/SKILL.md", SKILL);
        project.write("evals/e.practicum.yaml", &NATIVE.replace("skill:", "rivals: [../rival]\nskill:"));
        let ran = project.run(&["run", "evals", "-q"]).exits(0);
        assert!(ran.stderr.contains("a skill is not staged beside the others"), "{}", ran.stderr);
        assert!(!ran.stdout.contains("staged beside the skill"), "{}", ran.stdout);
    }
}

/// The second of two skills of one name replaced the first in silence.
#[test]
fn of_two_skills_with_one_name_it_is_told_which_is_staged() {
    let project = project(&[
        ("gull/SKILL.md", SKILL),
        ("one/SKILL.md", &named("same", "one")),
        ("two/SKILL.md", &named("same", "two")),
        ("copy/SKILL.md", &named("same", "one")),
        ("other/SKILL.md", &named("gull", "other")),
    ]);
    for (rivals, more, staged, left_out) in [
        ("[../one, ../two]", &[][..], "one/SKILL.md is staged", "two/SKILL.md is not"),
        ("[../one]", &["--with-skill", "two"], "two/SKILL.md is staged", "one/SKILL.md is not"),
        ("[../other]", &[], "gull/SKILL.md is staged", "other/SKILL.md is not"),
        ("[]", &["--with-skill", "other"], "gull/SKILL.md is staged", "other/SKILL.md is not"),
    ] {
        let evals = NATIVE.replace("skill:", &format!("rivals: {rivals}\nskill:"));
        project.write("evals/e.practicum.yaml", &evals);
        let ran = project.run(&[&["run", "evals", "-q"], more].concat()).exits(0);
        assert!(ran.stderr.contains(staged) && ran.stderr.contains(left_out), "{rivals}: {}", ran.stderr);
    }
    project.write("evals/e.practicum.yaml", &NATIVE.replace("skill:", "rivals: [../one, ../copy]\nskill:"));
    let ran = project.run(&["run", "evals", "-q"]).exits(0);
    assert!(!ran.stderr.contains("two skills"), "{}", ran.stderr);
}

/// Copies of one skill in two plugins were refused, although it is clear what is tested.
#[test]
fn two_listed_skills_that_hold_the_same_are_not_refused() {
    let case = r#""test_cases": [{"prompt": "p", "expectation": "must_activate"}]"#;
    let suite = format!(
        r#"{{"name": "s", "skills": [{{"name": "gull", "plugin": "p", {case}}}, {{"name": "gull", "plugin": "q", {case}}}]}}"#
    );
    let project = project(&[
        ("plugins/p/skills/gull/SKILL.md", SKILL),
        ("plugins/q/skills/gull/SKILL.md", SKILL),
        ("suite.json", &suite),
    ]);
    let checked = project.run(&["check", "suite.json"]).exits(0).stdout;
    assert!(checked.contains("two skills are called \"gull\" and hold the same"), "{checked}");
    project.write("plugins/q/skills/gull/SKILL.md", &named("gull", "otherwise"));
    let checked = project.run(&["check", "suite.json"]).exits(0).stdout;
    assert!(
        checked.contains("the one of p is staged, and the cases of the one of q are not run"),
        "{checked}"
    );
}

/// What nobody selected kept the selected case from running.
#[test]
fn what_is_not_selected_does_not_block() {
    let broken = format!(
        "{NATIVE}  - {{ id: second, promt: p, checks: [{{ contains: done }}] }}\n  - {{ id: third, prompt: p, files: \
         ['../../x'], checks: [{{ contains: done }}] }}\n"
    );
    let project = project(&[("gull/SKILL.md", SKILL), ("evals/e.practicum.yaml", &broken)]);
    for glob in ["first", "f*"] {
        let ran = project.run(&["run", "evals", "-q", "--case", glob]).exits(0);
        assert!(ran.stdout.contains("PASS  1 of 1 trial passed"), "{}", ran.stdout);
        assert!(ran.stderr.contains("warning[missing-key]"), "{}", ran.stderr);
        assert!(ran.stderr.contains("warning[escaping-path]"), "{}", ran.stderr);
    }
    for args in [&["--case", "second"][..], &["--case", "*d"], &["--only", "artifact"], &[]] {
        let ran = project.run(&[&["run", "evals", "-q"], args].concat()).exits(2);
        assert!(ran.stderr.contains("error[missing-key]"), "{args:?}: {}", ran.stderr);
    }
    // A file without any case could have held one that a pattern selects, and no other than the one that is named.
    project.write("evals/e.practicum.yaml", NATIVE);
    for empty in ["", "{}", r#"{"skill_name": "gull", "evals": []}"#] {
        project.write("other/evals.json", empty);
        for (args, code) in
            [(&["--case", "first"][..], 0), (&["--case", "f*"], 2), (&["--only", "artifact"], 2), (&[], 2)]
        {
            project.run(&[&["run", "evals", "other/evals.json", "-q"], args].concat()).exits(code);
        }
    }
}

#[test]
fn a_missing_second_skill_does_not_block_a_case_about_the_first() {
    let case =
        |prompt: &str| format!(r#""test_cases": [{{"prompt": "{prompt}", "expectation": "must_activate"}}]"#);
    let suite = format!(
        r#"{{"name": "s", "skills": [{{"name": "gull", "plugin": "p", {}}}, {{"name": "gone", "plugin": "q", {}}}]}}"#,
        case("alpha"),
        case("beta")
    );
    let project = project(&[("plugins/p/skills/gull/SKILL.md", SKILL), ("suite.json", &suite)]);
    let ran = |glob: &str| project.run(&["run", "suite.json", "-q", "--no-probe", "--case", glob]);
    let about_first = ran("gull/*").exits(3);
    assert!(about_first.stdout.contains("5 not scored"), "agents were started: {}", about_first.stdout);
    assert!(about_first.stderr.contains("warning[skill-not-found]"), "{}", about_first.stderr);
    ran("gone/*").exits(2);
    ran("g*").exits(2);
}

/// A misspelt name made a negative check pass whatever happened.
#[test]
fn a_misspelt_expected_skill_is_not_a_silent_pass() {
    let native = format!(
        "{NATIVE}  - {{ id: second, prompt: q, checks: [{{ activation: {{expect: must_not, skills: [gul]}} }}] }}\n"
    );
    let skillet = format!("{EVAL}expected_skill: gul\n");
    for (path, text, so) in [
        ("evals/e.practicum.yaml", native.as_str(), "can never fail"),
        ("sk/a.yaml", &skillet, "always fails"),
    ] {
        let (project, found) = problems(path, text);
        let message = found.iter().find(|one| one.contains("names the skill \"gul\", which is not staged"));
        assert!(
            message.is_some_and(|one| one.starts_with("warning") && one.contains(so)),
            "{path}: {found:#?}"
        );
        let ran = project.run(&["run", path, "--skill", "gull", "--dry-run"]);
        assert!(ran.stderr.contains("did you mean \"gull\"?"), "{path}: {}", ran.stderr);
    }
    let (_, found) = problems("sk/a.yaml", &skillet.replace("gul\n", "gull\n"));
    let ran = project(&[("gull/SKILL.md", SKILL), ("sk/a.yaml", &skillet.replace("gul\n", "gull\n"))])
        .run(&["run", "sk", "--skill", "gull", "--dry-run"]);
    assert!(!ran.stderr.contains("not staged"), "{} {found:#?}", ran.stderr);
}

/// Checks that hold whatever an agent does passed without a word.
#[test]
fn a_check_that_cannot_fail_is_told() {
    let check = |check: &str| NATIVE.replace("contains: done", check);
    for (text, so) in [
        (check("contains: ''"), "can never fail"),
        (check("starts_with: ''"), "can never fail"),
        (check("not_contains: ''"), "always fails"),
        (check("regex: ''"), "can never fail"),
        (check("regex: '.*'"), "can never fail"),
        (check("min_length: 0"), "cannot fail"),
        (check("tool_not_used: Bsh"), "can never fail"),
        (check("tool_not_used: {name: Bsh, args: {command: '*'}}"), "can never fail"),
    ] {
        let (project, found) = problems("evals/e.practicum.yaml", &text);
        assert!(found.iter().any(|one| one.starts_with("warning") && one.contains(so)), "{text}: {found:#?}");
        let ran = project.run(&["run", "evals", "--dry-run"]).exits(0);
        assert!(ran.stderr.contains("warning[cannot-fail]"), "{text}: {}", ran.stderr);
    }
    for tool in ["Bash", "shell", "mcp__github__create_issue", "Web*"] {
        let (_, found) = problems("evals/e.practicum.yaml", &check(&format!("tool_not_used: '{tool}'")));
        assert!(!found.iter().any(|one| one.contains("no known agent")), "{tool}: {found:#?}");
    }
    let skillet = EVAL.replace("{type: contains, value: done}", "{type: tool_not_called, value: Bsh}");
    let (_, found) = problems("sk/a.yaml", &skillet);
    assert!(found.iter().any(|one| one.contains("no known agent has a tool \"Bsh\"")), "{found:#?}");
}

#[test]
fn a_misspelt_tool_of_the_command_line_is_told() {
    let project = project(&[("gull/SKILL.md", SKILL), ("evals/e.practicum.yaml", NATIVE)]);
    let run = |tools: &str| {
        project.run(&["run", "evals", "--agent", "builtin", "--dry-run", "--tools", tools]).exits(0).stderr
    };
    let message = run("Bsh,read");
    assert!(message.contains("--tools names \"Bsh\", a tool that no known agent has"), "{message}");
    assert!(!run("bash,read").contains("no known agent"));
}

/// A skill that the model read with its shell counted as not activated: a true negative.
#[test]
fn a_skill_that_was_read_with_the_shell_is_not_unused() {
    let evals = "practicum: 1\nskill: ../gull\nworkspace: empty\ncases:\n  - { id: a, prompt: p1, activation: must_not }\n";
    let script = "practicum_script: 1\nscenarios:\n  - {when: {regex: 'p1'}, steps: [{tools: [{name: Bash, input: \
                  {command: 'cat .claude/skills/gull/SKILL.md'}}]}, 'hi']}\n";
    let project = Project::new(&[
        ("gull/SKILL.md", SKILL),
        ("evals/e.practicum.yaml", evals),
        ("script.yaml", script),
        ("practicum.toml", "sandbox = \"off\"\n"),
    ]);
    let mut command = project.practicum(&[
        "run",
        "evals",
        "--agent",
        "claude",
        "--script",
        "script.yaml",
        "--repeat",
        "1",
        "--no-probe",
        "-q",
    ]);
    command.env("PATH", path_with(&claude()));
    let ran = Ran::of(command.output().expect("practicum starts")).exits(1);
    assert!(ran.stdout.contains("read its SKILL.md with Bash"), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 fp 0 tn"), "{}", ran.stdout);
}

/// `practicum run skills/*` where one skill has no evals.
#[test]
fn evals_of_one_skill_are_not_run_with_another() {
    let spec = r#"{"skill_name": "add", "assertions": [{"id": "a", "type": "contains", "needle": "done"}]}"#;
    let tern = SKILL.replace("gull", "tern");
    let native = "practicum: 1\nskill: ..\ncases: [{ id: a, prompt: p, checks: [{ contains: done }] }]\n";
    let project = project(&[
        ("skills/gull/SKILL.md", SKILL),
        ("skills/gull/evals/e.practicum.yaml", native),
        ("skills/tern/SKILL.md", &tern),
        ("evals/a.yaml", EVAL),
        (".claude/commands/add.md", "Add."),
        (".claude/commands/add.eval.json", spec),
        (".claude/commands/remove.md", "Remove."),
    ]);
    for paths in [
        ["skills/gull", "skills/tern"],
        ["skills/tern", "skills/gull/SKILL.md"],
        [".", "skills/tern"],
        [".claude/commands/add.md", ".claude/commands/remove.md"],
    ] {
        for command in ["run", "check", "list"] {
            let refused = project.run(&[command, paths[0], paths[1]]).exits(2).stderr;
            assert!(refused.contains("is about another skill"), "{command} {paths:?}: {refused}");
        }
    }
    // Who names the skill or the file itself may run the evals of one skill with another.
    project.run(&["list", "skills/gull", "--skill", "skills/tern"]).exits(0);
    project.run(&["list", "skills/gull/evals/e.practicum.yaml", "skills/tern"]).exits(0);
    project.run(&["list", "evals", "skills/tern"]).exits(0);
    project.run(&["list", "skills"]).exits(0);
}
