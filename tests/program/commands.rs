//! The commands that run nothing: check, list, convert, init, formats.

use crate::common::Project;
use serde_json::{Value, json};

const SKILL: &str = "---\nname: greeter\ndescription: Greets people by name. Use when asked to greet someone.\n---\n\nSay ahoy.\n";
const GOOD: &str = "practicum: 1\nskill: ../greeter\nworkspace: empty\ncases:\n  - {id: hi, prompt: Greet Alice., checks: [{contains: Ahoy}]}\n";
const SKILLET: &str = "timestamp: 2025-01-15T10:30:00Z\nname: greet\nprompt: Hi.\nexpected: Says ahoy.\n";
const BAD: &str = "\
practicum: 1
skill: ../greeter
cases:
  - id: hi
    promt: Greet Alice.
    checks:
      - contain: Ahoy
      - regex: '('
";

fn project() -> Project {
    Project::new(&[("greeter/SKILL.md", SKILL), ("evals/good.practicum.yaml", GOOD)])
}

#[test]
fn check_tells_all_problems_with_place_and_hint() {
    let project = project();
    project.write("evals/bad.practicum.yaml", BAD);
    let document = project.run(&["check", "evals", "--json"]).exits(2).json();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["ok"], false);
    let bad = &document["files"][0];
    assert_eq!((&bad["dialect"], &bad["ok"]), (&json!("native"), &json!(false)));
    let problems: Vec<(&str, u64, u64)> = bad["problems"]
        .as_array()
        .expect("problems")
        .iter()
        .map(|problem| {
            let number = |key: &str| problem[key].as_u64().expect("a number");
            (problem["code"].as_str().expect("a code"), number("line"), number("column"))
        })
        .collect();
    let expected =
        [("missing-key", 4, 5), ("unknown-key", 5, 5), ("unknown-check", 7, 9), ("invalid-pattern", 8, 16)];
    assert_eq!(problems, expected);
    assert_eq!(bad["problems"][2]["help"], "did you mean \"contains\"?");
    let good = &document["files"][1];
    assert_eq!((&good["suite"], &good["cases"], &good["ok"]), (&json!("good"), &json!(1), &json!(true)));

    let ran = project.run(&["check", "evals"]).exits(2);
    for part in [
        "--> evals/bad.practicum.yaml:7:9",
        "did you mean \"contains\"?",
        "contain: Ahoy",
        "2 files, 1 case: 4 errors",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
}

#[test]
fn check_of_nothing_is_an_error_that_says_where_it_looked() {
    let project = Project::new(&[("empty/readme.txt", "x")]);
    let ran = project.run(&["check", "empty"]).exits(2);
    assert!(
        ran.stderr.contains("no eval files found; looked in") && ran.stderr.contains("empty"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("*.practicum.yaml") && ran.stderr.contains("practicum init"),
        "{}",
        ran.stderr
    );
    let ran = project.run(&["check", "nowhere"]).exits(2);
    assert!(ran.stderr.contains("there is no") && ran.stderr.contains("nowhere"), "{}", ran.stderr);
}

#[test]
fn a_missing_file_is_an_error_to_check_and_a_missing_skill_to_run() {
    let eval = "practicum: 1\nskill: ../nowhere\nworkspace: empty\ncases:\n  - {id: a, prompt: p, files: [gone.txt], checks: [{contains: x}]}\n";
    let project = Project::new(&[("evals/e.practicum.yaml", eval)]);
    let document = project.run(&["check", "evals", "--json"]).exits(2).json();
    let codes: Vec<&Value> = document["files"][0]["problems"]
        .as_array()
        .expect("problems")
        .iter()
        .map(|problem| &problem["code"])
        .collect();
    assert_eq!(codes, ["skill-not-found", "file-not-found"]);
    let ran = project.run(&["run", "evals", "--agent", "builtin"]).exits(2);
    assert!(ran.stderr.contains("nowhere") && ran.stderr.contains("gone.txt"), "{}", ran.stderr);
    assert!(!project.path().join(".practicum").exists(), "nothing was begun");
}

#[test]
fn list_shows_suites_cases_and_trials() {
    let project = project();
    let document = project
        .run(&[
            "list", "evals", "--agent", "claude", "--agent", "builtin", "--repeat", "2", "--arm", "with",
            "--arm", "without", "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(document["trials"], 8);
    let trials = json!([
        {"agent": "claude", "arm": "with", "count": 2},
        {"agent": "claude", "arm": "without", "count": 2},
        {"agent": "builtin", "arm": "with", "count": 2},
        {"agent": "builtin", "arm": "without", "count": 2},
    ]);
    assert_eq!(document["suites"][0]["cases"][0]["trials"], trials);
    assert_eq!(document["suites"][0]["cases"][0]["files"], json!([]));
    let ran = project.run(&["list", "evals"]).exits(0);
    assert!(ran.stdout.contains("good (native; greeter)\n  hi  1 × auto with\n"), "{}", ran.stdout);
}

#[test]
fn convert_there_and_back_loses_nothing_that_both_can_say() {
    let eval =
        "timestamp: 2025-01-15T10:30:00Z\nname: greet\nprompt: [Hi., Again.]\nexpected: Says ahoy twice.\n";
    let project = Project::new(&[("s/a.yaml", eval)]);
    project.run(&["convert", "s/a.yaml", "--to", "native", "-o", "n.practicum.yaml"]).exits(0);
    project.run(&["convert", "n.practicum.yaml", "--to", "skillet", "-o", "back"]).exits(0);
    let back = std::fs::read_to_string(project.path().join("back/a.yaml")).expect("written");
    for part in [
        "timestamp: \"2025-01-15T10:30:00Z\"",
        "name: greet",
        "- Hi.",
        "- Again.",
        "expected: Says ahoy twice.",
    ] {
        assert!(back.contains(part), "{part}\n{back}");
    }
    let ran = project.run(&["convert", "s/a.yaml", "--to", "native", "-o", "n.practicum.yaml"]).exits(2);
    assert!(ran.stderr.contains("exists"), "{}", ran.stderr);
}

#[test]
fn convert_tells_what_is_lost() {
    let project = project();
    project.write(
        "fires.practicum.yaml",
        "practicum: 1\nskill: {name: s}\ncases: [{id: a, prompt: p, activation: must}]\n",
    );
    let ran = project.run(&["convert", "fires.practicum.yaml", "--to", "skillet", "-o", "nothing/"]).exits(2);
    assert!(ran.stderr.contains("nothing of it can be said in skillet"), "{}", ran.stderr);
    let ran = project.run(&["convert", "evals/good.practicum.yaml", "--to", "skill-test"]);
    assert!(ran.stderr.contains("lost:"), "{}", ran.stderr);
}

#[test]
fn what_becomes_several_files_goes_into_a_folder() {
    let eval = "practicum: 1\nskill: {name: s}\ncases:\n  - {id: a, command: --a, checks: [{contains: x}]}\n  - {id: b, command: --b, checks: [{contains: y}]}\n";
    let project = Project::new(&[("e.practicum.yaml", eval), ("skills/s/SKILL.md", SKILL)]);
    let ran =
        project.run(&["convert", "e.practicum.yaml", "--to", "clauditor", "-o", "s.eval.json"]).exits(2);
    assert!(ran.stderr.contains("2 files") && ran.stderr.contains("folder"), "{}", ran.stderr);
    project.run(&["convert", "e.practicum.yaml", "--to", "clauditor", "-o", "specs/"]).exits(0);
    let document = project.run(&["check", "specs", "--json"]).exits(0).json();
    let files: Vec<(&Value, &Value)> = document["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| (&file["dialect"], &file["cases"]))
        .collect();
    assert_eq!(files, [(&json!("clauditor"), &json!(1)), (&json!("clauditor"), &json!(1))]);
}

#[test]
fn init_writes_what_check_accepts_and_never_overwrites() {
    let project = Project::new(&[("greeter/SKILL.md", SKILL)]);
    project.run(&["init", "greeter"]).exits(0);
    let file = project.path().join("greeter/evals/greeter.practicum.yaml");
    let document = project.run(&["check", "greeter", "--json"]).exits(0).json();
    assert_eq!(document["files"][0]["cases"], 3);
    assert_eq!(document["files"][0]["problems"], json!([]));
    std::fs::write(&file, "mine").expect("write");
    project.run(&["init", "greeter"]).exits(0);
    assert_eq!(std::fs::read_to_string(&file).expect("read"), "mine");
    std::fs::remove_file(&file).expect("remove");

    project.run(&["init", "greeter", "--dialect", "writing-skills"]).exits(0);
    assert_eq!(
        project.run(&["check", "greeter", "--json"]).exits(0).json()["files"][0]["dialect"],
        "writing-skills"
    );
    let history: Value = serde_json::from_slice(
        &std::fs::read(project.path().join("greeter-workspace/history.json")).expect("a history"),
    )
    .expect("JSON");
    assert_eq!(
        (&history["current_version"], &history["versions"][0]["path"]),
        (&json!(0), &json!("v0/skill"))
    );
    assert!(project.path().join("greeter-workspace/v0/skill/SKILL.md").is_file());
    assert!(
        !project.path().join("greeter-workspace/v0/skill/evals").exists(),
        "a version does not contain its evals"
    );

    project.run(&["init", "--dialect", "skill-test", "suite.json"]).exits(0);
    project.write("skills/my-skill/SKILL.md", &SKILL.replace("greeter", "my-skill"));
    assert_eq!(
        project.run(&["check", "suite.json", "--json"]).exits(0).json()["files"][0]["dialect"],
        "skill-test"
    );
}

#[test]
fn native_files_that_are_written_name_a_schema_that_is_there() {
    let project =
        Project::new(&[("greeter/SKILL.md", SKILL), ("s/deep/a.yaml", SKILLET), ("s/b.yaml", SKILLET)]);
    project.run(&["init", "greeter"]).exits(0);
    project.run(&["convert", "s/b.yaml", "--to", "native", "-o", "n.practicum.yaml"]).exits(0);
    project.run(&["convert", "s/b.yaml", "s/deep/a.yaml", "--to", "native", "-o", "all/"]).exits(0);
    let mut native = Vec::new();
    for folder in ["greeter/evals", ".", "all", "all/deep"] {
        let entries = std::fs::read_dir(project.path().join(folder)).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        native.extend(files.filter(|path| path.to_string_lossy().ends_with(".practicum.yaml")));
    }
    assert!(native.len() >= 3, "{native:?}");
    for file in &native {
        let text = std::fs::read_to_string(file).expect("read");
        let first = text.lines().next().unwrap_or_default();
        let schema = first.strip_prefix("# yaml-language-server: $schema=").expect(first);
        let schema =
            std::fs::read(file.parent().expect("a folder").join(schema)).expect("the schema is there");
        let schema: Value = serde_json::from_slice(&schema).expect("JSON");
        assert_eq!(schema["title"], "Practicum evals (*.practicum.yaml)");
    }
    // The schema is no eval, and nothing is said about it.
    let ran = project.run(&["check", "greeter"]).exits(0);
    assert!(!ran.stderr.contains("practicum.schema.json"), "{}", ran.stderr);

    let target = project.path().join("mine.txt");
    std::fs::write(&target, "mine").expect("write");
    std::fs::remove_dir_all(project.path().join("greeter/evals")).expect("removed");
    std::fs::create_dir(project.path().join("greeter/evals")).expect("a folder");
    let link = project.path().join("greeter/evals/practicum.schema.json");
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    project.run(&["init", "greeter"]).exits(2);
    assert_eq!(std::fs::read_to_string(&target).expect("read"), "mine", "a link is not followed");
}

#[test]
fn the_problem_matcher_for_editors_knows_what_check_and_lint_print() {
    let page = include_str!("../../docs/editors.md");
    let tasks = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the tasks");
    let tasks: Value = serde_json::from_str(tasks).expect("JSON");
    let pattern = &tasks["tasks"][0]["problemMatcher"]["pattern"];
    let matcher = regex::Regex::new(pattern["regexp"].as_str().expect("a pattern")).expect("a regex");
    let project = project();
    project.write("evals/bad.practicum.yaml", BAD);
    let checked = project.run(&["check", "evals", "--format", "github"]).exits(2).stdout;
    let linted = project.run(&["lint", "greeter", "--format", "github"]).stdout;
    assert!(checked.lines().count() >= 3, "{checked}");
    for line in checked.lines().chain(linted.lines()) {
        let found = matcher.captures(line).unwrap_or_else(|| panic!("{line}"));
        let part = |name: &str| &found[pattern[name].as_u64().expect("a number") as usize];
        assert!(project.path().join(part("file")).is_file(), "{line}");
        assert!(part("line").parse::<u32>().is_ok() && !part("message").is_empty(), "{line}");
    }
}

#[test]
fn formats_are_listed() {
    let document = Project::new(&[]).run(&["formats", "--text", "--json"]).exits(0).json();
    let names: Vec<&str> = document["formats"]
        .as_array()
        .expect("formats")
        .iter()
        .map(|format| format["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names.len(), 20);
    assert!(names.contains(&"phone_us") && names.contains(&"star_rating"));
}

#[test]
fn settings_come_from_where_explain_says() {
    let project = project();
    project.write("practicum.toml", "repeat = 4\n[judge]\nmodel = \"claude-opus-4-1\"\n");
    let mut command = project.practicum(&["run", "evals", "--explain", "--agent", "builtin"]);
    let ran =
        crate::common::Ran::of(command.env("PRACTICUM_TIMEOUT", "90s").output().expect("starts")).exits(0);
    for part in [
        "agent              builtin",
        "flag",
        "4",
        "practicum.toml",
        "90s",
        "environment PRACTICUM_TIMEOUT",
        "claude-opus-4-1",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
    project.write("practicum.toml", "repeet = 4\n");
    let ran = project.run(&["run", "evals", "--explain"]).exits(2);
    assert!(ran.stderr.contains("did you mean \"repeat\"?"), "{}", ran.stderr);
}

#[test]
fn self_test_tells_exams_that_cannot_be_failed_or_passed() {
    let eval = "\
practicum: 1
workspace: empty
cases:
  - id: lax
    prompt: p
    checks: [{not_contains: sorry}]
  - id: wrong
    prompt: q
    oracle: good.md
    checks: [{contains: Notes, id: title}]
  - id: judged
    prompt: r
    checks: [{judge: It rhymes with orange.}]
";
    let project = Project::new(&[("e.practicum.yaml", eval), ("good.md", "# Notices\n")]);
    project.run(&["check", "e.practicum.yaml"]).exits(0);
    let document = project.run(&["check", "e.practicum.yaml", "--self-test", "--json"]).exits(2).json();
    let problems = document["files"][0]["problems"].as_array().expect("problems");
    let found: Vec<String> = problems
        .iter()
        .map(|one| format!("{} {} {}:{}", one["severity"], one["code"], one["line"], one["column"]))
        .collect();
    let expected = [
        "\"warning\" \"passes-idle\" 4:9",
        "\"error\" \"oracle-fails\" 7:9",
        "\"notice\" \"not-self-testable\" 11:9",
    ];
    assert_eq!(found, expected);
    let ran = project.run(&["check", "e.practicum.yaml", "--self-test"]).exits(2);
    for part in [
        "case lax passes for an agent that says nothing",
        "fails check title",
        "mend the check, or the oracle",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{}", ran.stdout);
    }
}

#[test]
fn a_native_file_that_forgets_its_first_line_hears_of_it() {
    let project = Project::new(&[("evals/e.practicum.yaml", "cases:\n  - {id: a, prompt: p}\n")]);
    let ran = project.run(&["check", "evals"]).exits(2);
    assert!(ran.stdout.contains("\"practicum\" is missing"), "{}", ran.stdout);
}

#[test]
fn runs_say_what_they_were_of() {
    let eval = "practicum: 1\nworkspace: empty\nrun: {agents: [shell]}\n\
                cases: [{id: a, prompt: p, checks: [{contains: p}]}]\n";
    let toml = "[agents.shell]\ncommand = [\"/bin/echo\", \"{prompt}\"]\n";
    let mut files = vec![("practicum.toml", toml)];
    let names: Vec<String> = (0..20).map(|n| format!("evals/s{n:02}.practicum.yaml")).collect();
    files.extend(names.iter().map(|name| (name.as_str(), eval)));
    let project = Project::new(&files);
    let ran = project.run(&["run"]).exits(0);
    // Twenty cases of one name, and none is shown twenty times.
    assert!(ran.stderr.contains("(s07, shell, "), "{}", ran.stderr);
    assert!(ran.stderr.contains("and 8 more suites"), "{}", ran.stderr);
    assert!(ran.stdout.contains("gates: 20 hold\n"), "{}", ran.stdout);
    let ran = project.run(&["runs"]).exits(0);
    assert!(ran.stdout.contains("20/20 passed  s00, s01, s02, …\n"), "{}", ran.stdout);
    let ran = project.run(&["report", "--format", "md", "-o", "out/report.md"]).exits(0);
    assert_eq!(ran.stderr, "wrote out/report.md\n");
    let report = std::fs::read_to_string(project.path().join("out/report.md")).expect("a report");
    assert!(report.starts_with("# Evaluation of s00, s01, s02 and 17 more suites\n"), "{report}");
}
