//! A stream that is nothing but the answer.

use super::{Decoder, DecoderKind, Said, Transcript};
use crate::model::Step;

pub static STREAM: DecoderKind = DecoderKind { name: "text", start: || Box::new(Text::default()) };

#[derive(Default)]
struct Text {
    text: String,
}

impl Decoder for Text {
    fn line(&mut self, line: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(line);
    }

    fn finish(self: Box<Self>) -> Transcript {
        Transcript {
            steps: vec![Step::Text(self.text.clone())],
            output: self.text,
            // Plain text has no last word that could be missing; the exit code says how it ended.
            said: Said::Done,
            ..Transcript::default()
        }
    }
}
