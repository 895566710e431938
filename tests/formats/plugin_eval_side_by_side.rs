//! The same cases through the real `claude plugin eval` and through practicum with the same Claude Code, both on one
//! script: the scores are the same.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::common::{Project, Ran, claude, path_with};

const SKILL: &str = "---\nname: tide\ndescription: Use when the user asks about berths and tides.\n---\n\nAnswer in one sentence.\n";
const PLUGIN: &str = r#"{"name": "harbour", "version": "1.0.0", "description": "Tides of a harbour"}"#;

/// A case: its name, its graders as the text of each file, and the steps of the model.
struct SideCase {
    name: &'static str,
    graders: &'static [&'static str],
    steps: &'static str,
}

const SAYS: &str = "[At 16:40 there is high tide. Berth 3 and berth 4 are wet.]";
const USES_SKILL: &str =
    "[{ tools: [{ name: Skill, input: { skill: 'harbour:tide' } }] }, At 16:40 there is high tide.]";
const WRITES: &str = "[{ tools: [{ name: Write, input: { file_path: notice.md, content: 'high tide at 16:40' } }] }, \
                      { tools: [{ name: Read, input: { file_path: notice.md } }] }, The notice is written.]";

const CASES: [SideCase; 16] = [
    SideCase { name: "found", graders: &["type: regex\npattern: high tide"], steps: SAYS },
    SideCase { name: "not-found", graders: &["type: regex\npattern: low tide"], steps: SAYS },
    SideCase {
        name: "absent",
        graders: &["type: regex\npattern: low tide\nmatch: not_contains"],
        steps: SAYS,
    },
    SideCase {
        name: "present",
        graders: &["type: regex\npattern: high tide\nmatch: not_contains"],
        steps: SAYS,
    },
    SideCase { name: "any-case", graders: &["type: regex\npattern: HIGH TIDE\nflags: i"], steps: SAYS },
    SideCase {
        name: "twice",
        graders: &["type: regex\npattern: '[Bb]erth [0-9]'\nmatch: count:2"],
        steps: SAYS,
    },
    SideCase {
        name: "not-thrice",
        graders: &["type: regex\npattern: '[Bb]erth [0-9]'\nmatch: count:3"],
        steps: SAYS,
    },
    SideCase {
        name: "weights",
        graders: &["type: regex\npattern: high tide\nweight: 3", "type: regex\npattern: low tide"],
        steps: SAYS,
    },
    SideCase { name: "at-the-end", graders: &["type: regex\npattern: 'wet\\.$'"], steps: SAYS },
    SideCase { name: "wrote", graders: &["type: tool_used\ntool: Write"], steps: WRITES },
    SideCase {
        name: "never-wrote",
        graders: &["type: tool_used\ntool: Write\nmin: 0\nmax: 0"],
        steps: WRITES,
    },
    SideCase {
        name: "input",
        graders: &["type: tool_used\ntool: Write\ninput_match: notice\\.md"],
        steps: WRITES,
    },
    SideCase { name: "in-order", graders: &["type: tool_order\nbefore: Write\nafter: Read"], steps: WRITES },
    SideCase {
        name: "out-of-order",
        graders: &["type: tool_order\nbefore: Read\nafter: Write"],
        steps: WRITES,
    },
    SideCase { name: "created", graders: &["type: file_exists\npath: notice.md"], steps: WRITES },
    SideCase {
        name: "skill",
        graders: &["type: tool_used\ntool: Skill\ninput_match: tide", "type: regex\npattern: high tide"],
        steps: USES_SKILL,
    },
];

/// Ends the gateway with the test.
struct Gateway(Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn project() -> Project {
    let project = Project::new(&[
        ("harbour/.claude-plugin/plugin.json", PLUGIN),
        ("harbour/skills/tide/SKILL.md", SKILL),
    ]);
    let mut script = "practicum_script: 1\nscenarios:\n".to_owned();
    for SideCase { name, graders, steps } in &CASES {
        let folder = format!("harbour/evals/{name}");
        project.write(
            &format!("{folder}/prompt.md"),
            &format!("---\nruns: 1\n---\nTell me about harbour-{name}.\n"),
        );
        for (index, grader) in graders.iter().enumerate() {
            project.write(&format!("{folder}/graders/g{index}.md"), &format!("---\n{grader}\n---\n"));
        }
        script.push_str(&format!("  - when: about harbour-{name}.\n    steps: {steps}\n"));
    }
    project.write("model/script.yaml", &script);
    project
}

/// Runs the cases with `claude plugin eval`. Gives the score of each case with the plugin.
fn original_scores(project: &Project) -> BTreeMap<String, f64> {
    let mut gateway = project.practicum(&["gateway", "--script", "model/script.yaml"]);
    let mut gateway =
        Gateway(gateway.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a gateway"));
    let mut line = String::new();
    BufReader::new(gateway.0.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    let served: Value = serde_json::from_str(&line).expect("JSON");
    let home = tempfile::tempdir().expect("a home");
    let ran = Command::new(claude())
        .current_dir(project.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("ANTHROPIC_BASE_URL", served["base_url"].as_str().expect("an address"))
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .args(["plugin", "eval", "harbour", "--trust-plugin", "--no-publish", "--ablation", "with-without"])
        .args(["--runs", "1", "-j", "2", "--allow-tools", "Write", "--json", "original.json"])
        .stdin(Stdio::null())
        .output()
        .expect("Claude Code starts");
    let text = std::fs::read_to_string(project.path().join("original.json"))
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ran.stderr)));
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let cases = result["cases"].as_array().cloned().unwrap_or_default();
    let score = |case: &Value| {
        let error = &case["arms"]["with"][0]["error"];
        assert!(error.is_null(), "{}: {error}", case["name"]);
        Some((case["name"].as_str()?.to_owned(), case["aggregates"]["score"].as_f64()?))
    };
    cases.iter().filter_map(score).collect()
}

/// Runs the cases with practicum. Gives the score of each case with the plugin.
fn own_scores(project: &Project) -> BTreeMap<String, f64> {
    let mut command = project.practicum(&["run", "harbour/evals", "--agent", "claude", "--repeat", "1"]);
    command.args(["--script", "model/script.yaml", "--trust", "--json"]).env("PATH", path_with(&claude()));
    let ran = Ran::of(command.output().expect("practicum starts"));
    let summary = ran.json();
    let cases = summary["cases"].as_array().cloned().unwrap_or_default();
    assert!(!cases.is_empty(), "{}\n{}", ran.stdout, ran.stderr);
    let with = cases.iter().filter(|case| case["arm"] == "with");
    let score = |case: &Value| Some((case["id"].as_str()?.to_owned(), case["score"]["mean"].as_f64()?));
    with.filter_map(score).collect()
}

#[test]
#[ignore = "starts Claude Code 64 times"]
fn scores_are_those_of_claude_plugin_eval() {
    let project = project();
    let original = original_scores(&project);
    let own = own_scores(&project);
    for case in &CASES {
        println!("{:14} {:?} {:?}", case.name, original.get(case.name), own.get(case.name));
    }
    assert_eq!(original.len(), CASES.len());
    assert_eq!(own, original);
}
