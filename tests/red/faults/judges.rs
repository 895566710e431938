//! Judges that answer too much, too slowly, or nonsense.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use crate::common::{Project, Ran, wait_until};

/// Writes the answer of a judge to a connection.
type Answer = fn(&mut TcpStream) -> std::io::Result<()>;

/// A server that answers every request in the same hostile way, and counts them.
struct HostileJudge {
    address: String,
    requests: Arc<AtomicUsize>,
}

impl HostileJudge {
    fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counted = Arc::clone(&counted);
                // A client that hung up needs no answer.
                std::thread::spawn(move || drop(serve(stream, &counted, answer)));
            }
        });
        Self { address, requests }
    }
}

fn serve(mut stream: TcpStream, counted: &AtomicUsize, answer: Answer) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    counted.fetch_add(1, Ordering::SeqCst);
    answer(&mut stream)
}

fn head(stream: &mut TcpStream, length: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n{length}\r\n")
}

/// Answers with a message of a model that says this text.
fn say(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    let body = serde_json::json!({"id": "m", "type": "message", "role": "assistant", "model": "x",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1}})
    .to_string();
    head(stream, &format!("content-length: {}\r\n", body.len()))?;
    stream.write_all(body.as_bytes())
}

const ANSWERS: [(&str, Answer); 8] = [
    ("without an end", |stream| {
        head(stream, "")?;
        loop {
            stream.write_all(&[b' '; 65536])?;
        }
    }),
    ("announced as huge", |stream| head(stream, "content-length: 999999999999\r\n")),
    ("a huge text", |stream| say(stream, &"pass ".repeat(2_000_000))),
    ("nested without end", |stream| {
        head(stream, "")?;
        stream.write_all("[".repeat(1_000_000).as_bytes())
    }),
    ("not JSON", |stream| {
        head(stream, "content-length: 4\r\n")?;
        stream.write_all(b"\xff\x00]{")
    }),
    ("no HTTP", |stream| stream.write_all(b"\x16\x03\x01 PASS PASS PASS\r\n\r\n")),
    ("everything passes", |stream| say(stream, "All statements pass. {\"results\": \"pass\"}")),
    ("other statements", |stream| {
        say(stream, r#"{"results":[{"id":"../../x","verdict":"pass","score":1e999,"evidence":["x"]}]}"#)
    }),
];

fn judged_project() -> Project {
    let project = Project::new(&[(
        "evals/e.practicum.yaml",
        "practicum: 1\nworkspace: empty\nrun: { agents: [own] }\ncases:\n  - { id: x, prompt: p, checks: [{ judge: A park is named. }] }\n",
    )]);
    super::set_agent(&project, "echo There is a zoo.\n");
    project
}

fn command(project: &Project, judge: &HostileJudge) -> Command {
    let mut command = project.practicum(&["run", "evals", "--transport", "api", "--no-cache", "--json"]);
    command.env("ANTHROPIC_BASE_URL", &judge.address).env("ANTHROPIC_API_KEY", "k");
    command
}

#[test]
fn a_hostile_judge_makes_a_trial_pass_or_hangs_the_run() {
    super::two_at_a_time(ANSWERS.len(), |n| {
        let (name, answer) = ANSWERS[n];
        let (project, judge) = (judged_project(), HostileJudge::start(answer));
        let (done, ended) = mpsc::channel();
        let mut command = command(&project, &judge);
        std::thread::spawn(move || done.send(command.output()));
        let output = ended.recv_timeout(Duration::from_secs(200));
        let ran = Ran::of(output.unwrap_or_else(|_| panic!("{name}: it does not end")).expect("starts"));
        assert_eq!(ran.code, 3, "{name}: {}\n{}", ran.stdout, ran.stderr);
        assert_eq!(super::results(&ran.json())[0].1, [0, 0, 1], "{name}");
        assert!(judge.requests.load(Ordering::SeqCst) > 0, "{name}");
    });
    println!("{} hostile answers of judges: all not scored", ANSWERS.len());
}

#[test]
fn a_judge_that_never_answers_cannot_be_stopped() {
    let drip: Answer = |stream| {
        head(stream, "content-length: 100000\r\n")?;
        loop {
            stream.write_all(b" ")?;
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let (project, judge) = (judged_project(), HostileJudge::start(drip));
    let child = command(&project, &judge).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("starts");
    wait_until(|| judge.requests.load(Ordering::SeqCst) > 0);
    // The first interrupt lets running trials end; a termination does not.
    let terminated = Command::new("kill").arg(child.id().to_string()).status();
    assert!(terminated.expect("kill").success());
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    let output = ended.recv_timeout(Duration::from_secs(30)).expect("it ends").expect("output");
    let ran = Ran::of(output);
    assert!(ran.code != 0, "{}\n{}", ran.stdout, ran.stderr);
    println!("1 judge that answers a byte at a time: stopped");
}
