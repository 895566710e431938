//! A model behind a wire that keeps what is asked, and can hold a request for as long as a kill takes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::common::{Project, wait_until};

pub struct Wire {
    gateway: Child,
    port: u16,
    path: String,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    /// The bodies of all requests, in the order they came.
    asked: Vec<String>,
    /// Holds the request with this text, once so many with it have passed.
    trap: Option<(&'static str, usize)>,
    caught: bool,
}

impl Wire {
    /// A gateway that plays a script, for everyone alike.
    pub fn to(project: &Project, script: &Value) -> Self {
        let mut script = script.clone();
        for scenario in script["scenarios"].as_array_mut().into_iter().flatten() {
            scenario.as_object_mut().expect("a scenario").remove("to");
        }
        project.write("model.yaml", &script.to_string());
        let mut gateway = project
            .practicum(&["gateway", "--script", "model.yaml"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a gateway");
        let mut first = String::new();
        let stdout = gateway.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut first).expect("a line");
        let message: Value = serde_json::from_str(&first).expect("JSON");
        let url = message["base_url"].as_str().expect("a URL").trim_start_matches("http://").to_owned();
        let (upstream, path) = url.split_once('/').unwrap_or((&url, ""));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let line = Arc::new(Mutex::new(Line::default()));
        let (message, upstream) = (Arc::clone(&line), upstream.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (line, upstream) = (Arc::clone(&message), upstream.clone());
                // Who was killed reads no answer.
                std::thread::spawn(move || pass_on(client, &upstream, &line).unwrap_or_default());
            }
        });
        Self { gateway, port, path: path.to_owned(), line }
    }

    /// The command, asking here.
    pub fn at(&self, mut command: Command) -> Command {
        command
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}/{}", self.port, self.path))
            .env("ANTHROPIC_API_KEY", "sk-ant-nobody");
        command
    }

    pub fn asked(&self) -> Vec<String> {
        self.line.lock().expect("a line").asked.clone()
    }

    /// Starts the command and kills it while a request is under way: one with this text, after so many.
    pub fn kill_in(&self, command: Command, text: &'static str, after: usize) {
        {
            let mut line = self.line.lock().expect("a line");
            (line.trap, line.caught) = (Some((text, after)), false);
        }
        let mut child =
            self.at(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        wait_until(|| self.line.lock().expect("a line").caught);
        child.kill().expect("killed");
        child.wait().expect("gone");
        self.line.lock().expect("a line").trap = None;
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

/// One request and its answer; then the connection ends.
fn pass_on(client: TcpStream, upstream: &str, line: &Mutex<Line>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Ok(());
        }
        let lower = header.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
        if header == "\r\n" {
            break;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&header);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let text = String::from_utf8_lossy(&body).into_owned();
    let held = {
        let mut line = line.lock().expect("a line");
        let held = match &mut line.trap {
            Some((wanted, 0)) if text.contains(*wanted) => true,
            Some((wanted, passed)) if text.contains(*wanted) => {
                *passed -= 1;
                false
            }
            Some(_) | None => false,
        };
        line.caught |= held;
        line.asked.push(text);
        held
    };
    if held {
        // Nothing comes until whoever asked is gone.
        return reader.read_to_end(&mut body).map(|_| ());
    }
    let mut server = TcpStream::connect(upstream)?;
    server.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    server.write_all(&body)?;
    std::io::copy(&mut server, &mut &client).map(|_| ())
}
