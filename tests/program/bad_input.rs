//! Files that are wrong in every way a file can be: a clear error with a position, never a panic,
//! never without end.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Project, Ran};
use serde_json::Value;

/// What `check` says about one file, within a second's time and a bounded memory.
fn check(name: &str, content: &[u8]) -> (i32, Value) {
    let project = Project::new(&[]);
    std::fs::write(project.path().join(name), content).expect("write");
    bounded(&project, &["check", name, "--json"])
}

fn bounded(project: &Project, args: &[&str]) -> (i32, Value) {
    let started = Instant::now();
    // A gigabyte of address space is plenty for the program and far too little for a bomb.
    let ran = Ran::of(
        Command::new("/bin/bash")
            .args(["-c", "ulimit -v 1500000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_practicum")])
            .args(args)
            .current_dir(project.path())
            .env_clear()
            .env("HOME", project.path())
            .output()
            .expect("starts"),
    );
    assert!(started.elapsed() < Duration::from_secs(20), "took {:?}", started.elapsed());
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    (ran.code, ran.json())
}

fn errors(document: &Value) -> Vec<(String, Option<u64>)> {
    let problems = document["files"][0]["problems"].as_array().expect("problems");
    problems
        .iter()
        .filter(|problem| problem["severity"] == "error")
        .map(|problem| (problem["code"].as_str().expect("a code").to_owned(), problem["line"].as_u64()))
        .collect()
}

fn native(cases: &str) -> String {
    format!("practicum: 1\nworkspace: empty\ncases:\n{cases}")
}

#[test]
fn every_kind_of_broken_file_is_an_error_with_a_position() {
    let bomb = (0..40).fold("a0: &a0 [x, x]\n".to_owned(), |text, i| {
        format!("{text}a{0}: &a{0} [*a{i}, *a{i}, *a{i}, *a{i}, *a{i}]\n", i + 1)
    });
    let deep_json = "[".repeat(10_000);
    let deep_yaml = (0..3000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect::<String>();
    let case = |rest: &str| native(&format!("  - {{id: a, prompt: p, {rest}}}\n"));
    let rows: Vec<(&str, Vec<u8>, &str, Option<u64>)> = vec![
        ("a.eval.json", b"{\"skill_name\": \"s\",\n \"x\": \"\xff\"}".to_vec(), "invalid-utf8", None),
        ("a.eval.json", b"\xef\xbb\xbf{}".to_vec(), "byte-order-mark", Some(1)),
        ("a.eval.json", b"".to_vec(), "invalid-json", Some(1)),
        ("a.eval.json", b"{\"a\": 1,\n \"a\": 2}".to_vec(), "duplicate-key", Some(2)),
        ("a.eval.json", b"{\"timeout\": NaN}".to_vec(), "invalid-json", Some(1)),
        ("a.eval.json", b"{\"timeout\": 0}".to_vec(), "out-of-range", Some(1)),
        ("a.eval.json", deep_json.into_bytes(), "invalid-json", Some(1)),
        ("a.practicum.yaml", bomb.into_bytes(), "too-many-nodes", Some(10)),
        ("a.practicum.yaml", deep_yaml.into_bytes(), "nested-too-deep", Some(129)),
        ("a.practicum.yaml", b"practicum: 1\ncases:\n\t- id: a\n".to_vec(), "invalid-yaml", Some(3)),
        ("a.practicum.yaml", b"practicum: 1\npracticum: 1\ncases: []\n".to_vec(), "duplicate-key", Some(2)),
        ("a.practicum.yaml", b"practicum: 2\n".to_vec(), "unknown-version", Some(1)),
        ("a.practicum.yaml", native("  []\n").into_bytes(), "no-cases", Some(4)),
        ("a.practicum.yaml", case("checks: [{regex: '(a'}]").into_bytes(), "invalid-pattern", Some(4)),
        (
            "a.practicum.yaml",
            case("checks: [{contains: x, on: {files: ['a[.md']}}]").into_bytes(),
            "invalid-glob",
            Some(4),
        ),
        (
            "a.practicum.yaml",
            case("checks: [{file: ../../etc/passwd}]").into_bytes(),
            "escaping-path",
            Some(4),
        ),
        (
            "a.practicum.yaml",
            case("files: [/etc/passwd], checks: [{contains: x}]").into_bytes(),
            "escaping-path",
            Some(4),
        ),
        (
            "a.practicum.yaml",
            case("timeout: 9999h, checks: [{contains: x}]").into_bytes(),
            "invalid-duration",
            Some(4),
        ),
        (
            "a.practicum.yaml",
            case("timeout: .nan, checks: [{contains: x}]").into_bytes(),
            "invalid-duration",
            Some(4),
        ),
        (
            "a.practicum.yaml",
            case("repeat: 0, checks: [{contains: x}]").into_bytes(),
            "out-of-range",
            Some(4),
        ),
        (
            "a.practicum.yaml",
            case("repeat: 1e99, checks: [{contains: x}]").into_bytes(),
            "wrong-type",
            Some(4),
        ),
        ("a.practicum.yaml", b"just text".to_vec(), "unknown-format", None),
    ];
    for (name, content, code, line) in rows {
        let shown = String::from_utf8_lossy(&content[..content.len().min(60)]).into_owned();
        let (exit, document) = check(name, &content);
        let found = errors(&document);
        assert_eq!((exit, &document["ok"]), (2, &Value::Bool(false)), "{shown}");
        let message = found.iter().find(|(found, _)| found == code);
        assert!(message.is_some(), "{shown}: {code} is not in {found:?}");
        if line.is_some() {
            assert_eq!(message.and_then(|(_, line)| *line), line, "{shown}");
        }
    }
}

/// What authors get wrong most: where it is told, and what they can do about it.
#[test]
fn a_likely_mistake_is_told_with_its_place_and_a_way_out() {
    let eval = |rest: &str| format!("timestamp: 2025-01-15\nname: n\nexpected: e\n{rest}\n");
    let creator = |assertion: &str| {
        format!("{{\"evals\": [{{\"id\": 1, \"prompt\": \"p\",\n\"assertions\": [{assertion}]}}]}}")
    };
    let writing = |case: &str| {
        format!("{{\"version\": \"1\", \"skill\": \"s\", \"cases\": [{{\"id\": \"a\",\n{case}}}]}}")
    };
    let native = |head: &str| {
        format!("practicum: 1\n{head}\ncases: [{{id: a, prompt: p, checks: [{{contains: x}}]}}]")
    };
    for (name, text, code, place, message) in [
        ("a.yaml", eval("prompt:"), "missing-key", "4:1", "\"prompt\" has no value"),
        (
            "a.yaml",
            eval("prompt: p\nassertions: [{contains: x}]"),
            "missing-key",
            "5:15",
            "{type: contains, ",
        ),
        ("a.yaml", eval("prompt: [a, ' ']"), "empty-text", "4:13", "blank"),
        (
            "s.json",
            "{\"name\": \"n\",\n\"skills\": {}, \"negative_cases\": []}".into(),
            "wrong-type",
            "2:11",
            "a list",
        ),
        (
            "triggers.json",
            "{\"set\": [{\"query\": \"q\"}]}".into(),
            "wrong-type",
            "1:1",
            "the list under \"set\"",
        ),
        ("triggers.json", "{\"a\": 1}".into(), "wrong-type", "1:1", "[{\"query\": "),
        ("triggers.json", "[\"q\"]".into(), "wrong-type", "1:2", "a trigger query must be a mapping"),
        ("evals.json", creator("3"), "wrong-type", "2:16", "\"assertions\" must be"),
        ("evals.json", creator("{\"type\": \"file_exists\"}"), "unknown-assertion", "2:16", "no \"path\""),
        (
            "evals.json",
            creator("{\"type\": \"file_exists\", \"expect\": \"maybe\"}"),
            "unknown-value",
            "2:50",
            "cannot be \"maybe\"",
        ),
        ("evals.json", writing("\"prompt\": \"p\""), "missing-key", "1:42", "\"expectations\" is missing"),
        (
            "evals.json",
            writing("\"prompt\": \"p\", \"expectations\": [{\"criteria\": \"c\", \"description\": \"d\"}]"),
            "missing-key",
            "2:33",
            "there is a key \"criteria\"",
        ),
        ("a.practicum.yaml", native("repeat: 3"), "unknown-key", "2:1", "it stands under \"run\""),
        ("a.practicum.yaml", native("agents: [claude]"), "unknown-key", "2:1", "it stands under \"run\""),
        ("a.practicum.yaml", native("gates: {pass_rate: 80}"), "out-of-range", "2:20", "80 % is 0.8"),
        ("x.json", "{\"evaluations\": []}".into(), "unknown-format", "1:1", "a mapping with \"evaluations\""),
    ] {
        let (exit, document) = check(name, text.as_bytes());
        let problems = document["files"][0]["problems"].as_array().expect("problems");
        let found = problems.iter().any(|problem| {
            let said = format!("{} {}", problem["message"], problem["help"]).replace("\\\"", "\"");
            let at = format!("{}:{}", problem["line"], problem["column"]);
            problem["severity"] == "error" && problem["code"] == code && at == place && said.contains(message)
        });
        assert!(exit == 2 && found, "{name} {text}: {code} at {place}: {message}\n{document:#}");
    }
}

#[test]
fn what_only_looks_odd_is_read() {
    let crlf = native("  - id: 7\r\n    prompt: p\r\n    checks: [{contains: x}]\r\n")
        .replace("\n", "\r\n")
        .replace("\r\r", "\r");
    let merged = "practicum: 1\nworkspace: empty\nmeta:\n  base: &b {contains: x}\ncases:\n  - id: a\n    prompt: p\n    checks:\n      - <<: *b\n        id: c\n";
    let bom = format!("\u{feff}{}", native("  - {id: a, prompt: p, checks: [{contains: x}]}\n"));
    for content in [crlf.as_str(), merged, bom.as_str()] {
        let (exit, document) = check("a.practicum.yaml", content.as_bytes());
        assert_eq!(exit, 0, "{content}\n{document:#}");
    }
}

#[test]
fn things_that_are_no_files_are_told_apart() {
    let project = Project::new(&[]);
    let folder = project.path();
    std::fs::create_dir(folder.join("folder.eval.json")).expect("create");
    std::os::unix::fs::symlink("loop.eval.json", folder.join("loop.eval.json")).expect("link");
    std::os::unix::fs::symlink("nowhere", folder.join("broken.eval.json")).expect("link");
    let fifo = Command::new("mkfifo").arg(folder.join("pipe.eval.json")).status().expect("mkfifo");
    assert!(fifo.success());
    let huge = std::fs::File::create(folder.join("huge.eval.json")).expect("create");
    huge.set_len(200 * 1024 * 1024).expect("sparse");
    for name in ["loop.eval.json", "broken.eval.json", "pipe.eval.json", "huge.eval.json"] {
        let (exit, document) = bounded(&project, &["check", name, "--json"]);
        assert_eq!(exit, 2, "{name}");
        assert_eq!(errors(&document)[0].0, "unreadable-file", "{name}");
    }
    let ran = project.run(&["check", "folder.eval.json"]).exits(2);
    assert!(ran.stderr.contains("no eval files found"), "{}", ran.stderr);
}

#[test]
fn terminal_escapes_in_a_file_do_not_reach_the_terminal() {
    let project = Project::new(&[(
        "a.practicum.yaml",
        "practicum: 1\n\"\\e[31mred\": \"\\e]0;title\\a\"\ncases: []\n",
    )]);
    let ran = project.run(&["check", "a.practicum.yaml"]).exits(2);
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{:?}", ran.stdout);
}

/// What lies outside of a skill is not given to an agent, and nobody should wonder why.
#[test]
fn a_link_out_of_a_skill_is_named_where_it_is_not_staged() {
    let project = Project::new(&[
        ("skills/s/SKILL.md", "---\nname: s\ndescription: Does s.\n---\nRead references/style.md.\n"),
        ("shared/style.md", "Be brief."),
        (
            "evals/e.practicum.yaml",
            "practicum: 1\nskill: ../skills/s\nworkspace: empty\nrun: { agents: [looks] }\n\
             cases: [{ id: a, prompt: p, checks: [{ contains: SKILL.md }, { not_contains: references }] }]\n",
        ),
        ("looks.sh", "ls .agents/skills/s\n"),
    ]);
    let looks = project.path().join("looks.sh");
    let command =
        format!("[agents.looks]\ncommand = [\"/bin/bash\", \"{}\", \"{{prompt}}\"]\n", looks.display());
    project.write("practicum.toml", &command);
    let without_warnings = project.run(&["check", "evals", "--json"]).exits(0).json();
    assert_eq!(without_warnings["files"][0]["problems"], serde_json::json!([]));

    std::os::unix::fs::symlink("../../shared", project.path().join("skills/s/references")).expect("a link");
    let message =
        "references of the skill s is a link that leads out of it, to ../../shared, and is not staged";
    let checked = project.run(&["check", "evals", "--json"]).exits(0).json();
    let problem = &checked["files"][0]["problems"][0];
    assert_eq!(
        (&problem["severity"], &problem["message"]),
        (&"warning".into(), &message.into()),
        "{checked}"
    );
    let ran = project.run(&["run", "evals", "--sandbox", "off"]).exits(0);
    assert_eq!(ran.stderr.matches(message).count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("note: {message}")), "{}", ran.stderr);
}
