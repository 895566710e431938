//! Shared helpers of the integration tests: the program, a temporary project, and the real CLIs.

#![expect(dead_code, reason = "each test binary uses a part of it")]

pub mod moves;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A project in a temporary folder of its own.
pub struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: tempfile::tempdir().expect("a folder") };
        project.write("practicum.toml", "");
        for (path, content) in files {
            project.write(path, content);
        }
        project
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("create");
        std::fs::write(path, content).expect("write");
    }

    pub fn practicum(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
        // The environment of the machine that runs the tests must not affect their results.
        command
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/bin:/bin")
            // Tests are about their own projects. The tests of trust remove this variable.
            .env("PRACTICUM_TRUST", "settings")
            // Tests do not have to wait for a provider to recover.
            .env("PRACTICUM_RETRY_WAIT", "50ms")
            .args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.practicum(args).output().expect("practicum starts"))
    }

    /// Lists the running processes of this project's trials. Their environment contains the run's id.
    pub fn processes(&self) -> Vec<String> {
        let runs = std::fs::read_dir(self.path().join(".practicum/runs")).into_iter().flatten().flatten();
        runs.flat_map(|run| processes_with(&format!("@{}", run.file_name().to_string_lossy()))).collect()
    }

    /// Gives the only run in the store.
    pub fn only_run(&self) -> PathBuf {
        let runs = std::fs::read_dir(self.path().join(".practicum/runs")).expect("runs");
        let mut paths: Vec<PathBuf> = runs.flatten().map(|entry| entry.path()).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        paths.remove(0)
    }
}

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Parses standard output, which must be a single JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("not one JSON document ({error}):\n{}\n{}", self.stdout, self.stderr)
        })
    }

    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Gives the path of the real Claude Code that `scripts/test` installs.
pub fn claude() -> PathBuf {
    installed("Claude Code", "PRACTICUM_TEST_CLAUDE")
}

/// Gives the path of the real Codex that `scripts/test` installs.
pub fn codex() -> PathBuf {
    installed("Codex", "PRACTICUM_TEST_CODEX")
}

/// Gives the path of the real opencode that `scripts/test` installs, with the `rg` that it needs beside it.
pub fn opencode() -> PathBuf {
    installed("opencode", "PRACTICUM_TEST_OPENCODE")
}

/// Gives the path of the real goose that `scripts/test` installs.
pub fn goose() -> PathBuf {
    installed("goose", "PRACTICUM_TEST_GOOSE")
}

/// Gives the path of the real GitHub Copilot CLI that `scripts/test` installs.
pub fn copilot() -> PathBuf {
    installed("GitHub Copilot CLI", "PRACTICUM_TEST_COPILOT")
}

/// Gives the path of the real Qwen Code that `scripts/test` installs, with the Node that it needs beside it.
pub fn qwen() -> PathBuf {
    installed("Qwen Code", "PRACTICUM_TEST_QWEN")
}

/// Gives the path of the real Gemini CLI that `scripts/test` installs.
pub fn gemini() -> PathBuf {
    installed("Gemini CLI", "PRACTICUM_TEST_GEMINI")
}

fn installed(agent: &str, variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_file()).unwrap_or_else(|| {
        panic!("no {agent} to test with; scripts/test installs it and says in {variable} where it is")
    })
}

/// Gives a PATH on which the given program is found first.
pub fn path_with(program: &Path) -> String {
    format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display())
}

/// Lists every process whose environment contains this text.
#[cfg(target_os = "macos")]
pub fn processes_with(text: &str) -> Vec<String> {
    let listed = Command::new("ps").args(["axwwE", "-o", "command="]).output().expect("ps starts");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    listed.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// Lists every process whose environment contains this text.
#[cfg(not(target_os = "macos"))]
pub fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("proc").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let state = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let zombie = state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
            !zombie && String::from_utf8_lossy(&environment).contains(text)
        })
        .map(|entry| {
            std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " ")
        })
        .collect()
}

/// Lists the sandbox backends that work on this machine.
pub fn sandbox_means() -> Vec<&'static str> {
    let all = [("bubblewrap", has_bubblewrap()), ("landlock", has_landlock())];
    all.into_iter().filter(|(_, there)| *there).map(|(means, _)| means).collect()
}

/// Says whether bubblewrap works. `scripts/test` installs it if possible; a test does not.
pub fn has_bubblewrap() -> bool {
    let works = Command::new("bwrap").args(["--unshare-user", "--ro-bind", "/", "/", "true"]).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        eprintln!("skipped: bubblewrap does not work on this machine");
    }
    works
}

pub fn has_landlock() -> bool {
    let program = env!("CARGO_BIN_EXE_practicum");
    let works = Command::new(program).args(["confined", "--ro", "/", "--", "/bin/true"]).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        eprintln!("skipped: landlock does not work on this machine");
    }
    works
}

/// Sends the signal of Ctrl-C.
pub fn interrupt(child: &std::process::Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill").success());
}

#[track_caller]
pub fn wait_until(holds: impl Fn() -> bool) {
    let started = std::time::Instant::now();
    while !holds() {
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "it does not come to hold");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
