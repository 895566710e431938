//! Files that this program wrote are never staged and never part of a key.

use std::path::Path;

use practicum::report::{REPORTS, ReportOutput};

use crate::common::{Project, Ran};

/// Lists the files of its workspace, and names the file that contains the word that the check looks for.
const AGENT: &str = r#"
skill=$(ls .agents/skills 2>/dev/null | head -1)
echo "{\"type\":\"start\",\"schema_version\":1,\"skills\":[\"$skill\"]}"
found=$(grep -rlE 'marz''ipan' . | sort | tr '\n' ' ')
told=; if [ -n "$found" ]; then told="marz""ipan stands in $found"; fi
echo "{\"type\":\"text\",\"text\":\"$told; files: $(find . -type f | sort | tr '\n' ' ')\"}"
echo '{"type":"end","ending":"finished"}'
"#;

const EVALS: &str = "\
practicum: 1
skill: ../skills/gull
run: { agents: [own] }
cases:
  - { id: x, prompt: speak, files: [{ from: given, to: given }], checks: [{ contains: marzipan }] }
";

fn project() -> Project {
    let project = Project::new(&[
        ("skills/gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nkee-ow\n"),
        ("skills/gull/assets/notes.md", "Notes.\n"),
        ("evals/given/letter.txt", "Dear all,\n"),
        ("evals/e.practicum.yaml", EVALS),
        ("docs/guide.md", "# Guide\n\nWritten by hand; practicum tests it.\n"),
        ("data/run.json", "{\"schema_version\": 1, \"run\": \"a marathon\"}\n"),
        ("agent.sh", AGENT),
    ]);
    let agent = project.path().join("agent.sh");
    project.write(
        "practicum.toml",
        &format!(
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\ndecoder = \"practicum-jsonl\"\n",
            agent.display()
        ),
    );
    project
}

/// What the agent said of the latest run: what it found, and all files of its room.
fn said(project: &Project) -> String {
    let run = std::fs::read_dir(project.path().join(".practicum/runs")).expect("runs").flatten();
    let latest = run.map(|run| run.path()).max().expect("a run");
    let trial = std::fs::read_dir(latest.join("trials")).expect("trials").flatten().next().expect("a trial");
    std::fs::read_to_string(trial.path().join("output.txt")).expect("an output")
}

/// The agent finds what it found at first, and no trial is run again for what lies about now.
#[track_caller]
fn changes_nothing(project: &Project, said_first: &str, what: &str) {
    let ran = project.run(&["run", "evals"]).exits(1);
    assert!(ran.stderr.contains("1 reuse, 0 run"), "{what}: {}", ran.stderr);
    project.run(&["run", "evals", "--no-cache"]).exits(1);
    assert_eq!(said(project), said_first, "{what}");
}

/// A command of a shell, which makes the files that it redirects to.
fn shell(project: &Project, line: &str) -> Ran {
    let practicum = project.practicum(&[]);
    let mut shell = std::process::Command::new("/bin/sh");
    let line = line.replace("practicum ", &format!("{} ", practicum.get_program().display()));
    shell.args(["-c", &line]).current_dir(project.path()).env_clear();
    shell.envs(practicum.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ran::of(shell.output().expect("a shell"))
}

#[test]
fn an_agent_does_not_find_its_answers_in_reports_of_earlier_runs() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    assert!(!first.contains("marzipan stands"), "{first}");
    assert!(first.contains("./docs/guide.md") && first.contains("./data/run.json"), "{first}");
    let places = ["", "docs", "skills/gull", "skills/gull/assets", "evals/given", "new/below"];
    for report in REPORTS {
        for place in places {
            // Names that say nothing, because a name can be anything.
            let name = match report.output {
                ReportOutput::File(_) => Path::new(place).join(format!("{}.out", report.name)),
                ReportOutput::Folder(_) => Path::new(place).join(format!("{}-out", report.name)),
            };
            project.run(&["report", "--format", report.name, "-o", &name.to_string_lossy()]).exits(0);
        }
    }
    for (command, path) in [
        ("export latest -o", "t.out"),
        ("export latest --table checks -o", "docs/c.out"),
        ("export latest --format csv -o", "t2.out"),
        ("badge -o", "badge.out"),
        ("badge --format shields -o", "docs/shields.out"),
        ("convert evals/e.practicum.yaml --to native -o", "other.yaml"),
        ("convert evals/e.practicum.yaml --to clauditor -o", "docs/other.json"),
        ("compare latest latest --output", "compared.out"),
    ] {
        let words: Vec<&str> = command.split_whitespace().chain([path]).collect();
        project.run(&words).exits(0);
    }
    changes_nothing(&project, &first, "written");
    let ran = project.run(&["run", "evals"]).exits(1);
    assert!(ran.stderr.contains("files that practicum wrote are not staged"), "{}", ran.stderr);
    // Copies under other names, in other places.
    let root = project.path().to_owned();
    let walk = ignore::WalkBuilder::new(&root).standard_filters(false).build().flatten();
    let copied =
        walk.filter(|entry| entry.depth() == 1 && entry.file_type().is_some_and(|kind| kind.is_file()));
    let copied: Vec<_> = copied
        .map(ignore::DirEntry::into_path)
        .filter(|path| path.extension().is_some_and(|ending| ending == "out"))
        .collect();
    assert!(copied.len() > 8, "{copied:?}");
    for (number, path) in copied.iter().enumerate() {
        std::fs::copy(path, root.join(format!("docs/renamed-{number}.txt"))).expect("copied");
    }
    std::fs::rename(root.join("skill-creator-out"), root.join("skills/iteration-1")).expect("moved");
    changes_nothing(&project, &first, "copied and moved");
}

#[test]
fn a_redirected_summary_is_not_a_change_of_the_project() {
    let project = project();
    for (line, reuses) in [
        ("practicum run evals --json > summary.json", false),
        ("practicum run evals --json > summary.json 2> err.log", true),
        ("practicum run evals > all.txt 2>&1", true),
        ("practicum run evals --json 2> err.log | cat > docs/piped.json; practicum run evals", true),
        (
            "practicum run evals 2> err.log | grep -v record > docs/kept.txt; practicum run evals 2> err.log",
            true,
        ),
    ] {
        let ran = shell(&project, line);
        let message = [ran.stderr, read(&project, "err.log"), read(&project, "all.txt")].concat();
        assert!(!reuses || message.contains("1 reuse, 0 run"), "{line}: {message}");
        assert!(!said(&project).contains("summary.json"), "{line}");
        for seen in ["all.txt", "err.log"] {
            let _ = std::fs::remove_file(project.path().join(seen));
        }
    }
    // Killed before it could write anything, a run leaves an empty file.
    shell(&project, "practicum run evals --no-cache --json > summary.json; : > summary.json");
    assert!(project.run(&["run", "evals"]).exits(1).stderr.contains("1 reuse, 0 run"));
}

fn read(project: &Project, path: &str) -> String {
    std::fs::read_to_string(project.path().join(path)).unwrap_or_default()
}

#[test]
fn a_cassette_under_any_name_is_not_staged() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    project.write(
        "docs/tape.txt",
        "{\"line\":\"cassette\",\"schema_version\":1,\"practicum\":\"0.1.0\",\"recorded\":\"now\"}\n{\"line\":\"text\",\"digest\":\"d\",\"text\":\"marzipan\"}\n",
    );
    project.write("gull-workspace/v1/skill/SKILL.md", "marzipan");
    project.write("skills/gull-workspace/history.json", "{\"versions\": []}");
    project.write("skills/gull-workspace/grading/x.json", "{\"why\": \"marzipan\"}");
    std::fs::remove_dir_all(project.path().join("gull-workspace")).expect("removed");
    changes_nothing(&project, &first, "a cassette and a workspace");
}

#[test]
fn evals_of_another_suite_are_not_staged_with_the_project() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    project.write("docs/more.yaml", EVALS);
    project.write("docs/more.json", "{\"practicum\": 1, \"cases\": [{\"id\": \"marzipan\"}]}");
    changes_nothing(&project, &first, "evals of other names");
    let ran = project.run(&["run", "evals"]).exits(1);
    assert!(
        ran.stderr.contains("2 eval files beside those of this run are not staged: docs/more.json"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_changed_file_that_git_ignores_is_not_passed_over_in_a_given_folder() {
    let project = project();
    project.write(".gitignore", "*.log\n");
    project.write("evals/given/app.log", "one\n");
    project.run(&["run", "evals"]).exits(1);
    assert!(said(&project).contains("./given/app.log"));
    project.write("evals/given/app.log", "one, two\n");
    let ran = project.run(&["run", "evals"]).exits(1);
    assert!(!ran.stderr.contains("reuse"), "{}", ran.stderr);
}

#[test]
fn the_version_that_was_only_compared_with_is_in_no_trend() {
    let project = project();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let mut command = std::process::Command::new("git");
        let done = command.args(identity).args(args).current_dir(project.path()).output().expect("git");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "first"]);
    project.write("skills/gull/SKILL.md", "---\nname: gull\ndescription: Speaks.\n---\n\nkee\n");
    project.run(&["compare", "evals", "--against", "HEAD"]);
    let points = |more: &[&str]| {
        let trend = project.run(&[&["trend", "--json"], more].concat()).exits(0).json();
        trend["points"].as_array().expect("points").len()
    };
    assert_eq!((points(&[]), points(&["--earlier-versions"])), (1, 2));
}

/// Files of every format with the answer in them, in the skill and in the project, under names that say nothing.
#[test]
fn an_agent_does_not_find_its_answers_in_evals_of_other_formats() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    let skillet = "timestamp: t\nname: n\nprompt: speak\nexpected: says marzipan\n";
    let skill_creator =
        r#"{"skill_name": "gull", "evals": [{"id": 1, "prompt": "p", "expectations": ["marzipan"]}]}"#;
    let grading = r#"{"expectations": [{"text": "marzipan", "passed": true, "evidence": "e"}], "summary": {"passed": 1}}"#;
    for (path, text) in [
        ("skills/gull/001.yaml", skillet),
        ("skills/gull/references/old.yaml.bak", skillet),
        ("loose.yaml", skillet),
        ("my-evals/b.yml", skillet),
        ("skills/gull/evals.json.bak", skill_creator),
        ("quality/evals.v1.json", skill_creator),
        ("trigger-eval.json", r#"[{"query": "marzipan", "should_trigger": true}]"#),
        ("tests/cases.json", r#"{"skills": [{"name": "gull", "test_cases": [{"prompt": "marzipan"}]}]}"#),
        ("two.json", r#"{"cases": [{"id": "a", "expectations": [{"criterion": "marzipan"}]}]}"#),
        ("three.json", r#"{"cases": [{"input": "p", "rubric": ["marzipan"]}]}"#),
        ("spec.json", r#"{"skill_name": "gull", "assertions": [{"type": "contains", "value": "marzipan"}]}"#),
        (
            "skills/gull/assets/one.json",
            r#"{"practicum": 1, "cases": [{"id": "marzipan", "prompt": "speak"}]}"#,
        ),
        ("mock.yaml", "practicum_script: 1\ndefault: marzipan\n"),
        ("results/grading.json", grading),
        (
            "results/b.json",
            r#"{"run_summary": {"with_skill": {"pass_rate": {"mean": 1}}}, "notes": ["marzipan"]}"#,
        ),
    ] {
        project.write(path, text);
    }
    changes_nothing(&project, &first, "evals of every format");
    let message = project.run(&["run", "evals"]).exits(1).stderr;
    assert!(message.contains("13 eval files beside those of this run are not staged"), "{message}");
    assert!(message.contains("2 files with results of evals are not staged"), "{message}");
    // Data that only looks a little like it stays.
    project.write("tests/table.json", r#"{"cases": [{"input": "a", "expected": "b"}]}"#);
    project.run(&["run", "evals"]).exits(1);
    assert!(said(&project).contains("./tests/table.json"), "{}", said(&project));
}

#[test]
fn the_folder_that_is_named_as_evals_is_not_staged_whatever_it_is_called() {
    let project = project();
    project.write("tests/deep/e.practicum.yaml", &EVALS.replace("../skills", "../../skills"));
    project.write("tests/deep/given/letter.txt", "Dear all,\n");
    project.write("tests/deep/notes/answers.md", "It is marzipan.\n");
    project.write("tests/unit.py", "pass\n");
    project.run(&["run", "skills/gull", "--evals", "tests/deep"]).exits(1);
    let said = said(&project);
    assert!(said.contains("./given/letter.txt") && said.contains("./tests/unit.py"), "{said}");
    assert!(!said.contains("answers.md"), "{said}");
}

/// The files of the agent's room, of which none must hold a key or a password.
const LISTED_CASE: &str = "\
practicum: 1
skill: ../skills/gull
run: { agents: [own] }
cases:
  - id: x
    prompt: speak
    overlays: [over]
    files: [{ from: given, to: given }, { from: named/.env, to: .env }, { from: keys/.ssh, to: .ssh }]
    checks: [{ contains: files }]
";

#[test]
fn credentials_in_a_skill_or_a_given_folder_do_not_reach_the_agent() {
    let project = project();
    project.write("evals/e.practicum.yaml", LISTED_CASE);
    for left_out in [
        "skills/gull/.env",
        "skills/gull/.git/config",
        "skills/gull/assets/server.pem",
        "skills/gull/secrets/token",
        "evals/given/.env.local",
        "evals/given/deep/id_rsa",
        "evals/over/prod.env",
    ] {
        project.write(left_out, "K=1\n");
    }
    for given in ["evals/named/.env", "evals/keys/.ssh/id_rsa", "evals/over/ok.txt"] {
        project.write(given, "K=2\n");
    }
    let message = project.run(&["run", "evals"]).exits(0).stderr;
    let said = said(&project);
    for left_out in ["gull/.env", ".git/", "server.pem", "token", ".env.local", "deep/id_rsa", "prod.env"] {
        assert!(!said.contains(left_out), "{left_out}: {said}");
    }
    // What a case names itself is given.
    for given in [" ./.env ", "./.ssh/id_rsa", "./ok.txt", "./given/letter.txt", "assets/notes.md"] {
        assert!(said.contains(given), "{given}: {said}");
    }
    assert!(message.contains("6 files or folders of credentials are not staged:"), "{message}");
    assert_eq!(message.matches("skills/gull/.env").count(), 1, "{message}");
    // What no agent sees decides no result.
    project.write("skills/gull/.env", "K=3\n");
    project.write("evals/given/.env.local", "K=3\n");
    let again = project.run(&["run", "evals"]).exits(0).stderr;
    assert!(again.contains("1 reuse, 0 run"), "{again}");
}

#[test]
fn a_skill_that_is_called_secrets_is_staged() {
    let project = project();
    project.write("skills/secrets/SKILL.md", "---\nname: secrets\ndescription: Keeps.\n---\nb\n");
    project.run(&["run", "evals"]).exits(1);
    assert!(said(&project).contains("./skills/secrets/SKILL.md"), "{}", said(&project));
}

/// What the program wrote into a fresh clone, where no list names it, and under names that say nothing.
#[test]
fn copies_of_records_and_saved_output_are_not_staged_in_a_fresh_clone() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    let run = project.only_run();
    let events = std::fs::read_to_string(run.join("events.jsonl")).expect("events");
    let trial = std::fs::read_dir(run.join("trials")).expect("trials").flatten().next().expect("one").path();
    let text_of = |path: &Path| std::fs::read_to_string(path).expect("a file");
    let shown = project.run(&["show", "latest", "x"]).exits(0).stdout;
    let annotated = project.run(&["report", "--format", "github"]).exits(0).stdout;
    let (summary, facts) = (text_of(&run.join("summary.json")), text_of(&trial.join("facts.json")));
    let large = format!("{},\"more\": \"{}", summary.trim().trim_end_matches('}'), "y".repeat(17 << 20));
    // A clone has no records.
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    for (path, text) in [
        ("docs/a.txt", shown.as_str()),
        ("docs/b.txt", annotated.as_str()),
        ("docs/c.jsonl", &events),
        ("docs/d.jsonl", events.split_once('\n').expect("lines").1),
        ("docs/e.jsonl", events.lines().rev().nth(1).expect("a line")),
        ("docs/f.txt", events.lines().next_back().expect("a line")),
        ("docs/g.txt", &facts),
        ("docs/h.txt", &format!("[{summary}]")),
        ("docs/i.txt", &large),
    ] {
        project.write(path, text);
    }
    project.run(&["run", "evals"]).exits(1);
    assert_eq!(said(&project), first);
}

#[test]
fn a_pipe_or_a_link_out_as_a_fixture_neither_hangs_nor_leaks() {
    let project = project();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret.txt"), "outside\n").expect("written");
    let made = std::process::Command::new("mkfifo").arg(project.path().join("evals/pipe")).status();
    assert!(made.expect("mkfifo").success());
    let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, project.path().join(at)).expect("a link");
    link(&outside.path().join("secret.txt"), "evals/given/out.txt");
    link(&outside.path().join("secret.txt"), "evals/out.txt");
    link(outside.path(), "evals/out");
    let cases = "\
practicum: 1
skill: ../skills/gull
run: { agents: [own] }
cases:
  - { id: fine, prompt: speak, files: [{ from: given, to: given }], checks: [{ contains: files }] }
";
    for (out, why) in [
        ("out.txt", "is a link that leads out of the project"),
        ("out", "is a link that leads out of the project"),
        ("pipe", "is neither a regular file nor a folder"),
        ("{ from: /dev/zero, to: zero }", "is not a relative path inside the project"),
    ] {
        let case = format!("  - {{ id: o, prompt: p, files: [{out}], checks: [{{ contains: files }}] }}\n");
        project.write("evals/e.practicum.yaml", &format!("{cases}{case}"));
        let refused = project.run(&["run", "evals"]).exits(2);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
    }
    project.write("evals/e.practicum.yaml", cases);
    // In the skill and in a folder that is given, too.
    for at in ["skills/gull/pipe", "evals/given/pipe", "docs/pipe"] {
        let made = std::process::Command::new("mkfifo").arg(project.path().join(at)).status();
        assert!(made.expect("mkfifo").success());
    }
    let summary = project.run(&["run", "evals", "--json"]).json();
    let passed = |id: &str| {
        let cases = summary["cases"].as_array().expect("cases");
        cases.iter().find(|case| case["id"] == id).unwrap_or_else(|| panic!("{id}: {summary:#}"))["passed"]
            .as_u64()
    };
    assert_eq!(passed("fine"), Some(1), "{summary:#}");
    let run = project.only_run();
    for trial in std::fs::read_dir(run.join("trials")).expect("trials").flatten() {
        let said = std::fs::read_to_string(trial.path().join("output.txt")).unwrap_or_default();
        assert!(!said.contains("out.txt") && !said.contains("pipe"), "{said}");
    }
    project.run(&["snapshot", "skills/gull"]).exits(0);
    project.run(&["check", "evals"]);
    project.run(&["lint", "skills/gull"]);
}

#[test]
fn the_home_folder_is_not_copied_as_a_project() {
    // The home folder of these tests is the project; without a practicum.toml nobody said so.
    let project = project();
    std::fs::remove_file(project.path().join("practicum.toml")).expect("removed");
    project.write(".ssh/id_rsa", "key\n");
    let evals = EVALS.replace("agents: [own]", "agents: [builtin]");
    project.write("evals/e.practicum.yaml", &evals);
    project.write("script.yaml", "practicum_script: 1\ndefault: marzipan\n");
    let ran = project.run(&["run", "evals", "--script", "script.yaml", "--sandbox", "off"]).exits(2);
    assert!(ran.stderr.contains("the project is your home folder"), "{}", ran.stderr);
    let empty = evals.replace("cases:", "workspace: empty\ncases:");
    project.write("evals/e.practicum.yaml", &empty);
    project.run(&["run", "evals", "--script", "script.yaml", "--sandbox", "off"]).exits(0);
}

#[test]
fn a_copy_of_the_records_does_not_show_an_agent_what_others_answered() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    let records = project.path().join(".practicum");
    let run = project.only_run();
    let trial = std::fs::read_dir(run.join("trials")).expect("trials").flatten().next().expect("one").path();
    for (from, to) in [(records.clone(), "kept"), (run, "docs/last-run"), (trial, "docs/trial")] {
        let copied =
            std::process::Command::new("cp").arg("-r").arg(from).arg(project.path().join(to)).status();
        assert!(copied.expect("cp").success());
    }
    // A clone has no records of its own.
    std::fs::remove_dir_all(records).expect("removed");
    project.run(&["run", "evals"]).exits(1);
    assert_eq!(said(&project), first);
}

/// What a terminal showed, saved with `tee`: a warning quotes the line of the evals that it is about.
#[test]
fn saved_messages_do_not_show_an_agent_the_line_that_they_quote() {
    let project = project();
    let vague = "  - { id: y, prompt: speak, checks: [{ judge: The marzipan is good }] }\n";
    project.write("evals/e.practicum.yaml", &format!("{EVALS}{vague}"));
    let run = ["run", "evals", "--case", "x"];
    let ran = project.run(&run).exits(1);
    let first = said(&project);
    let checked = project.run(&["check", "evals"]).exits(0).stdout;
    let exported = project.run(&["export", "latest", "--format", "csv"]).exits(0).stdout;
    let refused = project.run(&["run", "evals", "--no-judge"]).exits(1).stderr;
    assert!(checked.contains("marzipan") && refused.contains("marzipan"), "{checked}{refused}");
    std::fs::remove_dir_all(project.path().join(".practicum")).expect("removed");
    for (path, text) in
        [("check.log", &checked), ("run.log", &ran.stderr), ("all.log", &refused), ("trials.txt", &exported)]
    {
        project.write(path, text);
    }
    project.run(&run).exits(1);
    assert_eq!(said(&project), first);
}

/// Files that hold other files, and a table that another program saved again.
#[test]
fn an_agent_does_not_find_its_answers_in_an_archive_a_patch_or_a_copied_index() {
    let project = project();
    project.run(&["run", "evals"]).exits(1);
    let first = said(&project);
    let make = |line: &str| {
        assert!(
            std::process::Command::new("/bin/sh")
                .args(["-c", line])
                .current_dir(project.path())
                .status()
                .is_ok_and(|made| made.success()),
            "{line}"
        );
    };
    let zip = |name: &str, of: &str, kind: &str| {
        format!(
            "python3 -c \"import os, zipfile; z = zipfile.ZipFile('{name}', 'w', zipfile.{kind}); [z.write(os.path.join(d, f)) for d, _, fs in os.walk('{of}') for f in fs]; z.close()\""
        )
    };
    make("tar cf docs/evals.tar evals");
    make("tar czf docs/evals.tgz evals");
    make("tar czf runs.tar.gz .practicum");
    make(&zip("docs/evals.zip", "evals", "ZIP_DEFLATED"));
    make(&zip("runs.jar", ".practicum", "ZIP_STORED"));
    make("cp .practicum/index.db docs/statistics");
    make(
        "(echo 'From: me'; echo 'diff --git a/evals/e.practicum.yaml b/evals/e.practicum.yaml'; echo '--- /dev/null'; echo '+++ b/evals/e.practicum.yaml'; echo '@@ -0,0 +1,5 @@'; sed 's/^/+/' evals/e.practicum.yaml) > docs/new.patch",
    );
    project.run(&["export", "latest", "--table", "checks", "--format", "csv", "-o", "docs/c.csv"]).exits(0);
    make("sed 's/,/;/g' docs/c.csv > docs/table.csv; sed 's/,/\\t/g' docs/c.csv > docs/table.tsv");
    changes_nothing(&project, &first, "archives, a patch, an index and tables");
    // Archives and patches of other files are as they were.
    make(
        "tar czf docs/guide.tgz docs/guide.md; (echo 'diff'; echo '--- a/x'; echo '+++ b/x'; echo '+one') > docs/x.patch",
    );
    make(&zip("docs/guide.zip", "skills", "ZIP_DEFLATED"));
    project.run(&["run", "evals"]).exits(1);
    for kept in ["./docs/guide.tgz", "./docs/x.patch", "./docs/guide.zip"] {
        assert!(said(&project).contains(kept), "{kept}: {}", said(&project));
    }
}
