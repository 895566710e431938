//! The viewer's server, asked without a browser.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::common::Project;
use serde_json::{Value, json};

const EVALS: &str = "
practicum: 1
workspace: empty
run: { agents: [echo], repeat: 3 }
cases:
  - { id: hello, prompt: hello, checks: [{ contains: hello, id: says }] }
  - { id: bye, prompt: bye, checks: [{ contains: hello, id: says }] }
";

struct Viewer {
    child: Child,
    url: String,
    project: Project,
    client: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

impl Viewer {
    fn start() -> Self {
        let project = Project::new(&[("e.practicum.yaml", EVALS)]);
        project.write(
            "practicum.toml",
            "sandbox = \"off\"\n[agents.echo]\ncommand = [\"/bin/echo\", \"{prompt}\"]\n",
        );
        project.run(&["run", ".", "--json"]).exits(1);
        Self::of_project(project)
    }

    fn of_project(project: Project) -> Self {
        let mut child =
            project.practicum(&["view", "--port", "0"]).stdout(Stdio::piped()).spawn().expect("starts");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("a line");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { child, url: url.trim().to_owned(), project, client: reqwest::Client::new(), runtime }
    }

    fn send(&self, request: reqwest::RequestBuilder) -> (u16, reqwest::header::HeaderMap, String) {
        self.runtime.block_on(async {
            let response = request.send().await.expect("an answer");
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            (status, headers, response.text().await.expect("text"))
        })
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let (status, _, body) = self.send(self.client.get(format!("{}{path}", self.url)));
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    fn run(&self) -> String {
        self.get("api/runs").1["runs"][0]["id"].as_str().expect("a run").to_owned()
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn only_who_knows_the_address_is_answered() {
    let viewer = Viewer::start();
    let host = viewer.url.split('/').take(3).collect::<Vec<_>>().join("/");
    assert!(host.starts_with("http://127.0.0.1:"), "{host}");
    let token = viewer.url.trim_end_matches('/').rsplit('/').next().expect("a token").to_owned();
    assert_eq!(token.len(), 32);
    let guess = format!("{}{}", &token[..31], if token.ends_with('0') { '1' } else { '0' });
    for (path, expected) in [
        (format!("{host}/"), 404),
        (format!("{host}/api/runs"), 404),
        (format!("{host}/{guess}/api/runs"), 404),
        (format!("{host}/{token}/api/runs"), 200),
        (format!("{host}/{token}/"), 200),
        (format!("{host}/{token}/web/app.js"), 200),
        (format!("{host}/{token}/web/..%2fmod.rs"), 404),
    ] {
        let (status, headers, _) = viewer.send(viewer.client.get(&path));
        assert_eq!(status, expected, "{path}");
        let policy = headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert!(!headers.contains_key("access-control-allow-origin"));
    }
    for (name, value) in [("host", "evil.example"), ("origin", "http://evil.example")] {
        let request = viewer.client.get(format!("{}api/runs", viewer.url)).header(name, value);
        assert_eq!(viewer.send(request).0, 403, "{name}");
    }
}

#[test]
fn trials_come_in_pages_and_by_what_they_are() {
    let viewer = Viewer::start();
    let run = viewer.run();
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let (status, page) = viewer.get(&format!("api/trials?run={run}&limit=4{after}"));
        assert_eq!(status, 200, "{page}");
        let rows = page["trials"].as_array().expect("rows");
        seen.extend(rows.iter().map(|row| row["id"].clone()));
        if page["more"] == false {
            break;
        }
        after = format!("&after={}", rows.last().expect("a row")["n"]);
    }
    seen.sort_by_key(Value::to_string);
    seen.dedup();
    assert_eq!(seen.len(), 6);
    for (query, expected) in [
        ("verdict=pass", 3),
        ("verdict=fail", 3),
        ("verdict=not_scored", 0),
        ("case=bye", 3),
        ("q=hello", 3),
        ("q=%22%2A%20OR", 0),
        ("agent=nobody", 0),
    ] {
        let (_, page) = viewer.get(&format!("api/trials?{query}"));
        assert_eq!(page["trials"].as_array().map(Vec::len), Some(expected), "{query}: {page}");
    }
    assert_eq!(viewer.get("api/trials?verdict=perhaps").0, 400);
    let (_, cases) = viewer.get(&format!("api/run/{run}/cases?troubled=true"));
    assert_eq!(cases["cases"][0]["case"], "bye");
    assert_eq!(cases["cases"].as_array().map(Vec::len), Some(1));
    let (_, trend) = viewer.get("api/trend?metric=pass_rate");
    assert_eq!(trend["points"][0]["value"], 0.5);
}

#[test]
fn a_run_that_comes_while_it_is_looked_at_is_seen() {
    let viewer = Viewer::start();
    viewer.project.run(&["run", ".", "--no-cache", "--json"]).exits(1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while viewer.get("api/runs").1["runs"].as_array().map(Vec::len) != Some(2) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn no_name_leads_out_of_a_run() {
    let viewer = Viewer::start();
    let run = viewer.run();
    let trial = viewer.get(&format!("api/trials?run={run}")).1["trials"][0]["id"]
        .as_str()
        .expect("a trial")
        .to_owned();
    for path in [
        "api/run/nothing".to_owned(),
        "api/run/..".to_owned(),
        "api/run/%2e%2e%2f%2e%2e".to_owned(),
        format!("api/run/{run}/trial/%2e%2e"),
        format!("api/run/{run}/trial/..%2f..%2f..%2f"),
        format!("api/run/{run}/trial/{trial}/file?path=../checks.json"),
        format!("api/run/{run}/trial/{trial}/file?path=/etc/passwd"),
        format!("api/run/{run}/trial/{trial}/download?path=../../../run.json"),
        format!("api/run/{run}/trial/{trial}/step?step=999&part=text"),
    ] {
        assert_eq!(viewer.get(&path).0, 404, "{path}");
    }
    let (status, said) = viewer.get(&format!("api/run/{run}/trial/{trial}/file?path=output.txt"));
    assert_eq!((status, &said["next"]), (200, &Value::Null), "{said}");
}

/// Only what a judge found can be agreed with, so that kappa is about the judge.
#[test]
fn a_label_needs_a_judge() {
    let viewer = Viewer::start();
    let run = viewer.run();
    let trial = viewer.get(&format!("api/trials?run={run}")).1["trials"][0]["id"]
        .as_str()
        .expect("a trial")
        .to_owned();
    let url = format!("{}api/run/{run}/trial/{trial}/label", viewer.url);
    for (check, expected) in [("says", 400), ("nothing", 400)] {
        let body = json!({"check": check, "passed": true});
        assert_eq!(viewer.send(viewer.client.post(&url).json(&body)).0, expected, "{check}");
    }
    let (_, agreement) = viewer.get(&format!("api/run/{run}/agreement"));
    assert_eq!(agreement, json!({"labels": 0, "agree": 0, "kappa": null}));
}

const JUDGED: &str = r#"
practicum: 1
workspace: empty
run: { agents: [builtin], script: script.yaml }
cases: [{ id: sea, prompt: sea, repeat: 2, checks: [{ judge: It is calm., id: is-calm }] }]
"#;

const JUDGE: &str = r#"
practicum_script: 1
scenarios:
  - { when: sea, steps: ["The sea is calm."] }
  - to: judge
    steps: [{ tools: [{ name: report_marks, input: { results: [{ id: is-calm, verdict: pass, evidence: ["sea is calm"], reasoning: SECRET REASON }] } }] }]
"#;

/// A person who knows the verdict agrees with it too often. So the verdict is not even sent before.
#[test]
fn the_verdict_of_the_judge_is_hidden_until_the_person_has_said_theirs() {
    let project = Project::new(&[("e.practicum.yaml", JUDGED), ("script.yaml", JUDGE)]);
    project.run(&["run", ".", "--json"]).exits(0);
    let viewer = Viewer::of_project(project);
    let run = viewer.run();
    let next = |after: &str| viewer.get(&format!("api/run/{run}/label?after={after}")).1;
    let first = next("");
    assert_eq!((&first["left"], &first["labelled"]), (&json!(2), &json!(0)));
    assert_eq!(first["next"]["statement"], "It is calm.");
    let trial = first["next"]["trial"].as_str().expect("a trial").to_owned();
    let (_, steps) = viewer.get(&format!("api/run/{run}/trial/{trial}/steps"));
    for shown in [&first, &steps] {
        let text = shown.to_string();
        assert!(!text.contains("SECRET") && !text.contains("verdict") && !text.contains("judge"), "{text}");
    }
    // What is skipped comes again.
    let other = next(first["next"]["order"].as_str().expect("a place"));
    assert_ne!(other["next"]["trial"], first["next"]["trial"]);
    let url = format!("{}api/run/{run}/trial/{trial}/label", viewer.url);
    let say = |passed: bool| -> Value {
        let body = json!({"check": "is-calm", "passed": passed});
        let (status, _, text) = viewer.send(viewer.client.post(&url).json(&body));
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    };
    let said = say(false);
    assert_eq!((&said["label"]["blind"], &said["label"]["passed"]), (&json!(true), &json!(false)));
    assert_eq!(
        (&said["judge"]["verdict"], &said["judge"]["rationale"]),
        (&json!("pass"), &json!("SECRET REASON"))
    );
    assert_eq!(next("")["next"]["trial"], other["next"]["trial"]);
    // To give in after seeing the verdict changes nothing.
    assert_eq!(say(true)["label"]["blind"], false);
    let found = viewer.project.run(&["calibrate", "--json"]).exits(0).stdout;
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["judges"][0]["table"]["only_judge_passed"], 1, "{found}");
    assert_eq!((&found["labelled"], &found["labels_not_blind"]), (&json!(1), &json!(0)));
}

#[test]
fn the_page_is_opened_in_the_browser_of_the_desktop() {
    let project = Project::new(&[]);
    let message = project.path().join("told");
    // The address holds the key of the viewer, so it is in a page and not among the arguments.
    project.write(
        "bin/xdg-open",
        &format!("#!/bin/sh\n{{ echo \"$1\"; cat \"$1\"; }} > {0}.new\nmv {0}.new {0}\n", message.display()),
    );
    let program = project.path().join("bin/xdg-open");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("runnable");
    let mut command = project.practicum(&["view", "--open"]);
    command.env("PATH", crate::common::path_with(&program)).stdout(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut url = String::new();
    BufReader::new(child.stdout.take().expect("its output")).read_line(&mut url).expect("a line");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    let opened = loop {
        match std::fs::read_to_string(&message) {
            Ok(opened) => break opened,
            Err(_) => assert!(std::time::Instant::now() < deadline, "{url}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let (argument, page) = opened.split_once('\n').expect("two lines");
    assert!(!url.trim().is_empty() && !argument.contains(url.trim()), "{argument}");
    assert!(page.contains(url.trim()), "{page}");
    child.kill().expect("ends");
    child.wait().expect("ended");
}
