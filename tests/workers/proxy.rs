//! A connection to the server on which a test sees each message of a client, changes it, or kills somebody at that moment.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// When a message is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The server does not have it yet.
    Before,
    /// The server has got its bytes.
    After,
}

/// A message of a client: its first line with the subject, and everything after that.
pub struct Frame {
    pub line: String,
    pub rest: Vec<u8>,
}

impl Frame {
    /// Says whether the message is sent to a subject with this part, and has this text in it.
    pub fn is(&self, subject: &str, text: &str) -> bool {
        let is_published = self.line.starts_with("PUB ") || self.line.starts_with("HPUB ");
        let has_text = || self.rest.windows(text.len()).any(|part| part == text.as_bytes());
        is_published && self.line.contains(subject) && (text.is_empty() || has_text())
    }
}

/// What a test does with each message. If it answers `false` before a message is sent, the connection is cut.
type OnFrame = dyn FnMut(&mut Frame, Moment) -> bool + Send;

/// A port whose connections lead to a server.
pub struct Proxy {
    pub port: u16,
}

impl Proxy {
    pub fn start(server: u16, on_frame: impl FnMut(&mut Frame, Moment) -> bool + Send + 'static) -> Self {
        let on_frame: Arc<Mutex<OnFrame>> = Arc::new(Mutex::new(on_frame));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // While the server is down, clients are refused.
                let Ok(to) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (mut back_from, mut back_to) =
                    (to.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut back_from, &mut back_to);
                    let _ = back_to.shutdown(Shutdown::Both);
                });
                let on_frame = Arc::clone(&on_frame);
                std::thread::spawn(move || {
                    let _ = forward(client, &to, &on_frame);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        });
        Self { port }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// Sends the messages of a client to the server, one by one.
fn forward(mut client: TcpStream, mut to: &TcpStream, on_frame: &Mutex<OnFrame>) -> std::io::Result<()> {
    let mut seen = Vec::new();
    let mut part = vec![0; 256 * 1024];
    loop {
        while let Some(mut frame) = take_frame(&mut seen) {
            let tell = |frame: &mut Frame, moment| {
                let mut on_frame = on_frame.lock().expect("unpoisoned");
                on_frame(frame, moment)
            };
            if !tell(&mut frame, Moment::Before) {
                return Ok(());
            }
            to.write_all(frame.line.as_bytes())?;
            to.write_all(&frame.rest)?;
            tell(&mut frame, Moment::After);
        }
        match client.read(&mut part)? {
            0 => return Ok(()),
            length => seen.extend_from_slice(&part[..length]),
        }
    }
}

/// Takes the first whole message. Each is a line, and a published one also has as many bytes as its last word says.
fn take_frame(seen: &mut Vec<u8>) -> Option<Frame> {
    let end = seen.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let line = String::from_utf8_lossy(&seen[..end]).into_owned();
    let payload = match line.starts_with("PUB ") || line.starts_with("HPUB ") {
        true => line.split_whitespace().last()?.parse::<usize>().ok()? + 2,
        false => 0,
    };
    if seen.len() < end + payload {
        return None;
    }
    let mut rest: Vec<u8> = seen.drain(..end + payload).collect();
    rest.drain(..end);
    Some(Frame { line, rest })
}
