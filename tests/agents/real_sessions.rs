//! Sessions that the real Claude Code and the real Codex record, graded afterwards.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::moves::SKILL;
use crate::common::{Project, claude, codex};

const EVAL: &str = "\
practicum: 1
skill: ../greeter
workspace: empty
cases:
  - id: greets
    prompt: Greet Alice.
    activation: must
    checks:
      - { id: says, contains: 'Ahoy, Alice' }
      - { id: shell, tool_used: shell }
      - { id: cheap, limit: { tokens: 1000000 } }
      - { id: files, files: { path: '*', exists: false }, required: false }
";

const SCRIPT: &str = "\
practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - STEP
      - { text: 'Ahoy, Alice!', usage: { input: 100, output: 10 } }
";

/// A gateway that ends with the test.
struct Gateway(std::process::Child);

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a gateway that plays the script, and gives its address for this API.
fn serve(project: &Project, api: &str) -> (Gateway, String) {
    let mut command = project.practicum(&["gateway", "--script", "script.yaml"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the gateway starts");
    let mut gateway = Gateway(child);
    let lines = BufReader::new(gateway.0.stdout.take().expect("its output")).lines();
    let mut served = lines.map(|line| serde_json::from_str::<Value>(&line.expect("a line")).expect("JSON"));
    let served = served.find(|line| line["api"] == api).expect("an address");
    let url = served["base_url"].as_str().expect("an address").to_owned();
    (gateway, url)
}

fn project(step: &str) -> Project {
    Project::new(&[
        ("greeter/SKILL.md", SKILL),
        ("work/.claude/skills/greeter/SKILL.md", SKILL),
        ("work/.agents/skills/greeter/SKILL.md", SKILL),
        ("evals/g.practicum.yaml", EVAL),
        ("script.yaml", &SCRIPT.replace("STEP", step)),
    ])
}

/// The only file below a folder whose name ends so.
fn only_file(folder: &Path, ending: &str) -> PathBuf {
    let mut open = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path if path.to_string_lossy().ends_with(ending) => found.push(path),
                _ => {}
            }
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn grade(project: &Project, session: &Path) -> Value {
    let session = session.to_str().expect("a path");
    project
        .run(&["grade", "--session", session, "--spec", "evals/g.practicum.yaml", "--json"])
        .exits(0)
        .json()
}

fn verdicts(graded: &Value) -> Vec<(&str, &str)> {
    let results = graded["results"].as_array().expect("results").iter();
    results
        .map(|one| (one["id"].as_str().expect("an id"), one["verdict"].as_str().expect("a verdict")))
        .collect()
}

const EXPECTED: [(&str, &str); 5] =
    [("activation", "pass"), ("says", "pass"), ("shell", "pass"), ("cheap", "pass"), ("files", "not_scored")];

#[test]
fn a_session_of_claude_code_is_graded() {
    let project = project(
        "{ tools: [{ name: Skill, input: { skill: greeter } }, { name: Bash, input: { command: echo ahoy } }] }",
    );
    let (_gateway, url) = serve(&project, "anthropic-messages");
    let ran = Command::new(claude())
        .current_dir(project.path().join("work"))
        .env_clear()
        .env("HOME", project.path().join("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("IS_SANDBOX", "1")
        .env("ANTHROPIC_BASE_URL", url)
        .env("ANTHROPIC_API_KEY", "none")
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("CLAUDE_CODE_DISABLE_BUNDLED_SKILLS", "1")
        .args(["-p", "--dangerously-skip-permissions", "--", "Greet Alice."])
        .stdin(Stdio::null())
        .output()
        .expect("Claude Code starts");
    assert!(ran.status.success(), "{ran:?}");
    let graded = grade(&project, &only_file(&project.path().join("home/.claude/projects"), ".jsonl"));
    assert_eq!(verdicts(&graded), EXPECTED, "{graded:#}");
    let about = &graded["session"];
    assert_eq!((&about["format"], &about["tool_calls"]), (&json!("claude-code"), &json!(2)), "{graded:#}");
    assert!(about["cost_usd"].is_number() && about["seconds"].is_number(), "{graded:#}");
}

#[test]
fn a_session_of_codex_is_graded() {
    let project =
        project("{ tools: [{ name: exec_command, input: { cmd: cat .agents/skills/greeter/SKILL.md } }] }");
    let (_gateway, url) = serve(&project, "openai-responses");
    let config = format!(
        "model_provider = \"local\"\n[model_providers.local]\nname = \"local\"\nbase_url = \"{url}\"\nenv_key = \
         \"CODEX_API_KEY\"\nwire_api = \"responses\"\n"
    );
    project.write("home/.codex/config.toml", &config);
    let ran = Command::new(codex())
        .current_dir(project.path().join("work"))
        .env_clear()
        .env("HOME", project.path().join("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("CODEX_API_KEY", "none")
        .args([
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "--",
            "Greet Alice.",
        ])
        .stdin(Stdio::null())
        .output()
        .expect("Codex starts");
    assert!(ran.status.success(), "{ran:?}");
    let graded = grade(&project, &only_file(&project.path().join("home/.codex/sessions"), ".jsonl"));
    assert_eq!(verdicts(&graded), EXPECTED, "{graded:#}");
    let about = &graded["session"];
    assert_eq!((&about["format"], &about["tool_calls"]), (&json!("codex"), &json!(1)), "{graded:#}");
    assert_eq!(about["activated"], json!(["greeter"]));
}
