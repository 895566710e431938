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
    let (_, files) = staged(&project, &["evals.json", "--skill", "skills/brief", "--dialect", "bmad"]);
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

/// Such keys were only a notice of `check`, so a run was green without what they ask for.
#[test]
fn criteria_or_a_limit_under_another_key_are_not_passed_over() {
    for (key, value, warned) in [
        ("criteria", r#"["It is short"]"#, true),
        ("success_criteria", r#""It is short""#, true),
        ("acceptance_criteria", r#"["It is short"]"#, true),
        ("validation", r#""It is short""#, true),
        ("timeout_seconds", "5", true),
        ("turns", r#"["Go", "Go on"]"#, true),
        ("tags", r#"["short"]"#, false),
        ("_criteria", r#"["It is short"]"#, false),
    ] {
        let evals = EVALS.replace("\"expectations\"", &format!("\"{key}\": {value}, \"expectations\""));
        let project = project(&[("evals/brief/evals.json", &evals)]);
        let ran = project.run(&["run", "skills/brief", "--agent", "own", "--no-judge"]);
        let told =
            format!("an eval has a key \"{key}\" that is not read, so nothing checks or does what it says");
        assert_eq!(ran.stderr.contains(&told), warned, "{key}: {}", ran.stderr);
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

#[test]
fn evals_without_expectations_beside_overlays_are_not_skill_creator_s() {
    let evals = r#"{"evals": [{"id": 1, "prompt": "Write it.", "expected_output": "A short brief."}]}"#;
    for (overlay, expected) in [
        ("evals/brief/setup/a.md", "bmad"),
        ("evals/brief/1/setup/a.md", "bmad"),
        ("evals/setup/a.md", "bmad"),
        ("evals/brief/files/a.md", "skill-creator"),
    ] {
        let project = project(&[("evals/brief/evals.json", evals), (overlay, "a")]);
        let checked = project.run(&["check", "evals/brief/evals.json", "--json"]).json();
        assert_eq!(checked["files"][0]["dialect"], expected, "{overlay}: {checked}");
    }
}

const OTHER: &str = r#"{"evals": [{"id": "Z", "prompt": "Distil it.", "expectations": ["It is shorter"]}]}"#;

#[test]
fn an_overlay_does_not_vanish_because_a_file_in_it_is_called_like_evals() {
    for name in ["evals.json", "cases.json", "triggers.json"] {
        let path = format!("evals/setup/{name}");
        let files = [("evals/brief/evals.json", EVALS), ("evals/setup/base.md", "base"), (&path, OTHER)];
        let (said, staged) = staged(&project(&files), &["skills/brief"]);
        assert!(staged.contains("[base.md]") && staged.contains(&format!("[{name}]")), "{name}: {staged}");
        assert!(said.contains("the overlay evals/setup is laid into the workspaces"), "{name}: {said}");
        // What is staged is not said to be left out.
        assert!(
            said.contains(&format!(
                "1 eval file in a folder that a case gives to agents is staged: evals/setup/{name}"
            )),
            "{name}: {said}"
        );
        assert!(!said.contains("eval file beside those of this run"), "{name}: {said}");
    }
    // The evals of a skill that is called setup are no overlay.
    let skill = SKILL.replace("brief", "setup");
    let project = project(&[
        ("evals/brief/evals.json", EVALS),
        ("evals/setup/evals.json", OTHER),
        ("skills/setup/SKILL.md", &skill),
    ]);
    let (said, staged) = staged(&project, &["skills/brief"]);
    assert!(!staged.contains("evals.json") && !said.contains("the overlay"), "{said}{staged}");
}

#[test]
fn evals_that_are_staged_from_an_overlay_are_not_said_to_be_left_out() {
    let native = "practicum: 1\nskill: skills/brief\nrun: { agents: [own] }\ncases:\n  - { id: x, prompt: Go on, overlays: [more], checks: [{ contains: '[' }] }\n";
    let project = project(&[("e.practicum.yaml", native), ("more/odd.json", OTHER), ("more/a.md", "a")]);
    let (said, staged) = staged(&project, &["e.practicum.yaml"]);
    // The overlay lies in the project, whose copy has no evals.
    assert!(staged.contains("[odd.json]") && !staged.contains("[more/odd.json]"), "{staged}");
    assert!(!said.contains("are not staged") && !said.contains("is not staged"), "{said}");
    assert!(said.contains("gives to agents is staged: more/odd.json"), "{said}");
}

#[test]
fn credentials_in_the_skill_or_an_overlay_do_not_reach_an_agent() {
    let project = project(&[
        ("evals/brief/evals.json", EVALS),
        ("skills/brief/.env", "KEY=1"),
        ("skills/brief/scripts/id_rsa", "key"),
        ("evals/setup/.env.local", "KEY=1"),
        ("evals/brief/setup/server.pem", "key"),
        ("evals/brief/A1/setup/conf/.npmrc", "//r/:_authToken=a"),
        ("evals/brief/A1/setup/ok.md", "ok"),
    ]);
    let (said, staged) = staged(&project, &["skills/brief"]);
    assert!(staged.contains("[ok.md]"), "{staged}");
    for secret in [".env", "id_rsa", "server.pem", ".npmrc"] {
        assert!(!staged.contains(secret), "{secret}: {staged}");
    }
    assert!(said.contains("5 files or folders of credentials are not staged"), "{said}");
}

/// Copies of the evals in other formats, of which none is called like evals.
#[test]
fn a_copy_of_the_evals_in_another_format_does_not_show_an_agent_the_answers() {
    let yaml = "skill_name: brief\nevals:\n- id: A1\n  prompt: >-\n    Run headless. Write\n    a brief.\n  expectations:\n  - The file brief.md exists\n";
    let line = r#"{"id": "A1", "prompt": "Run headless. Write a brief.", "expectations": ["The file brief.md exists"]}"#;
    let large = EVALS.replacen('{', &format!("{{\"notes\": \"{}\", ", "x".repeat(2 << 20)), 1);
    let other_large = OTHER.replacen('{', &format!("{{\"notes\": \"{}\", ", "x".repeat(2 << 20)), 1);
    let copies: [(&str, &str); 10] = [
        ("docs/a.jsonl", &format!("{{\"id\": 0}}\n{line}\n")),
        ("docs/b.yaml", yaml),
        ("docs/c.md", &format!("# Evals\n\n```json\n{EVALS}\n```\n")),
        ("docs/d.md", &format!("# Evals\n\n```yaml\n{yaml}```\n")),
        (
            "docs/e.md",
            "## A1\n\n> Run *headless*.\n> Write a brief.\n\n- The file `brief.md` exists\n\n## A2\n\n> Shorten it.\n\n- It has one page\n",
        ),
        (
            "docs/f.csv",
            "id,prompt,wanted\nA1,\"Run headless. Write a brief.\",The file brief.md exists\nA2,Shorten it.,It has one page\n",
        ),
        ("docs/g.data", &large),
        ("docs/h.data", &other_large),
        ("skills/brief/references/i.md", &format!("~~~\n{EVALS}\n~~~\n")),
        ("docs/j.yaml", "- query: Write me one\n  should_trigger: true\n"),
    ];
    let project = project(&copies);
    let second = r#"]}, {"id": "A2", "prompt": "Shorten it.", "expectations": ["It has one page"]}"#;
    for (path, text) in [
        ("evals/brief/evals.json", EVALS.replacen("]}", second, 1).as_str()),
        // Only a question, only an answer, an example for others, and data.
        ("docs/keep-1.md", "You may say: Run headless. Write a brief."),
        ("docs/keep-2.md", "In the end the file brief.md exists."),
        ("skills/brief/references/keep-3.md", &format!("```json\n{OTHER}\n```\n")),
        ("docs/keep-4.jsonl", "{\"prompt\": \"a\"}\n{\"answer\": \"b\"}\n"),
        ("docs/keep-5.yaml", "jobs:\n  prompt: a\n  rubric: b\n"),
        ("packed/k.json", EVALS),
        ("packed/l.yaml", yaml),
        ("packed/keep-6.txt", "nothing"),
    ] {
        project.write(path, text);
    }
    let pack = "gzip -r packed && tar -czf docs/m.tgz evals/brief && tar -cf docs/n.tar evals/brief";
    let packed = std::process::Command::new("sh").args(["-c", pack]).current_dir(project.path()).status();
    assert!(packed.expect("sh").success());
    let (said, files) = staged(&project, &["skills/brief"]);
    for (path, _) in copies {
        assert!(!files.contains(&format!("[{path}]")) && !files.contains("/i.md"), "{path}: {files}");
    }
    for left_out in ["k.json", "l.yaml", "m.tgz", "n.tar"] {
        assert!(!files.contains(left_out), "{left_out}: {files}");
    }
    for kept in ["keep-1", "keep-2", "keep-3", "keep-4", "keep-5", "keep-6.txt.gz"] {
        assert!(files.contains(kept), "{kept}: {files}");
    }
    assert!(said.contains("14 eval files beside those of this run are not staged"), "{said}");
}

#[test]
fn reports_that_are_packed_or_pasted_do_not_show_an_agent_the_answers() {
    let project = project(&[("evals/brief/evals.json", EVALS), ("docs/guide.md", "Guide.")]);
    let (_, first) = staged(&project, &["skills/brief"]);
    let shown = project.run(&["show", "latest", "A1"]).exits(0).stdout;
    let summary = project.run(&["report", "--format", "md"]).exits(0).stdout;
    let junit = project.run(&["report", "--format", "junit"]).exits(0).stdout;
    // A clone has no records, so that only the content tells.
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    for (path, text) in [
        ("docs/a.md", &format!("# Results\n\n```\n$ practicum show latest A1\n{shown}```\n\nThat is all.\n")),
        ("docs/b.log", &shown),
        ("packed/c.txt", &shown),
        ("packed/d.md", &summary),
        ("packed/e.xml", &junit),
    ] {
        project.write(path, text);
    }
    let packed = std::process::Command::new("gzip").arg("-r").arg(project.path().join("packed")).status();
    assert!(packed.expect("gzip").success());
    let (said, files) = staged(&project, &["skills/brief"]);
    assert_eq!(files, first, "{said}");
}
