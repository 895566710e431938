//! Stores one output stream of a process on disk, up to a limit.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::dialogue::Dialogue;
use crate::workspace::secrets::{Scrubber, StreamScrubber};

/// The most bytes that are stored of the beginning. The rest is read and dropped, so that endless output neither
/// fills the disk nor blocks the agent.
const MAX_HEAD_BYTES: u64 = 256 * 1024 * 1024;

/// The most bytes that are stored of the end of a longer stream, where the stream says how it ended.
const MAX_TAIL_BYTES: usize = 1024 * 1024;

const CHUNK_BYTES: usize = 64 * 1024;

/// Reads a stream to its end, and answers it if there is a dialogue. Returns a note if not all of it was stored.
pub async fn capture_stream(
    stream: Option<impl AsyncRead + Unpin>,
    path: &Path,
    scrubber: &Scrubber,
    mut dialogue: Option<Dialogue>,
) -> Option<String> {
    let mut stream = stream?;
    let mut kept = StreamCapture::new(path, scrubber);
    let mut buffer = vec![0; CHUNK_BYTES];
    if let Some(dialogue) = &mut dialogue {
        dialogue.begin().await;
    }
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        kept.push(&buffer[..count]);
        if let Some(dialogue) = &mut dialogue {
            dialogue.read(&buffer[..count]).await;
        }
    }
    kept.finish()
}

struct StreamCapture {
    path: PathBuf,
    scrubber: StreamScrubber,
    file: Option<File>,
    /// The error that lost some of the output, such as a full disk.
    write_error: Option<std::io::Error>,
    bytes_seen: u64,
    tail: VecDeque<u8>,
}

impl StreamCapture {
    fn new(path: &Path, scrubber: &Scrubber) -> Self {
        Self {
            path: path.to_owned(),
            scrubber: scrubber.stream(),
            file: None,
            write_error: None,
            bytes_seen: 0,
            tail: VecDeque::new(),
        }
    }

    /// Takes a chunk. Nothing is written before its secrets are removed.
    fn push(&mut self, bytes: &[u8]) {
        let mut clean = Vec::new();
        self.scrubber.push(bytes, &mut clean);
        self.write(&clean);
    }

    /// Writes what was held back because a secret might have begun in it.
    fn write_rest(&mut self) {
        let mut clean = Vec::new();
        self.scrubber.finish(&mut clean);
        self.write(&clean);
    }

    /// Writes at once on this thread: it goes to the page cache, which is quicker than passing it to another thread.
    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.file.is_none() {
            // The file is made only when needed, because most processes write nothing to one of the streams.
            let opened = File::options().create(true).append(true).mode(0o600).open(&self.path);
            self.file = opened.map_err(|error| self.write_error = Some(error)).ok();
        }
        let room = usize::try_from(MAX_HEAD_BYTES.saturating_sub(self.bytes_seen)).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        if let Some(file) = self.file.as_mut().filter(|_| !first.is_empty()) {
            self.write_error = file.write_all(first).err().or(self.write_error.take());
        }
        if !rest.is_empty() {
            self.tail.extend(rest);
            self.tail.drain(..self.tail.len().saturating_sub(MAX_TAIL_BYTES));
        }
        self.bytes_seen += bytes.len() as u64;
    }

    fn finish(mut self) -> Option<String> {
        self.write_rest();
        if let Some(error) = &self.write_error {
            return Some(format!("not all of its output could be kept: {error}"));
        }
        if self.tail.is_empty() {
            return None;
        }
        let last = self.tail.make_contiguous();
        let dropped = self.bytes_seen - MAX_HEAD_BYTES - last.len() as u64;
        if let Some(file) = &mut self.file {
            // The line break separates beginning and end, so that two half lines are not read as one.
            let _ = file.write_all(b"\n");
            let _ = file.write_all(last);
        }
        Some(format!(
            "of {} bytes of output only the first {MAX_HEAD_BYTES} and the last {} were kept",
            self.bytes_seen,
            self.bytes_seen - MAX_HEAD_BYTES - dropped
        ))
    }
}

impl Drop for StreamCapture {
    fn drop(&mut self) {
        // A process that left its output open in another process is not waited for.
        self.write_rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_both_ends_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let mut kept = StreamCapture::new(&path, &Scrubber::default());
        kept.bytes_seen = MAX_HEAD_BYTES - 3;
        kept.push(b"abcdef");
        kept.push(&vec![b'-'; MAX_TAIL_BYTES]);
        kept.push(b"\nend");
        let note = kept.finish().expect("told");
        assert!(note.contains("the last 1048576 were kept"), "{note}");
        let text = std::fs::read_to_string(&path).expect("kept");
        assert!(text.starts_with("abc\n---") && text.ends_with("---\nend"), "{}", text.len());
        assert_eq!(text.len(), 4 + MAX_TAIL_BYTES);
    }

    #[test]
    fn silence_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        assert_eq!(StreamCapture::new(&path, &Scrubber::default()).finish(), None);
        assert!(!path.exists());
    }
}
