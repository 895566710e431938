//! A NATS server, workers and a project for the tests.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{Project, Ran};

/// The key that coordinators and workers of the tests share.
pub const KEY: &str = "a key that all machines of the test share";

/// Gives the NATS server that `scripts/test` installs.
fn nats_server() -> PathBuf {
    let path = std::env::var_os("PRACTICUM_TEST_NATS").map(PathBuf::from);
    path.filter(|path| path.is_file()).unwrap_or_else(|| {
        panic!("no NATS server to test with; scripts/test installs it and says in PRACTICUM_TEST_NATS where it is")
    })
}

/// A process that is killed when the test ends.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("ended");
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.0.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }
}

/// A NATS server with its storage in a folder of its own.
pub struct TestServer {
    process: Option<Process>,
    pub folder: tempfile::TempDir,
    pub port: u16,
    /// More lines of the configuration.
    pub config: String,
    /// More settings of its storage.
    pub storage: String,
}

impl TestServer {
    pub fn start() -> Self {
        Self::start_with("", "")
    }

    pub fn start_with(config: &str, storage: &str) -> Self {
        let mut server = Self {
            process: None,
            folder: tempfile::tempdir().expect("a folder"),
            port: free_port(),
            config: config.to_owned(),
            storage: storage.to_owned(),
        };
        server.start_process();
        server
    }

    fn start_process(&mut self) {
        let config = self.folder.path().join("nats.conf");
        let text = format!(
            "listen: 127.0.0.1:{}\njetstream {{ store_dir: \"{}\", sync_interval: always {} }}\n{}\n",
            self.port,
            self.folder.path().display(),
            self.storage,
            self.config
        );
        std::fs::write(&config, text).expect("write");
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .expect("a log");
        let child =
            Command::new(nats_server()).arg("-c").arg(&config).stdout(Stdio::null()).stderr(log).spawn();
        self.process = Some(Process(child.expect("the server starts")));
        wait_for("the server", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills the server and starts it again with the same storage.
    pub fn restart(&mut self, pause: Duration) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
        std::thread::sleep(pause);
        self.start_process();
    }

    pub fn process_id(&self) -> u32 {
        self.process.as_ref().expect("a process").0.id()
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts a worker with its own home, and waits until it is ready.
    pub fn worker(&self, name: &str, more: &[&str]) -> WorkerProcess {
        self.worker_with_key(name, more, KEY)
    }

    pub fn worker_with_key(&self, name: &str, more: &[&str], key: &str) -> WorkerProcess {
        let args = [&["--name", name, "--sandbox", "off"], more].concat();
        start_worker(&self.url(), &args, &[("PRACTICUM_RECORD_KEY", key)])
    }
}

/// Starts a worker with its own home, and waits until it is ready.
pub fn start_worker(url: &str, args: &[&str], environment: &[(&str, &str)]) -> WorkerProcess {
    let worker = spawn_worker(url, args, environment);
    wait_for("the worker", || worker.log().contains("ready for trials"));
    worker
}

/// Starts a worker with its own home.
pub fn spawn_worker(url: &str, args: &[&str], environment: &[(&str, &str)]) -> WorkerProcess {
    let home = tempfile::tempdir().expect("a folder");
    let log = home.path().join("log");
    let child = Command::new(env!("CARGO_BIN_EXE_practicum"))
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", home.path())
        .env("PRACTICUM_RECORD_KEY", KEY)
        .envs(environment.iter().copied())
        .current_dir(home.path())
        .args(["worker", url])
        .args(args)
        .stderr(std::fs::File::create(&log).expect("a log"))
        .stdout(Stdio::null())
        .spawn()
        .expect("the worker starts");
    WorkerProcess { process: Process(child), home }
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// A worker in a process of its own.
pub struct WorkerProcess {
    pub process: Process,
    pub home: tempfile::TempDir,
}

impl WorkerProcess {
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }
}

/// Waits long enough for a slow machine.
#[track_caller]
pub fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(120), "{what} is not there");
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// A project whose script decides every result. Each answer takes `delay`, and `cases` cases are run once.
pub fn project(cases: usize, delay: &str) -> Project {
    let skill = "---\nname: gull\ndescription: Speaks like a gull.\n---\n\nSay kee-ow.\n";
    let script = format!(
        "practicum_script: 1\nscenarios:\n  - {{ name: dog, when: bark, steps: [{{ text: woof, delay: {delay} }}] }}\n  \
         - {{ name: gull, when: speak, steps: [{{ text: kee-ow, delay: {delay} }}] }}\n"
    );
    let mut evals = "practicum: 1\nskill: ..\nrun: { agents: [builtin], script: script.yaml }\n\
        gates: { pass_rate: 0.6 }\ncases:\n"
        .to_owned();
    for number in 1..=cases {
        let prompt = if number % 4 == 0 { "bark" } else { "speak" };
        evals += &format!(
            "  - {{ id: case-{number}, prompt: {prompt} {number}, checks: [{{ contains: kee-ow }}] }}\n"
        );
    }
    Project::new(&[
        ("gull/SKILL.md", skill),
        ("gull/evals/script.yaml", &script),
        ("gull/evals/a.practicum.yaml", &evals),
    ])
}

/// Makes the command that runs a project on workers.
pub fn run_command(project: &Project, url: &str, more: &[&str]) -> Command {
    let mut command = project.practicum(&["run", "gull", "--sandbox", "off", "--json", "--workers", url]);
    command.args(more).env("PRACTICUM_RECORD_KEY", KEY);
    command
}

/// Continues the last run of a project on workers.
pub fn resume(project: &Project, url: &str) -> Ran {
    let mut command = project.practicum(&["run", "--resume", "--json", "--workers", url]);
    Ran::of(command.env("PRACTICUM_RECORD_KEY", KEY).output().expect("practicum starts"))
}

pub fn run(project: &Project, server: &TestServer, more: &[&str]) -> Ran {
    Ran::of(run_command(project, &server.url(), more).output().expect("practicum starts"))
}

/// Starts a run on workers in the background.
pub fn start_run(project: &Project, server: &TestServer, more: &[&str]) -> Process {
    start_run_at(project, &server.url(), more)
}

/// Starts a run on the workers of a server with this address in the background.
pub fn start_run_at(project: &Project, url: &str, more: &[&str]) -> Process {
    let mut command = run_command(project, url, more);
    let log = std::fs::File::create(project.path().join("run.log")).expect("a log");
    Process(command.stdout(Stdio::null()).stderr(log).spawn().expect("practicum starts"))
}

/// Gives what a run in the background has said.
pub fn run_log(project: &Project) -> String {
    std::fs::read_to_string(project.path().join("run.log")).unwrap_or_default()
}

/// Gives the names of the cases of a project with so many of them, in the order of `finished_cases`.
pub fn case_names(count: usize) -> Vec<String> {
    let mut names: Vec<String> = (1..=count).map(|number| format!("case-{number}")).collect();
    names.sort();
    names
}

/// Counts the lines of a run's log with this event.
pub fn events(project: &Project, event: &str) -> Vec<Value> {
    let runs = std::fs::read_dir(project.path().join(".practicum/runs")).into_iter().flatten().flatten();
    let logs = runs.filter_map(|run| std::fs::read_to_string(run.path().join("events.jsonl")).ok());
    let lines: Vec<String> =
        logs.flat_map(|log| log.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let parsed = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    parsed
        .map(|line| line.get("entry").cloned().unwrap_or(line))
        .filter(|line| line["event"] == event)
        .collect()
}

/// Gives the ids of the trials that a run has finished, each as often as it was counted.
pub fn finished_cases(project: &Project) -> Vec<String> {
    let mut cases: Vec<String> = events(project, "trial_finished")
        .iter()
        .map(|line| line["record"]["case"].as_str().unwrap_or_default().to_owned())
        .collect();
    cases.sort();
    cases
}

/// Removes what differs between two equal runs: ids and times.
pub fn without_times(mut value: Value) -> Value {
    fn remove(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                // The number of input tokens follows from the length of the workspace's path.
                for key in ["run", "seconds", "started", "at", "duration", "median_seconds", "mark", "input"]
                {
                    fields.remove(key);
                }
                fields.values_mut().for_each(remove);
            }
            Value::Array(items) => items.iter_mut().for_each(remove),
            _ => {}
        }
    }
    remove(&mut value);
    value
}

/// Lists the files below a folder, with paths relative to it.
pub fn files_below(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder").flatten() {
            match entry.file_type().expect("a kind").is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path().strip_prefix(folder).expect("below").display().to_string()),
            }
        }
    }
    files.sort();
    files
}
