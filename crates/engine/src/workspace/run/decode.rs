//! Decodes the stored output stream of an agent.

use std::borrow::Cow;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use practicum_agents::agents::{Decoder, DecoderKind, StreamTranscript};
use practicum_core::model::count_with_noun;
use practicum_core::tree::open_regular;

/// The longest line that is decoded. A longer line is stored on disk but not decoded.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// The largest buffer that is kept after its line was read.
const LONGEST_KEPT_BUFFER: usize = 64 * 1024;

const CHUNK_BYTES: usize = 64 * 1024;

/// Decodes a part of a file. A missing file gives an empty transcript, like a process that ends at once.
pub fn decode(path: &Path, part: Range<u64>, kind: &DecoderKind) -> StreamTranscript {
    let mut decoder = (kind.new_decoder)();
    let mut unread = 0;
    if let Ok(mut file) = open_regular(path)
        && file.seek(SeekFrom::Start(part.start)).is_ok()
    {
        let until = file.metadata().map_or(0, |metadata| metadata.len().min(part.end));
        let length = until.saturating_sub(part.start);
        decoder.expect_bytes(length);
        unread = feed(&mut file.take(length), length, decoder.as_mut());
    }
    let unread =
        (unread > 0).then(|| format!("{} of what it said cannot be read", count_with_noun(unread, "line")));
    let transcript = decoder.finish();
    StreamTranscript { unread_reason: unread.or(transcript.unread_reason), ..transcript }
}

/// Feeds a stream to the decoder. Returns the number of lines that could not be read.
fn feed(stream: &mut impl Read, length: u64, decoder: &mut dyn Decoder) -> usize {
    let mut lines = LineSplitter::default();
    let mut unread = 0;
    let mut buffer = vec![0; usize::try_from(length).unwrap_or(CHUNK_BYTES).clamp(1, CHUNK_BYTES)];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        let bytes = &buffer[..count];
        match decoder.wants_bytes() {
            true => decoder.read_bytes(bytes),
            false => lines.push(bytes, |line| unread += usize::from(!decoder.read_line(line))),
        }
    }
    lines.finish(|line| unread += usize::from(!decoder.read_line(line)));
    unread + lines.unread
}

/// Splits a stream of bytes into lines, whatever the chunks.
#[derive(Default)]
pub(super) struct LineSplitter {
    partial: Vec<u8>,
    too_long: bool,
    /// The number of lines that were too long or are not UTF-8, so that their content is unknown.
    unread: usize,
}

impl LineSplitter {
    pub(super) fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        let mut rest = bytes;
        while let Some(newline) = rest.iter().position(|&byte| byte == b'\n') {
            self.extend(&rest[..newline]);
            self.complete_line(&mut each);
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

    fn complete_line(&mut self, each: &mut impl FnMut(&str)) {
        if self.too_long {
            self.unread += 1;
        } else {
            let line = String::from_utf8_lossy(self.partial.strip_suffix(b"\r").unwrap_or(&self.partial));
            self.unread += usize::from(matches!(line, Cow::Owned(_)));
            each(&line);
        }
        self.partial.clear();
        // After a long line, its memory is freed instead of being held until the end.
        self.partial.shrink_to(LONGEST_KEPT_BUFFER);
        self.too_long = false;
    }

    fn finish(&mut self, mut each: impl FnMut(&str)) {
        if self.too_long || !self.partial.is_empty() {
            self.complete_line(&mut each);
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
            let mut lines = LineSplitter::default();
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
        let mut lines = LineSplitter::default();
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
