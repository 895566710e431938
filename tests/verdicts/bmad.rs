//! BMad's files, and copies of a project for every format.

use super::common::Project;

/// Lists its workspace with the times of the files, and says nothing else.
const AGENT: &str = r#"
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"brief\"]}"
list=$(find . \( -type f -o -type l \) -printf '[%P@%Ts]\n' | sort | tr -d '\n')
echo "{\"type\":\"text\",\"text\":\"$list\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const EVALS: &str = r#"{"skill_name": "brief", "evals": [
    {"id": "A1", "prompt": "Run headless. Write a brief.", "expectations": ["brief.md exists"]}
]}"#;

/// A project with the skill, an agent of its own, and these files.
fn project(files: &[(&str, &str)]) -> Project {
    let project = Project::new(&[
        (
            "skills/brief/SKILL.md",
            "---\nname: brief\ndescription: Writes briefs. Use for briefs.\n---\nDo.\n",
        ),
        ("agent.sh", AGENT),
    ]);
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

/// Runs a suite without a judge; gives the notes of the run and the paths in the workspace with their times.
fn staged(project: &Project, suite: &str) -> (String, Vec<String>) {
    let ran = project.run(&["run", suite, "--agent", "own", "--no-judge", "--no-cache"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    let run = project.run(&["show", "latest"]).exits(0).stdout;
    assert!(run.contains("record: "), "{run}");
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs");
    let latest = runs.flatten().map(|entry| entry.path()).max().expect("a run");
    let mut trials = std::fs::read_dir(latest.join("trials")).expect("trials").flatten();
    let trial = trials.next().expect("a trial").path();
    let text = std::fs::read_to_string(trial.join("output.txt")).unwrap_or_default();
    let found = text.split(['[', ']']).filter(|part| part.contains('@')).map(str::to_owned).collect();
    (ran.stderr, found)
}

fn names(found: &[String]) -> Vec<&str> {
    found.iter().map(|entry| entry.split('@').next().unwrap_or_default()).collect()
}

#[test]
fn a_skill_is_not_failed_for_files_that_git_ignores() {
    for (suite, evals) in [
        ("evals/brief/evals.json", EVALS),
        (
            "evals/own.practicum.yaml",
            "practicum: 1\nskill: ../skills/brief\nworkspace: project\ncases:\n  - { id: a, prompt: go, checks: [{ contains: x }] }\n",
        ),
    ] {
        let project = project(&[
            (suite, evals),
            (".gitignore", "_bmad/\n*.log\n"),
            ("_bmad/bmm/config.yaml", "a"),
            ("run.log", "a"),
            ("src/target/notes.md", "a"),
            ("dist/page.html", "a"),
            // None of these is the agent's to see.
            (".git/config", "a"),
            (".env", "a"),
            (".env.example", "a"),
            ("certs/Server.PEM", "a"),
            (".npmrc", "//r/:_authToken=a"),
            (".ssh/config", "a"),
            ("deploy", "-----BEGIN RSA PRIVATE KEY-----\n"),
            ("reports/eval-runs/1/grading.json", "a"),
            ("app/Cargo.toml", "a"),
            ("app/target/debug/app", "a"),
            ("node_modules/a/index.js", "a"),
        ]);
        let (notes, found) = staged(&project, suite);
        assert_eq!(
            names(&found),
            [
                ".agents/skills/brief/SKILL.md",
                ".gitignore",
                "_bmad/bmm/config.yaml",
                "agent.sh",
                "app/Cargo.toml",
                "dist/page.html",
                "practicum.toml",
                "run.log",
                "src/target/notes.md",
            ],
            "{suite}"
        );
        let message =
            "6 files or folders of credentials (.env, .env.example, .npmrc, .ssh, certs/Server.PEM, …)";
        for part in ["(.git)", "(evals)", "(reports/eval-runs)", message, "(app/target, node_modules)"] {
            assert!(notes.contains(part), "{part} is named: {notes}");
        }
        let stored = project.run(&["report", "latest", "--format", "md"]).exits(0).stdout;
        assert!(stored.contains("not copied from the project"), "{stored}");
    }
}

#[test]
fn a_copy_is_not_newer_than_its_original() {
    let project = project(&[("evals/brief/evals.json", EVALS), ("src/old.c", "a")]);
    project.write("evals/brief/setup/_bmad/config.yaml", "a");
    for path in ["src/old.c", "evals/brief/setup/_bmad/config.yaml", "skills/brief/SKILL.md"] {
        let file = std::fs::File::options().write(true).open(project.path().join(path)).expect("a file");
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(981_173_106);
        file.set_modified(then).expect("set");
    }
    let (_, found) = staged(&project, "evals/brief/evals.json");
    for path in ["src/old.c", "_bmad/config.yaml", ".agents/skills/brief/SKILL.md"] {
        assert!(found.contains(&format!("{path}@981173106")), "{path}: {found:?}");
    }
}

#[test]
fn a_result_is_not_reused_after_an_ignored_file_changed() {
    let project = project(&[
        (
            "evals/own.practicum.yaml",
            "practicum: 1\nskill: ../skills/brief\nworkspace: project\ncases:\n  - { id: a, prompt: go, checks: [{ contains: _bmad/new.yaml }] }\n",
        ),
        (".gitignore", "_bmad/\n"),
    ]);
    let run = ["run", "evals", "--agent", "own"];
    project.run(&run).exits(1);
    project.write("_bmad/new.yaml", "a");
    project.run(&run).exits(0);
    // What is never copied decides nothing.
    project.write(".env", "a");
    let again = project.run(&run).exits(0);
    assert!(again.stderr.contains("1 reuse"), "{}", again.stderr);
}

#[test]
fn numbered_evals_beside_triggers_are_not_skill_creator_s() {
    let numbered = EVALS.replace("\"A1\"", "1");
    for triggers in ["triggers.json", "trigger-queries.json"] {
        let project = project(&[
            ("evals/brief/evals.json", numbered.as_str()),
            (&format!("evals/brief/{triggers}"), r#"[{"query": "Write a brief", "should_trigger": true}]"#),
        ]);
        let checked = project.run(&["check", "evals", "--json"]).exits(0).json();
        let formats: Vec<&str> = checked["files"]
            .as_array()
            .expect("files")
            .iter()
            .filter_map(|file| file["dialect"].as_str())
            .collect();
        assert_eq!(formats, ["bmad", "bmad"], "{checked}");
    }
    let project = project(&[("evals/brief/evals.json", numbered.as_str())]);
    let checked = project.run(&["check", "evals", "--json"]).exits(0).json();
    assert_eq!(checked["files"][0]["dialect"], "skill-creator");
}

#[test]
fn the_overlay_of_all_skills_is_not_dropped_without_a_word() {
    let project = project(&[
        ("evals/bmm/brief/evals.json", EVALS),
        ("evals/setup/.claude/skills/helper/SKILL.md", "---\nname: helper\ndescription: Helps.\n---\n"),
        ("evals/setup/config.yaml", "of all"),
        ("evals/bmm/brief/setup/config.yaml", "of one"),
        ("evals/bmm/brief/setup/own.yaml", "a"),
        ("evals/bmm/brief/A1/setup/case.yaml", "a"),
    ]);
    let (notes, found) = staged(&project, "evals/bmm/brief/evals.json");
    for path in [".claude/skills/helper/SKILL.md", "config.yaml", "own.yaml", "case.yaml"] {
        assert!(names(&found).contains(&path), "{path}: {found:?}");
    }
    assert!(notes.contains("the overlay evals/setup is laid into the workspaces of suite brief"), "{notes}");
    let kept =
        project.run(&["run", "evals", "--agent", "own", "--no-judge", "--no-cache", "--keep-workspaces"]);
    let rooms = kept.stderr.lines().find_map(|line| line.strip_prefix("workspaces kept in "));
    let walk = ignore::WalkBuilder::new(rooms.expect("a folder")).standard_filters(false).build();
    let config =
        walk.flatten().find(|entry| entry.path().ends_with("workspace/config.yaml")).expect("staged");
    assert_eq!(std::fs::read_to_string(config.path()).expect("text"), "of one", "the own overlay wins");
    std::fs::remove_dir_all(rooms.expect("a folder")).expect("removed");
}

#[test]
fn mode_triggers_is_not_an_unknown_word() {
    let project = project(&[("evals/brief/evals.json", EVALS)]);
    for (mode, hint) in
        [("triggers", "--only activation"), ("trigger", "--only activation"), ("artifact", "--only artifact")]
    {
        let ran = project.run(&["run", "evals", "--agent", "own", "--mode", mode]).exits(2);
        assert!(ran.stderr.contains(hint), "{mode}: {}", ran.stderr);
    }
}

#[test]
fn a_fixture_does_not_replace_the_skill_under_test() {
    let with_files =
        |files: &str| EVALS.replace("\"expectations\"", &format!("\"files\": {files}, \"expectations\""));
    let old = "---\nname: brief\ndescription: Old.\n---\nOld.\n";
    for (files, message) in [
        (r#"[".claude/skills/brief/SKILL.md"]"#, "would replace the skill under test"),
        (r#"[".claude/skills"]"#, "holds the skill under test"),
        (r#"["skills/brief/SKILL.md"]"#, "is the skill under test"),
        (r#"["skills"]"#, "holds the skill under test"),
        (r#"["copies/SKILL.md"]"#, "is the skill under test"),
        (r#"["evals/brief/evals.json"]"#, "would show an agent these evals"),
        (r#"["evals/brief"]"#, "holds these evals"),
    ] {
        let project = project(&[
            ("evals/brief/evals.json", with_files(files).as_str()),
            (".claude/skills/brief/SKILL.md", old),
            ("copies/SKILL.md", old),
        ]);
        let paths = ["evals/brief/evals.json", "--skill", "skills/brief"];
        let checked = project.run(&[&["check"], &paths[..]].concat()).exits(2);
        assert!(checked.stdout.contains(message), "{files}: {}", checked.stdout);
        let run = ["--agent", "own", "--no-judge", "--json"];
        let ran = project.run(&[&["run"], &paths[..], &run[..]].concat()).exits(3);
        assert!(ran.stderr.contains(message), "{files}: {}", ran.stderr);
        assert_eq!(ran.json()["totals"]["passed"], 0, "{files}: {}", ran.stdout);
    }
    // What lies beside them is given as before.
    let project =
        project(&[("evals/brief/evals.json", with_files(r#"["docs/a.md"]"#).as_str()), ("docs/a.md", "a")]);
    let (_, found) = staged(&project, "evals/brief/evals.json");
    assert!(names(&found).contains(&"docs/a.md"), "{found:?}");
}

#[test]
fn a_pipe_a_device_or_a_link_out_is_not_given_to_an_agent() {
    let suite = |file: &str| {
        format!(
            "practicum: 1\nskill: ../skills/brief\nworkspace: empty\ncases:\n  - {{ id: a, prompt: p, files: [{file}], checks: [{{ contains: x }}] }}\n"
        )
    };
    let project = project(&[]);
    let outside = tempfile::NamedTempFile::new().expect("a file");
    project.write("evals/e.practicum.yaml", &suite("pipe"));
    let at = |name: &str| project.path().join("evals").join(name);
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo");
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", at("zero")).expect("linked");
    std::os::unix::fs::symlink(outside.path(), at("out")).expect("linked");
    let checked = project.run(&["check", "evals"]).exits(2).stdout;
    assert!(checked.contains("neither a regular file nor a folder"), "{checked}");
    let ran = project.run(&["run", "evals", "--agent", "own"]).exits(2);
    assert!(ran.stderr.contains("neither a regular file nor a folder"), "{}", ran.stderr);
    for name in ["zero", "out"] {
        project.write("evals/e.practicum.yaml", &suite(name));
        let checked = project.run(&["check", "evals"]).exits(2).stdout;
        assert!(checked.contains("is a link that leads out of the project"), "{name}: {checked}");
        project.run(&["run", "evals", "--agent", "own"]).exits(2);
    }
}

/// Such a file was read as skill-creator's and scored by its `expected_output`, which BMad does not score.
#[test]
fn an_expected_output_beside_triggers_is_not_scored_as_another_format_would() {
    let evals =
        r#"{"skill_name": "gull", "evals": [{"id": "A1", "prompt": "p", "expected_output": "A brief."}]}"#;
    let skill = "---\nname: gull\ndescription: Speaks. Use when asked to.\n---\nkee-ow\n";
    let project = Project::new(&[
        ("skills/gull/SKILL.md", skill),
        ("evals/gull/evals.json", evals),
        ("evals/gull/triggers.json", r#"[{"query": "q", "should_trigger": true}]"#),
    ]);
    let checked = project.run(&["check", "evals/gull/evals.json", "--json"]).json();
    assert_eq!(checked["files"][0]["dialect"], "bmad", "{checked}");
    // Beside no triggers, and in skill-creator's own place, it is still skill-creator's.
    project.write("evals/other/evals.json", evals);
    project.write("skills/gull/evals/evals.json", evals);
    project.write("skills/gull/evals/triggers.json", "[]");
    for path in ["evals/other/evals.json", "skills/gull/evals/evals.json"] {
        let checked = project.run(&["check", path, "--json"]).json();
        assert_eq!(checked["files"][0]["dialect"], "skill-creator", "{checked}");
    }
}

/// Crashes in two of three runs, after it has activated the skill.
const CRASHING_AGENT: &str = r#"
skill=$(ls .agents/skills | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
runs=$(cat "$0.runs" 2>/dev/null || echo 0); echo $((runs + 1)) > "$0.runs"
if [ "$runs" != 0 ]; then echo "{\"type\":\"skill\",\"name\":\"$skill\"}"; exit 3; fi
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

#[test]
fn an_activation_before_a_crash_is_not_counted_in_one_place_and_not_in_another() {
    for (wanted, code, row, counts, outcomes) in [
        (false, 1, "activated 2/3", "0 tp 2 fp 1 tn 0 fn", ["tn", "fp", "fp"]),
        (true, 3, "activated 0/1", "0 tp 0 fp 0 tn 1 fn, 2 cannot tell", ["fn", "error", "error"]),
    ] {
        let triggers = format!(r#"[{{"query": "Tell me more", "should_trigger": {wanted}}}]"#);
        let project = project(&[("agent.sh", CRASHING_AGENT), ("evals/brief/triggers.json", &triggers)]);
        let words = ["run", "skills/brief", "--agent", "own", "--no-probe", "--jobs", "1"];
        let ran = project.run(&words).exits(code);
        assert!(ran.stdout.contains(row) && ran.stdout.contains(counts), "{wanted}: {}", ran.stdout);
        let report = project.run(&["report", "--format", "activation"]).exits(0).json();
        let results = report["results"].as_array().expect("results").iter();
        let found: Vec<&str> = results.map(|run| run["outcome"].as_str().expect("an outcome")).collect();
        assert_eq!(found, outcomes, "{wanted}");
        let fired: u64 = outcomes.iter().filter(|outcome| **outcome == "fp").count() as u64;
        let summary = std::fs::read_to_string(project.only_run().join("summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        assert_eq!(summary["cases"][0]["fired"]["yes"], fired, "{wanted}: {summary:#}");
        assert_eq!(summary["activation"]["fp"], fired, "{wanted}: {summary:#}");
        let rows = project.run(&["report", "--format", "csv"]).exits(0).stdout;
        assert_eq!(rows.matches("must_not,true,fp").count() as u64, fired, "{wanted}: {rows}");
    }
}

/// One more key made skill-creator's of the file, with another workspace and another time limit.
#[test]
fn assertions_beside_expectations_do_not_make_a_file_of_bmad_another_format_s() {
    let evals = EVALS.replace(
        r#""expectations""#,
        r#""assertions": [{"name": "says", "type": "contains", "value": "brief"}], "expectations""#,
    );
    for beside in [
        ("evals/brief/triggers.json", r#"[{"query": "q", "should_trigger": true}]"#),
        ("evals/brief/setup/a.md", "a"),
    ] {
        let project = project(&[("evals/brief/evals.json", &evals), beside]);
        let listed = project.run(&["check", "evals/brief/evals.json", "--json"]).exits(0).json();
        assert_eq!(listed["files"][0]["dialect"], "bmad", "{listed}");
        let native = project.run(&["convert", "evals/brief/evals.json", "--to", "native"]);
        let said = native.stdout;
        assert!(
            said.contains("contains: brief") && said.contains("brief.md exists"),
            "{said}{}",
            native.stderr
        );
    }
}

/// Activates the skill in the first run if it is called `$1` there, and crashes in the two after it.
const CRASHING_LATER_AGENT: &str = r#"
skill=$(ls .agents/skills | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
runs=$(cat "$0.runs" 2>/dev/null || echo 0); echo $((runs + 1)) > "$0.runs"
if [ "$runs" != 0 ]; then exit 3; fi
case "$1" in *brief*) echo "{\"type\":\"skill\",\"name\":\"$skill\"}";; esac
echo '{"type":"text","text":"Done."}'
echo '{"type":"end","ending":"finished"}'
"#;

/// One run that went well beside two without an answer was shown as a case that passes, under an open gate.
#[test]
fn a_query_that_its_missing_runs_could_fail_is_not_shown_as_passed() {
    for (query, wanted) in [("write a brief", true), ("tell the time", false)] {
        let triggers = format!(r#"[{{"query": "{query}", "should_trigger": {wanted}}}]"#);
        let project =
            project(&[("agent.sh", CRASHING_LATER_AGENT), ("evals/brief/triggers.json", &triggers)]);
        let words = ["run", "skills/brief", "--agent", "own", "--no-probe", "--jobs", "1", "--retries", "0"];
        let ran = project.run(&words).exits(3);
        assert!(ran.stdout.contains("1 of 3 trials passed, 2 not scored"), "{query}: {}", ran.stdout);
        assert!(ran.stdout.contains("0 of 1 case passes by its rate"), "{query}: {}", ran.stdout);
        assert!(!ran.stdout.contains('✓'), "{query}: {}", ran.stdout);
        let report = project.run(&["report", "--format", "md"]).exits(0).stdout;
        assert!(!report.contains("The case passes"), "{query}: {report}");
    }
}

/// Only an event of its own counted, so a query that must not activate the skill passed.
#[test]
fn a_call_of_the_skill_tool_is_not_overlooked_for_want_of_an_event() {
    let agent = r#"
skill=$(ls .agents/skills | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
echo "{\"type\":\"tool\",\"id\":\"1\",\"name\":\"TOOL\",\"input\":{\"KEY\":\"VALUE\"}}"
echo '{"type":"tool_result","id":"1","ok":OK,"content":"Do."}'
echo '{"type":"end","ending":"finished"}'
"#;
    let file = ".agents/skills/$skill/SKILL.md";
    for (tool, key, value, ok, wanted, code) in [
        ("Skill", "skill", "$skill", true, false, 1),
        ("Skill", "skill", "$skill", true, true, 0),
        ("Skill", "skill", "$skill", false, false, 0),
        ("Skill", "skill", "$skill", false, true, 1),
        ("Skill", "skill", "other", true, true, 1),
        // As the other known agents call their tools.
        ("skill", "name", "$skill", true, false, 1),
        ("activate_skill", "name", "$skill", true, false, 1),
        ("read", "filePath", file, true, false, 1),
        ("read_file", "absolute_path", file, true, false, 1),
        ("read_file", "path", "README.md", true, false, 0),
    ] {
        let triggers = format!(r#"[{{"query": "Tell me more", "should_trigger": {wanted}}}]"#);
        let agent = agent.replace("TOOL", tool).replace("KEY", key).replace("VALUE", value);
        let agent = agent.replace("OK", &ok.to_string());
        let project = project(&[("agent.sh", &agent), ("evals/brief/triggers.json", &triggers)]);
        let ran = project.run(&["run", "skills/brief", "--agent", "own", "--no-probe"]);
        assert_eq!(ran.code, code, "{tool} {value} {ok} {wanted}: {}", ran.stdout);
    }
}
