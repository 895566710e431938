//! Text that is not UTF-8: what must not occur in it may stand in what nobody could read.

use serde_json::{Value, json};

use crate::common::{Project, Ran};

const SKILL: &str = "---\nname: clean\ndescription: Cleans.\n---\nClean it.\n";

/// `x.md` is Latin-1, `y.md` is UTF-8.
const SCRIPT: &str = r#"
practicum_script: 1
scenarios:
  - when: {regex: "."}
    steps:
      - tools: [{ name: Bash, input: { command: "mkdir out; printf 'caf\\351' > out/x.md; printf 'caf' > out/y.md" } }]
      - Done.
"#;

/// An agent whose whole output is Latin-1.
const SETTINGS: &str = "[agents.own]\ncommand = [\"/usr/bin/printf\", \"caf\\\\351\"]\ndecoder = \"text\"\n";

fn project(spec: &Value) -> Project {
    Project::new(&[
        ("script.yaml", SCRIPT),
        ("practicum.toml", SETTINGS),
        (".claude/skills/clean/SKILL.md", SKILL),
        (".claude/skills/clean/SKILL.eval.json", &spec.to_string()),
    ])
}

fn run(project: &Project) -> Ran {
    project.run(&["run", "--agent", "builtin", "--script", "script.yaml", "--no-cache"])
}

/// Checks that pass where something is absent.
fn absences() -> [Value; 3] {
    [
        json!({"id": "a", "type": "not_contains", "needle": "secret"}),
        json!({"id": "a", "type": "regex", "pattern": "(?s)^(?!.*secret).*$"}),
        json!({"id": "a", "type": "max_length", "length": 100}),
    ]
}

#[test]
fn what_must_not_occur_is_not_proven_by_output_that_is_not_utf8() {
    for check in absences() {
        let project = project(&json!({"assertions": [check]}));
        let ran = project.run(&["run", "--agent", "own", "--no-cache"]).exits(3);
        assert!(ran.stdout.contains("its output is not UTF-8 text"), "{check}: {}", ran.stdout);
        project.run(&["grade", "latest"]).exits(3);
    }
}

#[test]
fn what_must_not_occur_is_not_proven_by_a_file_that_is_not_utf8() {
    for check in absences() {
        let project = project(&json!({"output_file": "out/x.md", "assertions": [check]}));
        let ran = run(&project).exits(3);
        assert!(ran.stdout.contains("out/x.md is not UTF-8 text"), "{check}: {}", ran.stdout);
        project.run(&["grade", "latest"]).exits(3);
    }
    let native = "practicum: 1\nskill: .claude/skills/clean\ncases:\n  - id: c\n    prompt: p\n    \
                  checks: [{file: {path: out/x.md, matches: '^(?!.*secret).*$'}}]\n";
    let project = project(&json!({}));
    project.write("e.practicum.yaml", native);
    let ran = project
        .run(&["run", "e.practicum.yaml", "--agent", "builtin", "--script", "script.yaml", "--no-cache"])
        .exits(3);
    assert!(ran.stdout.contains("out/x.md is not UTF-8 text"), "{}", ran.stdout);
}

#[test]
fn what_another_file_decides_stands() {
    for (check, exit) in [
        (json!({"id": "a", "type": "contains", "needle": "caf"}), 0),
        (json!({"id": "a", "type": "contains", "needle": "secret"}), 3),
        (json!({"id": "a", "type": "not_contains", "needle": "caf"}), 1),
        (json!({"id": "a", "type": "not_contains", "needle": "secret"}), 3),
        (json!({"id": "a", "type": "max_length", "length": 2}), 1),
        (json!({"id": "a", "type": "min_length", "length": 3}), 0),
        (json!({"id": "a", "type": "min_length", "length": 4}), 3),
    ] {
        let project = project(&json!({"output_files": ["out/*"], "assertions": [check]}));
        run(&project).exits(exit);
    }
}

#[test]
fn a_captured_text_that_is_not_utf8_is_refused() {
    let project = project(&json!({"assertions": [{"id": "a", "type": "not_contains", "needle": "secret"}]}));
    std::fs::write(project.path().join("out.txt"), b"caf\xe9").expect("a file");
    let spec = ".claude/skills/clean/SKILL.eval.json";
    let ran = project.run(&["grade", "--output", "out.txt", "--spec", spec]).exits(2);
    assert!(ran.stderr.contains("it is not UTF-8 text: byte 4"), "{}", ran.stderr);
}

/// An agent that printed nothing passed every check of what must not occur.
#[test]
fn what_must_not_occur_is_not_proven_by_an_agent_that_does_nothing() {
    for check in absences() {
        let project = project(&json!({"assertions": [check]}));
        project.write(
            "practicum.toml",
            "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/sh\", \"-c\", \"echo; echo\"]\n",
        );
        let ran = project.run(&["run", "--agent", "own", "--no-cache"]).exits(3);
        let told = "the agent said nothing and did nothing, which proves nothing";
        assert!(ran.stdout.contains(told), "{check}: {}", ran.stdout);
        project.run(&["grade", "latest"]).exits(3);
    }
    // An answer that has to be there is missing, which is a failure.
    let project = project(&json!({"assertions": [{"id": "a", "type": "contains", "needle": "caf"}]}));
    project
        .write("practicum.toml", "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/sh\", \"-c\", \":\"]\n");
    project.run(&["run", "--agent", "own", "--no-cache"]).exits(1);
    // A file is something that the agent did.
    let project = self::project(&json!({"output_file": "x.md", "assertions": absences()[..1]}));
    project.write(
        "practicum.toml",
        "sandbox = \"off\"\n[agents.own]\ncommand = [\"/bin/sh\", \"-c\", \"echo all > x.md\"]\n",
    );
    project.run(&["run", "--agent", "own", "--no-cache"]).exits(0);
}
