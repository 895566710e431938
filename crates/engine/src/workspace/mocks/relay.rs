//! The process that an agent starts in place of a real server or command: it relays one call or one session through
//! the socket of the trial.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde::{Deserialize, Serialize};

use practicum_core::model::RelPath;
use practicum_core::tree::write_unlinked;

/// The hidden subcommand with which this program relays calls.
pub const RELAY_SUBCOMMAND: &str = "relay";

/// The most bytes of an answer.
const LONGEST_ANSWER: u64 = 64 * 1024 * 1024;

/// The first line that a relay sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RelayRequest {
    /// A call of a command.
    Command { command: String, args: Vec<String> },
    /// A session with an MCP server. The messages of the protocol follow.
    Server { server: String },
}

/// The answer to a call of a command.
#[derive(Debug, Serialize, Deserialize)]
pub struct CommandAnswer {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: u8,
    pub files: Vec<(RelPath, String)>,
}

/// Gives the arguments with which this program relays sessions with a server.
pub fn server_args(socket: &Path, server: &str) -> Vec<String> {
    let socket = socket.display().to_string();
    [RELAY_SUBCOMMAND, "--socket", &socket, "--server", server].map(str::to_owned).to_vec()
}

/// Writes the script that stands in place of a command.
pub fn command_script(program: &Path, socket: &Path, command: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let (program, socket) = (quoted(&program.display().to_string()), quoted(&socket.display().to_string()));
    format!(
        "#!/bin/sh\nexec {program} {RELAY_SUBCOMMAND} --socket {socket} --command {} -- \"$@\"\n",
        quoted(command)
    )
}

/// Relays one call of a command: writes its output and its files, and gives its exit code.
pub fn relay_command(socket: &Path, command: String, args: Vec<String>) -> io::Result<u8> {
    let stream = connect(socket, &RelayRequest::Command { command, args })?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    let answer: CommandAnswer = serde_json::from_slice(&answer)?;
    for (path, content) in &answer.files {
        let path = path.join_to(Path::new("."));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_unlinked(&path, content)?;
    }
    io::stdout().write_all(answer.stdout.as_bytes())?;
    io::stdout().flush()?;
    io::stderr().write_all(answer.stderr.as_bytes())?;
    Ok(answer.exit_code)
}

/// Relays a session with an MCP server between standard input and output and the socket, until one of them ends.
pub fn relay_server(socket: &Path, server: String) -> io::Result<()> {
    let mut from_server = connect(socket, &RelayRequest::Server { server })?;
    let mut to_server = from_server.try_clone()?;
    // The thread ends with the process, or when standard input does.
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let mut chunk = vec![0; 64 * 1024];
    let mut stdout = io::stdout();
    loop {
        match from_server.read(&mut chunk)? {
            0 => return Ok(()),
            length => {
                stdout.write_all(&chunk[..length])?;
                stdout.flush()?;
            }
        }
    }
}

fn connect(socket: &Path, request: &RelayRequest) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(socket)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    Ok(stream)
}
