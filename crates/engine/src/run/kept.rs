//! One stream of a process, kept on disk within bounds.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The most that is kept of the beginning. What comes after is read and dropped, so that a flood
/// neither fills the disk nor blocks the agent.
const MOST_AT_FIRST: u64 = 256 * 1024 * 1024;

/// The most that is kept of the end of a longer one: there the stream says how it ended.
const MOST_AT_LAST: usize = 1024 * 1024;

const CHUNK: usize = 64 * 1024;

/// Reads a stream to its end. Tells if not all of it was kept.
pub async fn keep(stream: Option<impl AsyncRead + Unpin>, path: &Path) -> Option<String> {
    let mut stream = stream?;
    let mut kept = Kept::default();
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        kept.push(&buffer[..count], path);
    }
    kept.finish()
}

#[derive(Default)]
struct Kept {
    file: Option<File>,
    /// Why some of it is lost, such as a disk that is full.
    lost: Option<std::io::Error>,
    seen: u64,
    last: VecDeque<u8>,
}

impl Kept {
    /// Written at once and without another thread: it goes to the page cache, which is quicker than
    /// handing it over.
    fn push(&mut self, bytes: &[u8], path: &Path) {
        if self.file.is_none() {
            // Most processes say nothing on one of the streams, and then there is no file.
            let opened = File::options().create(true).append(true).open(path);
            self.file = opened.map_err(|error| self.lost = Some(error)).ok();
        }
        let room = usize::try_from(MOST_AT_FIRST.saturating_sub(self.seen)).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        if let Some(file) = self.file.as_mut().filter(|_| !first.is_empty()) {
            self.lost = file.write_all(first).err().or(self.lost.take());
        }
        if !rest.is_empty() {
            self.last.extend(rest);
            self.last.drain(..self.last.len().saturating_sub(MOST_AT_LAST));
        }
        self.seen += bytes.len() as u64;
    }

    fn finish(mut self) -> Option<String> {
        if let Some(error) = self.lost {
            return Some(format!("not all of its output could be kept: {error}"));
        }
        if self.last.is_empty() {
            return None;
        }
        let last = self.last.make_contiguous();
        let dropped = self.seen - MOST_AT_FIRST - last.len() as u64;
        if let Some(file) = &mut self.file {
            // A line of its own, so that neither half is taken for a whole line.
            let _ = file.write_all(b"\n");
            let _ = file.write_all(last);
        }
        Some(format!(
            "of {} bytes of output only the first {MOST_AT_FIRST} and the last {} were kept",
            self.seen,
            self.seen - MOST_AT_FIRST - dropped
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_both_ends_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let mut kept = Kept { seen: MOST_AT_FIRST - 3, ..Kept::default() };
        kept.push(b"abcdef", &path);
        kept.push(&vec![b'-'; MOST_AT_LAST], &path);
        kept.push(b"\nend", &path);
        let note = kept.finish().expect("told");
        assert!(note.contains("the last 1048576 were kept"), "{note}");
        let text = std::fs::read_to_string(&path).expect("kept");
        assert!(text.starts_with("abc\n---") && text.ends_with("---\nend"), "{}", text.len());
        assert_eq!(text.len(), 4 + MOST_AT_LAST);
    }

    #[test]
    fn silence_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        assert_eq!(Kept::default().finish(), None);
        assert!(!path.exists());
    }
}
