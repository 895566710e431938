//! Secrets of the user in what is stored of a run.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{Project, Ran, wait_until};
use crate::{EVALS, project, set_agent};

const KEY: &str =
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTU\n-----END KEY-----\n";

/// The user's environment: each secret with a part of it that must never be stored.
const SECRETS: [(&str, &str, &str); 6] = [
    ("MY_LOGIN", "declared-by-the-agent", "declared-by"),
    ("DB_URL", "postgres://ann:passw0rd-of-ann@db/x", "passw0rd-of"),
    ("MAIL_PASSWD", "mail pass/word+1", "pass/word"),
    ("A_TOKEN", "prefix-12345678", "prefix-12345678"),
    ("B_TOKEN", "prefix-12345678-and-more", "and-more"),
    ("DEPLOY_KEY", KEY, "AASCBKcwggSjAgEAAoIBAQC7VJTU"),
];

/// Makes a project whose agent executes these commands, with secrets in its answer if it wants.
fn secretive_project(commands: &str) -> Project {
    let project = project();
    set_agent(&project, commands);
    let settings = std::fs::read_to_string(project.path().join("practicum.toml")).expect("settings");
    project.write("practicum.toml", &format!("{settings}credentials = [\"MY_LOGIN\"]\n"));
    project.write("evals/e.practicum.yaml", &EVALS.replace("run:", "workspace: empty\nrun:"));
    project
}

/// Lists everything below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    let mut at = 0;
    while at < found.len() {
        if found[at].is_dir() {
            found
                .extend(std::fs::read_dir(&found[at]).expect("a folder").flatten().map(|entry| entry.path()));
        }
        at += 1;
    }
    found
}

#[track_caller]
fn holds_no_secret(project: &Project) {
    for path in below(&project.path().join(".practicum")) {
        let content = if path.is_file() { std::fs::read(&path).expect("a file") } else { Vec::new() };
        let text = format!("{}\n{}", path.display(), String::from_utf8_lossy(&content));
        for (name, _, part) in SECRETS {
            assert!(!text.contains(part), "{name} is in {}", path.display());
        }
        for encoded in [
            "pass%2Fword",
            "pass%2fword",
            "cGFzc3cwcmQtb2YtYW5u",
            "YW5kLW1vcmU",
            "MTIzNDU2NzgtYW5kLW1vcm",
            "EyMzQ1Njc4LWFuZC1tb3Jl",
            "xMjM0NTY3OC1hbmQtbW9yZ",
        ] {
            assert!(!text.contains(encoded), "{encoded} is in {}", path.display());
        }
    }
}

fn say(text: &str) -> String {
    let line = serde_json::json!({"type": "text", "text": text}).to_string();
    format!("cat <<'EOF'\n{line}\nEOF\n")
}

#[test]
fn a_secret_is_stored_in_another_form() {
    let all: String = SECRETS.iter().map(|(_, value, _)| format!("{value}\n")).collect();
    let in_json = serde_json::json!({ "all": all }).to_string();
    let commands = [
        say(&all),
        say(&in_json),
        say("mail%20pass%2Fword%2B1 mail+pass%2fword%2b1"),
        say("cGFzc3cwcmQtb2YtYW5u eHByZWZpeC0xMjM0NTY3OC1hbmQtbW9yZQ=="),
        format!("cat >&2 <<'EOF'\n{all}EOF\n"),
        format!(
            "mkdir and-prefix-12345678-and-more; cat > and-prefix-12345678-and-more/prefix-12345678-and-more.txt <<'EOF'\n{all}EOF\n"
        ),
        format!("cat > notes.json <<'EOF'\n{in_json}\nEOF\n"),
    ];
    let project = secretive_project(&commands.concat());
    let mut command = project.practicum(&["run", "evals", "--no-probe"]);
    command.envs(SECRETS.map(|(name, value, _)| (name, value)));
    Ran::of(command.output().expect("starts")).exits(0);
    holds_no_secret(&project);
    let run = project.only_run();
    for path in below(&run) {
        let mode = path.metadata().expect("there").permissions().mode() & 0o777;
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode & !expected, 0, "{}: {mode:o}", path.display());
    }
    let kept = below(&run).into_iter().filter(|path| path.ends_with("[secret].txt")).count();
    assert_eq!(kept, 1, "the file is kept under a name without the secret");
    // The files are still found when the run is graded again.
    project.run(&["grade", "latest"]).exits(0);
}

#[test]
fn a_killed_run_leaves_what_the_agent_said_as_it_was() {
    let all: String = SECRETS.iter().map(|(_, value, _)| format!("{value}\n")).collect();
    let filler = "x".repeat(4000);
    let commands =
        [say(&all), say(&filler), format!("cat >&2 <<'EOF'\n{all}{filler}\nEOF\n"), "sleep 60\n".to_owned()];
    let project = secretive_project(&commands.concat());
    let mut command = project.practicum(&["run", "evals", "--no-probe"]);
    command.envs(SECRETS.map(|(name, value, _)| (name, value)));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let has_said =
        || below(&project.path().join(".practicum")).iter().any(|path| path.ends_with("stderr.txt"));
    wait_until(|| project.path().join(".practicum/runs").is_dir() && has_said());
    child.kill().expect("killed");
    child.wait().expect("ended");
    holds_no_secret(&project);
    project.run(&["clean"]).exits(0);
}

#[test]
fn a_secret_in_pieces_or_in_base64_is_stored() {
    let secret = "prefix-12345678-and-more";
    let in_base64 = |before: &str| {
        format!("printf '%s' '{before}{secret}zz' | base64 -w0 >> notes.txt; echo >> notes.txt\n")
    };
    let commands = [
        in_base64(""),
        in_base64("x"),
        in_base64("xy"),
        // A secret that comes in two writes, so that neither contains it, and one that is never completed.
        format!("printf '%s' '{}' >&2; sleep 0.3; printf '%s\\n' '{}' >&2\n", &secret[..9], &secret[9..]),
        "cat notes.txt >&2\n".to_owned(),
        format!(
            "mkdir -p 'deep/{secret}'; echo x > 'deep/{secret}/$(printf mail%%20pass%%2Fword%%2B1).txt'\n"
        ),
        "echo x > mail%20pass%2Fword%2B1.txt\n".to_owned(),
    ];
    for kill in [false, true] {
        let end = if kill { "touch said.txt; sleep 60\n" } else { "" };
        let project = secretive_project(&format!("{}{end}", commands.concat()));
        let mut command = project.practicum(&["run", "evals", "--no-probe"]);
        command.envs(SECRETS.map(|(name, value, _)| (name, value)));
        command.env("TMPDIR", project.path().join("tmp"));
        std::fs::create_dir(project.path().join("tmp")).expect("a folder");
        if kill {
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
            let said = || below(&project.path().join("tmp")).iter().any(|path| path.ends_with("said.txt"));
            wait_until(said);
            child.kill().expect("killed");
            child.wait().expect("ended");
        } else {
            Ran::of(command.output().expect("starts")).exits(0);
        }
        holds_no_secret(&project);
        project.run(&["clean"]).exits(0);
    }
}

#[test]
fn the_key_of_the_viewer_is_among_the_arguments_of_a_program() {
    let project = project();
    project.run(&["run", "evals"]).exits(0);
    let opener = project.path().join("bin/xdg-open");
    let told = project.path().join("told");
    project.write("bin/xdg-open", &format!("#!/bin/sh\necho \"$@\" > {0}.new; cp \"$1\" {0}.page; stat -c %a \"$1\" > {0}.mode; mv {0}.new {0}\n", told.display()));
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let mut command = project.practicum(&["view", "--open"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", project.path().join("bin").display()));
    let mut child = command.stdout(Stdio::piped()).spawn().expect("starts");
    wait_until(|| told.exists());
    let _ = child.kill();
    let output = child.wait_with_output().expect("ended");
    let url = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let token = url.rsplit('/').find(|part| part.len() >= 16).expect("a token in the address").to_owned();
    let read = |name: &str| std::fs::read_to_string(project.path().join(name)).expect("told");
    assert!(!read("told").contains(&token), "{}", read("told"));
    assert!(read("told.page").contains(&url), "the page leads to the viewer");
    assert_eq!(read("told.mode").trim(), "600");
}
