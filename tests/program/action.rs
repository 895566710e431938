//! The steps of the GitHub action, run as the action runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Project, Ran};

const SKILL: &str = "---\nname: gull\ndescription: Speaks like a gull. Use it when somebody wants to hear a gull.\n---\n\nSay kee-ow.\n";
const EVALS: &str = "practicum: 1\nskill: ..\nrun: { agents: [builtin], script: script.yaml }\n\
    cases:\n  - { id: speaks, prompt: speak, checks: [{ contains: kee-ow }] }\n";

fn repository() -> Project {
    Project::new(&[
        ("gull/SKILL.md", SKILL),
        ("gull/evals/gull.practicum.yaml", EVALS),
        ("gull/evals/script.yaml", "practicum_script: 1\ndefault: kee-ow\n"),
    ])
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/action").join(name)
}

/// Runs a step with the program on its path. Gives what it printed, and its outputs by name.
fn run_step(project: &Project, variables: &[(&str, &str)]) -> (Ran, Vec<(String, String)>) {
    let outputs = project.path().join("../outputs").with_extension(uuid::Uuid::new_v4().to_string());
    let program = Path::new(env!("CARGO_BIN_EXE_practicum")).parent().expect("a folder");
    let output = Command::new("bash")
        .arg(script("run"))
        .current_dir(project.path())
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
        .env("HOME", project.path())
        .env("GITHUB_OUTPUT", &outputs)
        .envs(variables.iter().copied())
        .output();
    let ran = Ran::of(output.expect("bash starts"));
    let text = std::fs::read_to_string(&outputs).unwrap_or_default();
    let _ = std::fs::remove_file(&outputs);
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    (ran, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[track_caller]
fn output<'o>(outputs: &'o [(String, String)], name: &str) -> Option<&'o str> {
    outputs.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
}

#[test]
fn the_step_reports_a_pass_and_where_the_results_are() {
    let project = repository();
    let (ran, outputs) = run_step(&project, &[("INPUT_PATHS", "gull"), ("INPUT_REPEAT", "2")]);
    let ran = ran.exits(0);
    assert_eq!(output(&outputs, "exit"), Some("0"), "{}", ran.stderr);
    assert_eq!(output(&outputs, "outcome"), Some("passed"));
    for (name, part) in [("summary", "\"passed\""), ("report", "<html"), ("comment", "<!-- ")] {
        let path = output(&outputs, name).expect("a path");
        let text = std::fs::read_to_string(project.path().join(path)).expect("written");
        assert!(text.contains(part), "{name}");
    }
}

#[test]
fn the_step_ends_with_zero_and_the_action_with_the_verdict() {
    let project = repository();
    project.write("gull/evals/script.yaml", "practicum_script: 1\ndefault: woof\n");
    let (ran, outputs) = run_step(&project, &[("INPUT_PATHS", "gull")]);
    ran.exits(0);
    assert_eq!((output(&outputs, "exit"), output(&outputs, "outcome")), (Some("1"), Some("failed")));
    let action = include_str!("../../action.yml");
    assert!(action.contains("run: exit \"${PRACTICUM_EXIT:-3}\""));
    let (ran, outputs) = run_step(&project, &[("INPUT_PATHS", "nowhere")]);
    ran.exits(0);
    assert_eq!(output(&outputs, "exit"), Some("2"));
    let (ran, outputs) = run_step(&project, &[("INPUT_MODE", "everything")]);
    ran.exits(0);
    assert_eq!(output(&outputs, "exit"), Some("2"));
    // A gate and its confidence reach the program.
    let (ran, outputs) =
        run_step(&project, &[("INPUT_PATHS", "gull"), ("INPUT_GATE", "pass_rate=0.0 pass_rate=2")]);
    let ran = ran.exits(0);
    assert_eq!(output(&outputs, "exit"), Some("2"), "{}", ran.stderr);
}

/// A pull request from a fork brings scripts that would run with the keys of the project.
#[test]
fn a_fork_is_read_and_none_of_it_is_run() {
    let project = repository();
    let evil = EVALS.replace("prompt: speak", "prompt: speak, setup: touch ../../../was-run");
    project.write("gull/evals/gull.practicum.yaml", &evil);
    let (ran, outputs) = run_step(&project, &[("INPUT_PATHS", "gull"), ("IS_FORK", "true")]);
    let ran = ran.exits(0);
    assert_eq!(output(&outputs, "exit"), Some("0"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(output(&outputs, "report"), None);
    assert!(!project.path().join(".practicum").exists(), "something was run");
    // Evals that cannot be read fail also there.
    project.write("gull/evals/gull.practicum.yaml", "practicum: 1\nskill: ..\ncases: 7\n");
    let (_, outputs) = run_step(&project, &[("INPUT_PATHS", "gull"), ("IS_FORK", "true")]);
    assert_eq!(output(&outputs, "exit"), Some("2"));
}

#[test]
fn a_pull_request_runs_what_it_changed() {
    let project = repository();
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"];
        let ran = Command::new("git").arg("-C").arg(project.path()).args(own).args(args).output();
        assert!(ran.expect("git").status.success());
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    let inputs = [("INPUT_PATHS", "gull"), ("INPUT_CHANGED_ONLY", "true"), ("BASE_REF", "main")];
    let (ran, outputs) = run_step(&project, &inputs);
    assert_eq!((output(&outputs, "exit"), output(&outputs, "report")), (Some("0"), None));
    assert!(ran.stderr.contains("1 of 1 suites have not changed"), "{}", ran.stderr);
    project.write("gull/SKILL.md", &SKILL.replace("Say", "Shout"));
    let (_, outputs) = run_step(&project, &inputs);
    assert!(output(&outputs, "report").is_some());
}

/// The stand-in for GitHub keeps comments in a file, and understands the three calls that the step makes.
const GH: &str = r#"#!/usr/bin/env python3
import json, os, sys
store = os.environ["COMMENTS"]
comments = json.load(open(store)) if os.path.exists(store) else []
args = sys.argv[1:]
assert args[0] == "api", args
body = next((open(arg[len("body=@"):]).read() for arg in args if arg.startswith("body=@")), None)
path = next(arg for arg in args if arg.startswith("repos/"))
if "PATCH" in args:
    next(c for c in comments if c["id"] == int(path.rsplit("/", 1)[1]))["body"] = body
elif "POST" in args:
    comments.append({"id": 100 + len(comments), "body": body})
else:
    # Pages follow each other without a separator, as gh prints them.
    for at in range(0, len(comments), 2): print(json.dumps(comments[at:at + 2]))
json.dump(comments, open(store, "w"))
"#;

#[test]
fn one_comment_is_written_and_later_runs_update_it() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(&[("bin/gh", GH)]);
    let others = ["nice", "really", "<!-- something else -->"];
    let others: Vec<_> =
        others.iter().enumerate().map(|(id, body)| serde_json::json!({"id": id, "body": body})).collect();
    project.write("comments.json", &serde_json::to_string(&others).expect("json"));
    let gh = project.path().join("bin/gh");
    std::fs::set_permissions(&gh, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let comment = |text: &str, number: &str| {
        project.write("comment.md", &format!("<!-- practicum -->\n{text}\n"));
        let output = Command::new("bash")
            .arg(script("comment"))
            .arg("comment.md")
            .current_dir(project.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin:/usr/local/bin", gh.parent().expect("a folder").display()))
            .env("COMMENTS", project.path().join("comments.json"))
            .envs([("GITHUB_REPOSITORY", "o/r"), ("GH_TOKEN", "t"), ("PULL_REQUEST", number)])
            .output();
        Ran::of(output.expect("bash starts"))
    };
    let bodies = || {
        let text = std::fs::read_to_string(project.path().join("comments.json")).expect("comments");
        let comments: Vec<serde_json::Value> = serde_json::from_str(&text).expect("json");
        comments.iter().map(|comment| comment["body"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    comment("first", "7").exits(0);
    assert_eq!(bodies()[3], "<!-- practicum -->\nfirst\n");
    comment("second", "7").exits(0);
    assert_eq!(bodies().len(), 4);
    assert_eq!(bodies()[3], "<!-- practicum -->\nsecond\n");
    assert_eq!(bodies()[0], "nice");
    comment("third", "7; rm -rf /").exits(2);
    assert_eq!(bodies()[3], "<!-- practicum -->\nsecond\n");
}

/// A step that names a script which is not there would fail only on GitHub.
#[test]
fn every_script_that_the_action_names_exists() {
    let action = include_str!("../../action.yml");
    let named: Vec<&str> = action.split("scripts/action/").skip(1).collect();
    assert_eq!(named.len(), 3);
    for name in named {
        let name = name.split('"').next().expect("a name");
        assert!(script(name).is_file(), "{name}");
    }
    // What an input says never becomes part of a script's text.
    for line in action.lines().filter(|line| line.trim_start().starts_with("run:")) {
        assert!(!line.contains("${{"), "{line}");
    }
}
