//! A stream that is nothing but the answer.

use super::{Decoder, DecoderKind, Said, Transcript};

pub static STREAM: DecoderKind =
    DecoderKind { name: "text", shows_skills: false, start: || Box::new(Text::default()) };

/// Taken as it comes, because an answer may be one line of megabytes.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
}

/// More than this is no answer.
const MOST: usize = 256 * 1024 * 1024;

impl Decoder for Text {
    fn line(&mut self, line: &str) -> bool {
        self.bytes(line.as_bytes());
        self.bytes(b"\n");
        true
    }

    fn takes_bytes(&self) -> bool {
        true
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(MOST - self.bytes.len().min(MOST))];
        self.bytes.extend_from_slice(bytes);
    }

    fn expect(&mut self, bytes: u64) {
        self.bytes.reserve_exact(usize::try_from(bytes).unwrap_or(MOST).min(MOST));
    }

    fn finish(self: Box<Self>) -> Transcript {
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
        Transcript {
            // The answer is all there is, so it is not kept twice as a step of its own.
            output: text,
            unread,
            // Plain text has no last word that could be missing; the exit code says how it ended.
            said: Said::Done,
            hides_tools: true,
            ..Transcript::default()
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
            let mut decoder = (STREAM.start)();
            bytes.chunks(2).for_each(|chunk| decoder.bytes(chunk));
            assert_eq!(decoder.finish().output, expected);
        }
    }
}
