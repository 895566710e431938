use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::watch;

use super::tree::{MARKER, group_lives, sweep};
use crate::agents::{Decoder, Launch};
use crate::observe::ProcessEnd;

/// Tells every running trial to stop now.
#[derive(Clone)]
pub struct Cancel(Arc<watch::Sender<bool>>);

impl Default for Cancel {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Cancel {
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    pub async fn cancelled(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as we do, so this only ends when the value is true.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}

/// Where a process's output goes.
pub struct Output {
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

/// The most that is kept of each stream. What comes after is read and dropped, so that a flood
/// neither fills the disk nor blocks the agent.
const MOST_KEPT: u64 = 256 * 1024 * 1024;

/// The longest line that is decoded; a longer one is kept on disk and not understood.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// A buffer larger than this is given back once its line is read.
const LONGEST_KEPT_BUFFER: usize = 64 * 1024;

/// After the process itself is gone, how long its pipes may stay open in other hands.
const LINGER: Duration = Duration::from_millis(500);

pub struct Supervised {
    pub end: ProcessEnd,
    /// Things worth telling: output cut, processes that outlived their parent.
    pub notes: Vec<String>,
}

/// Runs one process to its end, or to ours.
pub async fn supervise(
    launch: &Launch,
    folder: &Path,
    marker: &str,
    limit: Duration,
    output: &Output,
    decoder: &mut dyn Decoder,
    cancel: &Cancel,
) -> Supervised {
    let mut notes = Vec::new();
    let spawned = Command::new(&launch.program)
        .args(&launch.args)
        .env_clear()
        .envs(&launch.env)
        .env(MARKER, marker)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            let why = format!("{}: {error}", launch.program.display());
            return Supervised { end: ProcessEnd::NotLaunched(why), notes };
        }
    };
    let root = child.id();
    let stdout = child.stdout.take();
    let stderr = child.stderr.take();
    let end = {
        let listen = async {
            tokio::join!(
                listen(stdout, &output.stdout, Some(&mut *decoder), &mut notes),
                listen_quietly(stderr, &output.stderr)
            )
        };
        tokio::pin!(listen);
        let mut listening = true;
        let deadline = tokio::time::sleep(limit);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                _ = &mut listen, if listening => listening = false,
                status = child.wait() => {
                    if listening {
                        let _ = tokio::time::timeout(LINGER, &mut listen).await;
                    }
                    break ended(status);
                }
                () = &mut deadline => break ProcessEnd::TimedOut,
                () = cancel.cancelled() => break ProcessEnd::Cancelled,
            }
        }
    };
    let ended_by_us = matches!(end, ProcessEnd::TimedOut | ProcessEnd::Cancelled);
    if ended_by_us || root.is_some_and(group_lives) {
        let marker = marker.to_owned();
        let left = tokio::task::spawn_blocking(move || sweep(root, &marker)).await.unwrap_or(0);
        if left > 0 {
            notes.push(format!("{left} processes of this trial could not be ended"));
        } else if !ended_by_us {
            notes.push("the agent left processes running; they were ended".to_owned());
        }
    }
    // Reaps the child if we killed it.
    let _ = child.wait().await;
    Supervised { end, notes }
}

fn ended(status: std::io::Result<std::process::ExitStatus>) -> ProcessEnd {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => ProcessEnd::Exited(code),
            (None, Some(signal)) => ProcessEnd::Signalled(signal),
            (None, None) => ProcessEnd::Signalled(0),
        },
        Err(error) => ProcessEnd::NotLaunched(error.to_string()),
    }
}

async fn listen_quietly(stream: Option<impl AsyncRead + Unpin>, path: &Path) {
    listen(stream, path, None, &mut Vec::new()).await;
}

/// Reads a stream to its end: to disk within bounds, and line by line to the decoder.
async fn listen(
    stream: Option<impl AsyncRead + Unpin>,
    path: &Path,
    mut decoder: Option<&mut dyn Decoder>,
    notes: &mut Vec<String>,
) {
    let Some(mut stream) = stream else { return };
    let mut file = None;
    let mut kept = 0;
    let mut lines = Lines::default();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let bytes = &buffer[..count];
        if file.is_none() {
            // Most processes say nothing on one of the streams, and then there is no file.
            file = tokio::fs::OpenOptions::new().create(true).append(true).open(path).await.ok();
        }
        if let Some(file) = &mut file
            && kept < MOST_KEPT
        {
            let _ = file.write_all(bytes).await;
        }
        kept += count as u64;
        match &mut decoder {
            Some(decoder) if decoder.takes_bytes() => decoder.bytes(bytes),
            Some(decoder) => lines.push(bytes, |line| decoder.line(line)),
            None => {}
        }
    }
    if let Some(decoder) = &mut decoder {
        lines.finish(|line| decoder.line(line));
    }
    if kept > MOST_KEPT {
        notes.push(format!("only the first {MOST_KEPT} of {kept} bytes of output were kept"));
    }
    if let Some(mut file) = file {
        let _ = file.flush().await;
    }
}

/// Reads a stream that was kept as it was read when it came.
pub fn decode_kept(bytes: &[u8], decoder: &mut dyn Decoder) {
    if decoder.takes_bytes() {
        return decoder.bytes(bytes);
    }
    let mut lines = Lines::default();
    lines.push(bytes, |line| decoder.line(line));
    lines.finish(|line| decoder.line(line));
}

/// Whether a stream of this length may have gone on after what was kept of it.
pub fn may_be_cut(kept: usize) -> bool {
    kept as u64 >= MOST_KEPT
}

/// Cuts a stream of bytes into lines, whatever the chunks.
#[derive(Default)]
struct Lines {
    partial: Vec<u8>,
    too_long: bool,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        let mut rest = bytes;
        while let Some(newline) = rest.iter().position(|&byte| byte == b'\n') {
            self.extend(&rest[..newline]);
            self.complete(&mut each);
            rest = &rest[newline + 1..];
        }
        self.extend(rest);
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.partial.len() + bytes.len() > LONGEST_LINE {
            self.too_long = true;
            self.partial = Vec::new();
        }
        if !self.too_long {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn complete(&mut self, each: &mut impl FnMut(&str)) {
        if !self.too_long {
            let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial);
            each(&String::from_utf8_lossy(line));
        }
        self.partial.clear();
        // One long line is no reason to hold its space until the end.
        self.partial.shrink_to(LONGEST_KEPT_BUFFER);
        self.too_long = false;
    }

    fn finish(&mut self, mut each: impl FnMut(&str)) {
        if !self.partial.is_empty() {
            self.complete(&mut each);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_do_not_depend_on_chunks() {
        let text = "one\ntwo\r\nthr\u{e9}e\n\nlast";
        for size in 1..=text.len() {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                lines.push(chunk, |line| seen.push(line.to_owned()));
            }
            lines.finish(|line| seen.push(line.to_owned()));
            assert_eq!(seen, ["one", "two", "thr\u{e9}e", "", "last"], "chunks of {size}");
        }
    }

    #[test]
    fn an_endless_line_takes_no_endless_memory() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let chunk = vec![b'x'; 1024 * 1024];
        for _ in 0..40 {
            lines.push(&chunk, |line| seen.push(line.to_owned()));
            assert!(lines.partial.capacity() <= 2 * LONGEST_LINE);
        }
        lines.push(b"\nnext\n", |line| seen.push(line.to_owned()));
        assert_eq!(seen, ["next"]);
    }
}
