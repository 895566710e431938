//! What of BMad's folders an agent is given, and which files of them are evals.

use super::common::Project;

/// Lists its workspace and says nothing else.
const AGENT: &str = r#"
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"brief\"]}"
list=$(find . \( -type f -o -type l \) -printf '[%P]\n' | sort | tr -d '\n')
echo "{\"type\":\"text\",\"text\":\"$list\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const EVALS: &str = r#"{"skill_name": "brief", "evals": [
    {"id": "A1", "prompt": "Run headless. Write a brief.", "expectations": ["The file brief.md exists"]}
]}"#;

const SKILL: &str = "---\nname: brief\ndescription: Writes briefs. Use for briefs.\n---\nDo.\n";

/// A project with the skill, an agent that lists its workspace, and these files.
fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(&[("skills/brief/SKILL.md", SKILL), ("agent.sh", AGENT)]);
    let path = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            path.display()
        ),
    );
    for (path, text) in files {
        project.write(path, text);
    }
    project
}

/// Runs without a judge; gives what was said and the files in the workspace of the first trial.
fn staged(project: &Project, words: &[&str]) -> (String, String) {
    let ran = project.run(&[&["run"], words, &["--agent", "own", "--no-judge", "--no-cache"]].concat());
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs");
    let latest = runs.flatten().map(|entry| entry.path()).max().expect("a run");
    let mut trials = std::fs::read_dir(latest.join("trials")).expect("trials").flatten();
    let trial = trials.next().expect("a trial").path();
    (ran.stderr + &ran.stdout, std::fs::read_to_string(trial.join("output.txt")).unwrap_or_default())
}

#[test]
fn records_of_other_tools_are_not_shown_to_an_agent() {
    let project = project(&[
        ("evals/brief/evals.json", EVALS),
        (".clauditor/iteration-1/brief/run-0/output.txt", "answer"),
        (".clauditor/history.jsonl", "{}"),
        (".skillet/cache/x.json", "{}"),
        ("skills/brief/.clauditor/iteration-1/assertions.json", "{}"),
        ("old-workspace/grading/a_v0_run1.json", "{}"),
        ("old-workspace/history.json", "{}"),
        ("my-workspace/notes.md", "mine"),
        ("src/a.md", "a"),
    ]);
    let (said, files) = staged(&project, &["skills/brief"]);
    assert!(files.contains("[src/a.md]") && files.contains("[my-workspace/notes.md]"), "{files}");
    for hidden in ["clauditor", "skillet", "old-workspace"] {
        assert!(!files.contains(hidden), "{files}");
    }
    assert!(
        said.contains("4 records of runs (.clauditor, .skillet, old-workspace, skills/brief/.clauditor)"),
        "{said}"
    );
}

#[test]
fn an_overlay_does_not_show_an_agent_a_copy_of_the_evals() {
    let changed = EVALS.replace("A1", "OLD").replace("\"skill_name\": \"brief\", ", "");
    let triggers = r#"[{"query": "Write me a brief", "should_trigger": true}]"#;
    for (path, text) in [
        ("evals/brief/A1/setup/copy.json", EVALS),
        ("evals/brief/setup/evals.json", EVALS),
        ("evals/brief/setup/docs/old.txt", &changed),
        ("evals/brief/setup/t.json", triggers),
    ] {
        let project = project(&[
            ("evals/brief/evals.json", EVALS),
            ("evals/brief/triggers.json", triggers),
            (path, text),
        ]);
        let ran = project.run(&["run", "skills/brief", "--only", "artifact", "--agent", "own", "--no-judge"]);
        assert_eq!(ran.code, 3, "{path}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("would show an agent these evals"), "{path}: {}", ran.stdout);
        let checked = project.run(&["check", "skills/brief"]).exits(2);
        assert!(checked.stdout.contains("unfit-file"), "{path}: {}", checked.stdout);
    }
    // The evals of another skill that an overlay brings are no answers.
    let other = r#"{"evals": [{"id": "Z", "prompt": "Distil it.", "expectations": ["It is short"]}]}"#;
    let project = project(&[
        ("evals/brief/evals.json", EVALS),
        ("evals/brief/setup/.claude/skills/distil/evals/evals.json", other),
    ]);
    project.run(&["check", "skills/brief"]).exits(0);
}

#[test]
fn a_folder_of_evals_with_another_name_is_not_shown_to_an_agent() {
    for words in [
        &["suite", "--skill", "skills/brief"] as &[&str],
        &["suite/evals.json", "--skill", "skills/brief"],
        &["skills/brief", "--evals", "suite/evals.json"],
        &["skills/brief", "--evals", "suite"],
    ] {
        let project = project(&[
            ("suite/evals.json", EVALS),
            ("suite/README.md", "A1 must say"),
            ("suite/expected/A1.md", "the answer"),
            ("suite/B2/setup/b.md", "b"),
            ("suite/setup/base.md", "base"),
            ("suite/A1/setup/own.md", "own"),
            ("docs/a.md", "a"),
        ]);
        let (said, files) = staged(&project, words);
        assert!(!files.contains("suite/"), "{words:?}: {files}");
        for given in ["[docs/a.md]", "[base.md]", "[own.md]"] {
            assert!(files.contains(given), "{words:?}: {files}");
        }
        assert!(
            said.contains("the folder suite belongs to the evals and is not staged"),
            "{words:?}: {said}"
        );
    }
    // A project is not hidden because its eval file lies at its top.
    let project = project(&[("evals.json", EVALS), ("docs/a.md", "a")]);
    let (_, files) = staged(&project, &["evals.json", "--skill", "skills/brief"]);
    assert!(files.contains("[docs/a.md]") && !files.contains("evals.json"), "{files}");
}

#[test]
fn a_skill_that_no_agent_lists_does_not_pass_by_staying_inactive() {
    let triggers = r#"[{"query": "What is the time?", "should_trigger": false}]"#;
    for (text, lacks) in [
        ("", "is empty"),
        ("Write briefs.\n", "has no frontmatter"),
        ("---\nname: brief\n---\nWrite briefs.\n", "has no description"),
        ("---\nname: brief\ndescription: ' '\n---\nWrite briefs.\n", "has no description"),
    ] {
        let project = project(&[("evals/brief/triggers.json", triggers), ("skills/brief/SKILL.md", text)]);
        let checked = project.run(&["check", "skills/brief"]).exits(0);
        assert!(checked.stdout.contains("skill-not-listed"), "{text}: {}", checked.stdout);
        let ran = project.run(&["run", "skills/brief", "--agent", "own", "--no-cache"]);
        assert_eq!(ran.code, 3, "{text}: {}{}", ran.stdout, ran.stderr);
        let told = format!("SKILL.md {lacks}, so agents do not list the skill brief");
        assert!(ran.stderr.contains(&told), "{text}: {}", ran.stderr);
        assert!(ran.stdout.contains("proves nothing"), "{text}: {}", ran.stdout);
    }
}

#[test]
fn a_key_beside_the_one_that_is_read_is_not_passed_over() {
    let evals = EVALS.replace("\"expectations\"", "\"expectation\": [\"It is short\"], \"expectations\"");
    let project = project(&[("evals/brief/evals.json", &evals)]);
    let told = "an eval has a key \"expectation\" beside \"expectations\"";
    for command in ["check", "run"] {
        let mut words = vec![command, "skills/brief"];
        if command == "run" {
            words.extend(["--agent", "own", "--no-judge"]);
        }
        let ran = project.run(&words);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains(told) && said.contains("did you mean \"expectations\"?"), "{command}: {said}");
    }
}

#[test]
fn a_key_of_an_assertion_that_is_not_read_is_told_in_a_run() {
    let project = project(&[(
        "evals/say/1.yaml",
        "timestamp: 2026-01-01T00:00:00Z\nname: say\nprompt: Go\nexpected: done\nassertions:\n  \
         - {type: contains, value: brief, negate: true}\n",
    )]);
    for words in [
        &["check", "evals/say"] as &[&str],
        &["run", "evals/say", "--skill", "skills/brief", "--agent", "own", "--no-judge"],
    ] {
        let ran = project.run(words);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("an assertion has a key \"negate\""), "{words:?}: {said}");
        assert!(said.contains("warning"), "{words:?}: {said}");
    }
}

#[test]
fn an_overlay_that_no_eval_uses_is_told() {
    let project = project(&[
        ("evals/brief/evals.json", EVALS),
        ("evals/brief/Z9/setup/z.md", "z"),
        ("evals/brief/setups/s.md", "s"),
        ("evals/brief/A1/setup", "a file"),
    ]);
    for words in
        [&["check", "skills/brief"] as &[&str], &["run", "skills/brief", "--agent", "own", "--no-judge"]]
    {
        let ran = project.run(words);
        let said = ran.stdout + &ran.stderr;
        for told in [
            "evals/brief/Z9/setup is laid into no workspace: no eval is called Z9",
            "evals/brief/setups is laid into no workspace: an overlay is called setup",
            "evals/brief/A1/setup is laid into no workspace: an overlay is a folder",
        ] {
            assert!(said.contains(told), "{words:?} {told}: {said}");
        }
    }
}

#[test]
fn a_link_of_an_overlay_that_leads_out_is_told() {
    let project = project(&[("evals/brief/evals.json", EVALS), ("evals/brief/setup/a.md", "a")]);
    std::os::unix::fs::symlink("/etc/hostname", project.path().join("evals/brief/setup/out"))
        .expect("linked");
    for words in
        [&["check", "skills/brief"] as &[&str], &["run", "skills/brief", "--agent", "own", "--no-judge"]]
    {
        let ran = project.run(words);
        let said = ran.stdout + &ran.stderr;
        assert!(
            said.contains("setup/out is a link that leads out of the overlay, to /etc/hostname"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn json_among_fixtures_and_overlays_is_not_run_as_evals() {
    let other = EVALS.replace("A1", "OTHER").replace("Write a brief", "Do something else");
    let project = project(&[
        ("evals/brief/evals.json", EVALS),
        ("evals/brief/OLD/setup/evals/evals.json", &other),
        ("evals/brief/A1/evals.json", &other),
        ("evals/brief/files/demo/evals/evals.json", &other),
    ]);
    for words in [&["list", "skills/brief"] as &[&str], &["list", "evals/brief/evals.json"]] {
        let listed = project.run(words).exits(0).stdout;
        assert!(listed.contains("A1") && !listed.contains("OTHER"), "{words:?}: {listed}");
    }
}

#[test]
fn a_broken_file_that_is_not_selected_does_not_block_the_others() {
    let project =
        project(&[("evals/brief/evals.json", EVALS), ("evals/brief/triggers.json", "[{\"query\": ")]);
    let words = ["run", "skills/brief", "--only", "artifact", "--agent", "own", "--no-judge", "--no-cache"];
    let ran = project.run(&words);
    assert!(ran.stdout.contains("A1"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("triggers.json"), "{}", ran.stderr);
}
