//! A user who is logged in with an agent's CLI, and has no key in the environment.

use crate::common::{Project, Ran};

const EVAL: &str = "\
practicum: 1
workspace: empty
run: { agents: [claude] }
cases:
  - { id: c, prompt: p, checks: [{ contains: logged in }] }
";

/// Stands in for Claude Code: says what it finds in its home, and renews the login as the real one
/// does.
const CLAUDE: &str = r#"#!/bin/bash
own=$HOME/.claude/.credentials.json
token=$(grep -o 'sk-ant-oat01-[a-z-]*' "$own") && how="logged in with $token" || how="nobody"
echo '{"claudeAiOauth":{"accessToken":"sk-ant-oat01-renewed-and-long-enough"}}' > "$own"
cat USERHOME/diary.txt > /dev/null 2>&1 && how="$how, and read the diary"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$how\",\"session_id\":\"s\"}"
"#;

fn project(login: bool) -> Project {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(&[("evals/e.practicum.yaml", EVAL), ("home/diary.txt", "dear diary")]);
    let home = project.path().join("home");
    project.write("bin/claude", &CLAUDE.replace("USERHOME", &home.display().to_string()));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(project.path().join("bin/claude"), mode).expect("executable");
    if login {
        let login = "{\"claudeAiOauth\":{\"accessToken\":\"sk-ant-oat01-first-and-long-enough\"}}";
        project.write("home/.claude/.credentials.json", login);
    }
    project
}

fn run(project: &Project, sandbox: &str) -> Ran {
    let path = format!("{}:/usr/bin:/bin", project.path().join("bin").display());
    let mut command = project.practicum(&["run", "evals", "--sandbox", sandbox, "--retries", "0", "--json"]);
    command.env("PATH", path).env("HOME", project.path().join("home"));
    Ran::of(command.output().expect("practicum starts"))
}

#[test]
fn the_own_login_is_lent_and_not_stored() {
    for sandbox in ["off", "auto"] {
        let project = project(true);
        let ran = run(&project, sandbox).exits(0);
        assert_eq!(ran.json()["totals"]["passed"], 1, "{sandbox}");
        let own = std::fs::read_to_string(project.path().join("home/.claude/.credentials.json"));
        let own = own.expect("still there");
        assert!(own.contains("first-and-long-enough") && !own.contains("renewed"), "{sandbox}: {own}");
        let found = std::process::Command::new("grep")
            .args(["-rE", "sk-ant-oat01-first", ".practicum"])
            .current_dir(project.path())
            .output()
            .expect("grep");
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{sandbox}");
        let trial = std::fs::read_dir(project.only_run().join("trials")).expect("trials").flatten().next();
        let output = std::fs::read_to_string(trial.expect("one").path().join("output.txt")).expect("output");
        let walls = sandbox == "auto" && !ran.stderr.contains("none, because");
        assert_eq!(output.contains("diary"), !walls, "{sandbox}: {output}");
    }
}

#[test]
fn without_a_login_there_is_none() {
    let project = project(false);
    let summary = run(&project, "off").json();
    assert_eq!(summary["totals"]["passed"], 0);
    assert!(!project.path().join("home/.claude").exists(), "nothing is made in the user's home");
}
