//! Measures the cost of Practicum in addition to that of the real agent CLIs.
//!
//! Run with `cargo bench --bench throughput`. PRACTICUM_TEST_CLAUDE and PRACTICUM_TEST_CODEX are the paths of the
//! CLIs; one that is missing is skipped, and the output says so. The floor starts the same CLI as often, as many
//! at once, with the same arguments and environment, against a gateway with the same script, in folders that are
//! ready before. Both are measured alternately, because machines are noisy; only the ratios mean anything. In a
//! sandbox a CLI finds fewer files to read, so it can be faster than without.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use practicum::agents::{AgentCli, AgentTurn, find_agent};
use serde_json::Value;

const TRIALS: usize = 16;
const AT_ONCE: usize = 2;
const ROUNDS: usize = 5;
const PROMPT: &str = "Greet Alice.";

fn main() {
    for (name, variable, script) in [
        (
            "claude",
            "PRACTICUM_TEST_CLAUDE",
            "  - steps:
      - tools: [{ name: Skill, input: { skill: greeter } }]
      - tools: [{ name: Bash, input: { command: echo Ahoy > hello.txt, description: writes } }]
      - Ahoy, Alice!
",
        ),
        (
            "codex",
            "PRACTICUM_TEST_CODEX",
            "  - steps:
      - tools: [{ name: exec_command, input: { cmd: cat .agents/skills/greeter/SKILL.md } }]
      - tools: [{ name: exec_command, input: { cmd: echo Ahoy > hello.txt } }]
      - Ahoy, Alice!
",
        ),
    ] {
        match std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_file()) {
            Some(program) => compare(name, &program, script),
            None => println!("{name} is not measured: {variable} does not say where it is"),
        }
    }
}

/// Measures rounds of the floor and of Practicum, without a sandbox (as the floor) and with it.
fn compare(name: &str, program: &Path, script: &str) {
    let scene = Scene::new(name, program, script);
    let (mut open, mut walled) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        let (floor, off, auto);
        // The order alternates, because the state of the machine differs between first and last.
        if round % 2 == 0 {
            floor = scene.floor();
            off = scene.practicum("off");
            auto = scene.practicum("auto");
        } else {
            auto = scene.practicum("auto");
            off = scene.practicum("off");
            floor = scene.floor();
        }
        println!("{name}, round {round}: bare {floor:.2} s, practicum {off:.2} s, in a sandbox {auto:.2} s");
        open.push(floor / off);
        walled.push(floor / auto);
    }
    println!(
        "{name}, {TRIALS} trials at -j {AT_ONCE}: {:.1} % of the bare CLI's throughput, {:.1} % in a sandbox",
        100.0 * median(&mut open),
        100.0 * median(&mut walled)
    );
}

struct Scene {
    agent: AgentCli,
    folder: tempfile::TempDir,
    /// A PATH on which the CLI is found first.
    path: String,
    gateway: Gateway,
}

impl Scene {
    fn new(name: &str, program: &Path, scenarios: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("written");
        };
        write(
            "greeter/SKILL.md",
            "---\nname: greeter\ndescription: Greets people by name.\n---\n\nSay ahoy.\n",
        );
        write("script.yaml", &format!("practicum_script: 1\nscenarios:\n{scenarios}"));
        write("practicum.toml", "");
        write(
            "evals/e.practicum.yaml",
            &format!(
                "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: {{ agents: [{name}], repeat: {TRIALS} }}\n\
                 cases: [{{ id: greets, prompt: {PROMPT}, activation: must, checks: [{{ contains: Ahoy }}] }}]\n"
            ),
        );
        let gateway = Gateway::start(folder.path());
        let path = format!("{}:/usr/bin:/bin", program.parent().expect("a folder").display());
        Self { agent: find_agent(name).expect("a known agent"), folder, path, gateway }
    }

    /// Measures the seconds for all trials with Practicum. All must pass.
    fn practicum(&self, sandbox: &str) -> f64 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
        command
            .args(["run", "evals", "--script", "script.yaml", "--no-cache", "--json"])
            .args(["-j", &AT_ONCE.to_string(), "--sandbox", sandbox])
            .current_dir(self.folder.path())
            .env_clear()
            .envs([("PATH", &self.path), ("HOME", &self.folder.path().display().to_string())]);
        let started = Instant::now();
        let output = command.stderr(Stdio::null()).output().expect("starts");
        let wall = started.elapsed().as_secs_f64();
        let summary: Value = serde_json::from_slice(&output.stdout).expect("a summary");
        assert_eq!(summary["totals"]["passed"], TRIALS, "{summary}");
        wall
    }

    /// Measures the seconds for as many CLIs without Practicum. All must finish.
    fn floor(&self) -> f64 {
        // The folders are kept until the end: the CLI alone would not delete them, and deleting would slow down
        // what follows.
        let rooms = tempfile::tempdir_in(self.folder.path()).expect("a folder").keep();
        let bare = |trial: usize| Mutex::new(self.bare(&rooms.join(trial.to_string())));
        let commands: Vec<Mutex<Command>> = (0..TRIALS).map(bare).collect();
        let next = AtomicUsize::new(0);
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    while let Some(command) = commands.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let output = command.lock().expect("mine").output().expect("starts");
                        let said = String::from_utf8_lossy(&output.stdout);
                        assert!(output.status.success() && said.contains("Ahoy, Alice!"), "{said}");
                    }
                });
            }
        });
        started.elapsed().as_secs_f64()
    }

    /// Makes the command that Practicum would start, in a workspace that is ready.
    fn bare(&self, room: &Path) -> Command {
        let place = |name: &str| {
            let place = room.join(name);
            std::fs::create_dir_all(&place).expect("a folder");
            place
        };
        let (workspace, home, tmp) = (place("workspace"), place("home"), place("tmp"));
        let skill = self.agent.skills_dir.join_to(&workspace).join("greeter");
        std::fs::create_dir_all(&skill).expect("a folder");
        std::fs::copy(self.folder.path().join("greeter/SKILL.md"), skill.join("SKILL.md")).expect("a skill");
        let session = uuid::Uuid::new_v4().to_string();
        let turn = AgentTurn {
            mcp_servers: &[],
            commands_folder: None,
            prompt: PROMPT,
            workspace: &workspace,
            home: &home,
            tmp: &tmp,
            model: None,
            session: Some(&session),
            is_later: false,
            append_system_prompt: None,
            tools: None,
            gateway: Some(&self.gateway.url),
            sandboxed: false,
            plugins: &[],
            plugin_servers: None,
        };
        let user = BTreeMap::from([("PATH".to_owned(), self.path.clone())]);
        let launch = self.agent.launch(&turn, &user).expect("a launch");
        for (path, text) in &launch.files {
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("written");
        }
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear().envs(&launch.env).current_dir(&workspace);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// A gateway alone, for the CLIs without Practicum.
struct Gateway {
    process: Child,
    url: String,
}

impl Gateway {
    fn start(folder: &Path) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_practicum"))
            .args(["gateway", "--script", "script.yaml"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a gateway");
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.take().expect("its output"));
        said.read_line(&mut line).expect("an address");
        let address: Value = serde_json::from_str(&line).expect("JSON");
        let url = address["base_url"].as_str().expect("an address").to_owned();
        Self { process, url }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
