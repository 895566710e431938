//! What `export` writes for viewers of traces: ATIF trajectories, and OpenTelemetry spans with verdicts.

use std::io::{BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

use crate::common::{Project, Ran};

const SCRIPT: &str = "practicum_script: 1
scenarios:
  - when: Greet Alice
    steps:
      - tools: [{ name: Write, input: { file_path: hello.txt, content: Ahoy } }]
      - tools: [{ name: Read, input: { file_path: missing.txt } }]
      - Ahoy, Alice!
";

fn project() -> Project {
    let eval = "practicum: 1\nskill: ../greeter\nworkspace: empty\nrun: { agents: [builtin] }\ncases:
  - id: greets
    prompt: Greet Alice.
    checks: [{ contains: Ahoy, id: says }, { contains: Bob, id: both, required: false }]
  - id: fails
    prompt: Greet Alice, and Bob.
    checks: [{ contains: Bob, id: both }]\n";
    let skill =
        "---\nname: greeter\ndescription: Greets people. Use when asked to greet.\n---\n\nSay ahoy.\n";
    let project = Project::new(&[
        ("greeter/SKILL.md", skill),
        ("evals/g.practicum.yaml", eval),
        ("script.yaml", SCRIPT),
    ]);
    project.run(&["run", "evals", "--script", "script.yaml"]).exits(1);
    project
}

/// The documents of one run, one for each trial.
fn lines(project: &Project, more: &[&str]) -> Vec<Value> {
    let text = project.run(&[&["export", "latest"], more].concat()).exits(0).stdout;
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_trajectory_has_every_step_and_the_verdicts() {
    let project = project();
    let all = lines(&project, &["--format", "atif"]);
    assert_eq!(all.len(), 2);
    let [one] = &lines(&project, &["--format", "atif", "--case", "greets"])[..] else { panic!("one trial") };
    assert_eq!(one["schema_version"], "ATIF-v1.8");
    assert_eq!(one["agent"]["name"], "builtin");
    let steps = one["steps"].as_array().expect("steps");
    let numbers: Vec<u64> = steps.iter().map(|step| step["step_id"].as_u64().expect("a number")).collect();
    assert_eq!(numbers, (1..=steps.len() as u64).collect::<Vec<_>>());
    assert_eq!((&steps[0]["source"], &steps[0]["message"]), (&json!("user"), &json!("Greet Alice.")));
    let called = steps.iter().find(|step| step["tool_calls"][0]["function_name"] == "Write").expect("a call");
    assert_eq!(called["tool_calls"][0]["arguments"]["content"], "Ahoy");
    assert_eq!(
        called["observation"]["results"][0]["source_call_id"],
        called["tool_calls"][0]["tool_call_id"]
    );
    assert_eq!(steps.last().expect("a step")["message"], "Ahoy, Alice!");
    assert_eq!(one["final_metrics"]["total_steps"], steps.len());
    assert_eq!(
        (&one["extra"]["verdict"], &one["extra"]["checks"][1]["verdict"]),
        (&json!("pass"), &json!("fail"))
    );
}

#[test]
fn spans_have_the_calls_and_the_verdicts_as_evaluation_events() {
    let project = project();
    project.run(&["export", "latest", "--format", "otlp", "-o", "traces.jsonl"]).exits(0);
    let text = std::fs::read_to_string(project.path().join("traces.jsonl")).expect("a file");
    let requests: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(requests.len(), 2);
    let value = |of: &Value, key: &str| {
        let found = of["attributes"].as_array().expect("attributes").iter().find(|entry| entry["key"] == key);
        found.map_or(Value::Null, |entry| entry["value"].clone())
    };
    let mut traces = Vec::new();
    for (request, case, verdict, score) in
        [(&requests[0], "greets", "pass", 1.0), (&requests[1], "fails", "fail", 0.0)]
    {
        let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
        let agent = &spans[0];
        assert_eq!(agent["name"], "invoke_agent builtin");
        assert_eq!(value(agent, "practicum.case")["stringValue"], case);
        assert_eq!(value(agent, "gen_ai.operation.name")["stringValue"], "invoke_agent");
        assert!(
            value(agent, "gen_ai.usage.output_tokens")["intValue"].is_string(),
            "64 bits are text in JSON"
        );
        let event = &agent["events"][0];
        assert_eq!(event["name"], "gen_ai.evaluation.result");
        assert_eq!(value(event, "gen_ai.evaluation.name")["stringValue"], "trial");
        assert_eq!(value(event, "gen_ai.evaluation.score.label")["stringValue"], verdict);
        assert_eq!(value(event, "gen_ai.evaluation.score.value")["doubleValue"], score);
        let tools: Vec<&Value> = spans[1..].iter().collect();
        let names: Vec<&str> = tools.iter().filter_map(|span| span["name"].as_str()).collect();
        assert_eq!(names, ["execute_tool Write", "execute_tool Read"], "{case}");
        assert_eq!(tools[1]["status"]["code"], 2, "the file is missing");
        for span in spans {
            assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
            assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
            assert_eq!(span["traceId"], agent["traceId"]);
        }
        assert!(tools.iter().all(|span| span["parentSpanId"] == agent["spanId"]));
        traces.push(agent["traceId"].clone());
    }
    assert_ne!(traces[0], traces[1]);
    let again = lines(&project, &["--format", "otlp"]);
    assert_eq!(again, requests, "the same run gives the same ids");
    project.run(&["export", "--format", "otlp", "--table", "checks"]).exits(2);
}

/// A receiver on this machine that answers each request in the same way, and keeps what it got.
struct Receiver {
    address: String,
    requests: std::sync::mpsc::Receiver<(String, Vec<u8>)>,
}

impl Receiver {
    fn start(answer: &'static str) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, requests) = std::sync::mpsc::channel();
        // The thread ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
                let length =
                    head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.unwrap_or(0)];
                let _ = reader.read_exact(&mut body);
                let _ = reader.get_mut().write_all(answer.as_bytes());
                let _ = sender.send((head, body));
            }
        });
        Self { address, requests }
    }
}

#[test]
fn spans_are_sent_to_a_receiver_in_the_binary_form() {
    let project = project();
    let fine = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let receiver = Receiver::start(fine);
    let mut command = project.practicum(&["export", "latest", "--format", "otlp", "--to", &receiver.address]);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, x-other=c");
    let ran = Ran::of(command.output().expect("practicum starts")).exits(0);
    assert!(ran.stderr.contains("2 traces sent to http://127.0.0.1"), "{}", ran.stderr);
    let got: Vec<(String, Vec<u8>)> = receiver.requests.try_iter().collect();
    assert_eq!(got.len(), 2, "one request for each trial");
    for (head, body) in &got {
        for line in ["POST /v1/traces HTTP/1.1", "application/x-protobuf", "x-key: a b", "x-other: c"] {
            assert!(head.contains(line), "{line}: {head}");
        }
        let text = String::from_utf8_lossy(body);
        for part in
            ["invoke_agent builtin", "execute_tool Write", "gen_ai.evaluation.result", "practicum.verdict"]
        {
            assert!(text.contains(part), "{part}");
        }
    }
    let one = ["export", "latest", "--format", "otlp", "--case", "greets", "--to"];
    let path = format!("{}/otlp/v1/traces", receiver.address);
    project.run(&[&one[..], &[&path]].concat()).exits(0);
    assert!(receiver.requests.recv().expect("a request").0.contains("POST /otlp/v1/traces "));

    for (answer, expected) in [
        ("HTTP/1.1 415 No\r\ncontent-length: 4\r\nconnection: close\r\n\r\nwhat", "it answered with 415"),
        (
            "HTTP/1.1 302 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            "302",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\n\n\u{2}\u{8}\u{5}",
            "refused 5 of the spans",
        ),
        ("", "cannot send traces"),
    ] {
        let receiver = Receiver::start(answer);
        let ran = project.run(&[&one[..], &[&receiver.address]].concat()).exits(2);
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    for address in ["ftp://127.0.0.1", "file:///etc/passwd", "127.0.0.1:1", "http://me:secret@127.0.0.1", ""]
    {
        let ran = project.run(&[&one[..], &[address]].concat()).exits(2);
        assert!(!ran.stderr.contains("me:secret"), "{}", ran.stderr);
    }
    project.run(&["export", "latest", "--to", &receiver.address]).exits(2);
    project.run(&["export", "latest", "--format", "otlp", "--to", &receiver.address, "-o", "f"]).exits(2);
}
