//! The decoder of a stream that is nothing but the answer.

use super::{Decoder, DecoderKind, StreamEnd, StreamTranscript};

pub static DECODER: DecoderKind = DecoderKind {
    name: "text",
    shows_skills: false,
    new_decoder: || Box::new(TextDecoder::default()),
    new_client: None,
};

/// A decoder of plain text. It reads bytes, because an answer may be a single line of megabytes.
#[derive(Default)]
struct TextDecoder {
    bytes: Vec<u8>,
}

/// The largest answer that is read.
const LARGEST_ANSWER: usize = 256 * 1024 * 1024;

impl Decoder for TextDecoder {
    fn read_line(&mut self, line: &str) -> bool {
        self.read_bytes(line.as_bytes());
        self.read_bytes(b"\n");
        true
    }

    fn wants_bytes(&self) -> bool {
        true
    }

    fn read_bytes(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(LARGEST_ANSWER - self.bytes.len().min(LARGEST_ANSWER))];
        self.bytes.extend_from_slice(bytes);
    }

    fn expect_bytes(&mut self, bytes: u64) {
        self.bytes.reserve_exact(usize::try_from(bytes).unwrap_or(LARGEST_ANSWER).min(LARGEST_ANSWER));
    }

    fn finish(self: Box<Self>) -> StreamTranscript {
        let (mut text, unread) = match String::from_utf8(self.bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                (text, Some("its output is not UTF-8 text, so it cannot be read in full".to_owned()))
            }
        };
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        StreamTranscript {
            // The output alone contains the answer, which need not be stored twice.
            output: text,
            unread_reason: unread,
            // Plain text has no end mark that could be missing; the exit code shows how it ended.
            end: StreamEnd::Done,
            hides_tools: true,
            ..StreamTranscript::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_the_text_without_its_last_line_break() {
        for (bytes, expected) in [
            (&b"one\ntwo\n"[..], "one\ntwo"),
            (b"one", "one"),
            (b"", ""),
            (b"x\r\n", "x"),
            (b"\xff!", "\u{fffd}!"),
            (b"\n\n", "\n"),
        ] {
            let mut decoder = (DECODER.new_decoder)();
            bytes.chunks(2).for_each(|chunk| decoder.read_bytes(chunk));
            assert_eq!(decoder.finish().output, expected);
        }
    }
}
