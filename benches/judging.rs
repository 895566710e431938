//! Measures the cost of judging without the time of the judge.
//!
//! Run with `cargo bench --bench judging`. A thousand stored trials are regraded, each with one question to a
//! judge that answers after 1 ms or 200 ms, fifty at a time. The floor is a program that only sends the same
//! number of requests to the same judge, as many at once. Both are measured in one run.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use futures_util::StreamExt;
use serde_json::{Value, json};

const CALLS: usize = 1000;
const AT_ONCE: usize = 50;
const ROUNDS: usize = 3;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path();
    write(project, "practicum.toml", "[agents.echo]\ncommand = [\"/bin/echo\", \"done\"]\n");
    let case =
        |n: usize| format!("  - {{id: c{n}, prompt: p, checks: [{{id: done, judge: 'It is done {n}.'}}]}}\n");
    let cases: String = (0..CALLS).map(case).collect();
    let suite = format!("practicum: 1\nworkspace: empty\nrun: {{agents: [echo]}}\ncases:\n{cases}");
    write(project, "e.practicum.yaml", &suite);
    let run =
        practicum(project, &["run", ".", "-j", "8", "--sandbox", "off", "--no-judge", "--json"]).output();
    let stored: Value = serde_json::from_slice(&run.expect("starts").stdout).expect("a summary");
    let run = stored["run"].as_str().expect("a run").to_owned();

    for delay in ["1ms", "200ms"] {
        let judge = Judge::start(project, delay);
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for round in 1..=ROUNDS {
            let floor = floor(&judge.url);
            let graded = grade(project, &run, &judge.url);
            println!("judge of {delay}, round {round}: floor {floor:.2} s, practicum {graded:.2} s");
            floors.push(floor);
            ours.push(graded);
        }
        println!(
            "{CALLS} questions, {AT_ONCE} at once, to a judge of {delay}: {:.2} s, {:.2} s beside the floor",
            median(&mut ours),
            median(&mut ours) - median(&mut floors)
        );
    }
}

/// Measures the seconds for regrading the run with every question asked again.
fn grade(project: &Path, run: &str, url: &str) -> f64 {
    let args =
        ["grade", run, "--no-cache", "--transport", "api", "--judge-jobs", &AT_ONCE.to_string(), "--json"];
    let started = Instant::now();
    let output = practicum(project, &args)
        .envs([("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "a-key")])
        .output()
        .expect("starts");
    let seconds = started.elapsed().as_secs_f64();
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(document["summary"]["totals"]["passed"], CALLS, "{}", document["summary"]["totals"]);
    seconds
}

/// Measures the seconds for the requests alone.
fn floor(url: &str) -> f64 {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
    let body = json!({
        "model": "claude-sonnet-4-6",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "The statements to decide"}],
    });
    let started = Instant::now();
    runtime.block_on(async {
        let ask = |_| {
            let request = client.post(format!("{url}/v1/messages")).json(&body);
            async move { request.send().await.expect("an answer").bytes().await.expect("a body").len() }
        };
        let answers: Vec<usize> =
            futures_util::stream::iter(0..CALLS).map(ask).buffer_unordered(AT_ONCE).collect().await;
        assert!(answers.iter().all(|bytes| *bytes > 0));
    });
    started.elapsed().as_secs_f64()
}

/// A gateway that acts as a judge.
struct Judge {
    process: Child,
    url: String,
}

impl Judge {
    fn start(project: &Path, delay: &str) -> Self {
        let script = format!(
            "practicum_script: 1\nscenarios:\n  - when: The statements to decide\n    steps:\n      - delay: {delay}\n        \
             tools:\n          - name: report_marks\n            input:\n              \
             results: [{{ id: done, verdict: pass, score: null, evidence: [done], reasoning: It is., weak: null }}]\n"
        );
        write(project, "judge.yaml", &script);
        let mut process = practicum(project, &["gateway", "--script", "judge.yaml"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a gateway");
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.take().expect("its output"));
        said.read_line(&mut line).expect("an address");
        let address: Value = serde_json::from_str(&line).expect("JSON");
        Self { process, url: address["base_url"].as_str().expect("an address").to_owned() }
    }
}

impl Drop for Judge {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn practicum(project: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_practicum"));
    command.args(args).current_dir(project).stderr(Stdio::null());
    command
}

fn write(project: &Path, name: &str, text: &str) {
    std::fs::write(project.join(name), text).expect("written");
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
