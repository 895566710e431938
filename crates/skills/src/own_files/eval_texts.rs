//! Recognises copies of the evals that are run, in any format, by their texts.

use std::io::{BufRead, BufReader, Read};

use aho_corasick::AhoCorasick;

use super::activation_keys;
use super::unpacked::Unpacked;
use practicum_core::model::{CasePrompt, CheckKind, Suite};

/// The questions of some evals, and what is expected of the answers. A file that contains a text of both kinds
/// would show an agent what it is graded by.
#[derive(Debug, Default)]
pub struct EvalTexts {
    questions: Option<AhoCorasick>,
    answers: Option<AhoCorasick>,
}

/// The shortest expectation that is looked for. A shorter one may be in any text.
const SHORTEST_ANSWER: usize = 10;

/// The greatest length of a text that is looked for. Only the beginning of a longer text is used.
const LONGEST_TEXT: usize = 160;

impl EvalTexts {
    pub fn of<'s>(suites: impl IntoIterator<Item = &'s Suite>) -> Self {
        let (mut questions, mut answers) = (Vec::new(), Vec::new());
        for case in suites.into_iter().flat_map(|suite| &suite.cases) {
            if let CasePrompt::Turns(turns) = &case.prompt {
                questions.extend(turns.iter().map(|turn| searched_words(turn)));
            }
            let judged = case.checks.iter().filter_map(|check| match &check.kind {
                CheckKind::Judged(judged) => Some(&judged.statement),
                CheckKind::Rule(_) | CheckKind::Sections(_) | CheckKind::Activation(_) => None,
            });
            answers.extend(judged.chain(&case.context).map(|text| searched_words(text)));
        }
        questions.retain(|words| words.len() > 2);
        answers.retain(|words| words.len() > SHORTEST_ANSWER);
        answers.extend(activation_keys().map(searched_words));
        // Building the search fails only if there are more texts than fit into memory.
        let search = |texts: Vec<Vec<u8>>| AhoCorasick::new(texts).ok();
        let questions = (!questions.is_empty()).then(|| search(questions)).flatten();
        Self { answers: questions.as_ref().and_then(|_| search(answers)), questions }
    }

    /// Says whether a file contains the question of a case.
    pub fn has_question(&self, file: &Unpacked<'_>) -> bool {
        has_any(self.questions.as_ref(), file)
    }

    /// Says whether a file contains what is expected of an answer.
    pub fn has_answer(&self, file: &Unpacked<'_>) -> bool {
        has_any(self.answers.as_ref(), file)
    }

    /// Says whether a file contains both a question and what is expected of an answer.
    pub fn are_in(&self, file: &Unpacked<'_>) -> bool {
        self.has_question(file) && self.has_answer(file)
    }
}

fn has_any(texts: Option<&AhoCorasick>, file: &Unpacked<'_>) -> bool {
    let Some((texts, reader)) = texts.zip(file.reader()) else { return false };
    texts.stream_find_iter(Words::of(reader)).next().is_some_and(|found| found.is_ok())
}

/// Gives the words of a text that is looked for.
fn searched_words(text: &str) -> Vec<u8> {
    let mut words = Vec::new();
    // Reading from memory cannot fail.
    let _ = Words::of(text.as_bytes()).read_to_end(&mut words);
    words.truncate(LONGEST_TEXT);
    words
}

/// A reader of the words of a text, in lowercase, with one space before each. So a text is found whatever is
/// around its words: quotes and escapes of JSON, line breaks of YAML, emphasis of Markdown.
struct Words<R> {
    text: BufReader<R>,
    /// Output that was produced and not yet read.
    ready: Vec<u8>,
    read: usize,
    is_between: bool,
    escape: Escape,
}

/// The state of reading an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// A character by its number, with this many digits still to come.
    Number {
        digits: u8,
        value: u32,
    },
    /// The remaining bytes of a character that JSON writes as two numbers. They are skipped.
    Pair(u8),
}

impl<R: Read> Words<R> {
    fn of(text: R) -> Self {
        let text = BufReader::new(text);
        Self { text, ready: Vec::new(), read: 0, is_between: true, escape: Escape::None }
    }

    fn add(&mut self, byte: u8) {
        match self.escape {
            Escape::None => self.add_plain(byte),
            Escape::Begun => {
                self.escape = Escape::None;
                match byte {
                    b'u' => self.escape = Escape::Number { digits: 4, value: 0 },
                    b'n' | b'r' | b't' => self.is_between = true,
                    other => self.add_plain(other),
                }
            }
            Escape::Number { digits, value } => self.add_digit(byte, digits, value),
            Escape::Pair(left) => {
                self.escape = if left > 1 { Escape::Pair(left - 1) } else { Escape::None };
            }
        }
    }

    fn add_plain(&mut self, byte: u8) {
        match byte {
            b'\\' => self.escape = Escape::Begun,
            // Characters that JSON writes as two numbers are skipped in both spellings.
            0xf0.. => self.escape = Escape::Pair(3),
            _ if byte.is_ascii_alphanumeric() || byte >= 0x80 => {
                if std::mem::take(&mut self.is_between) {
                    self.ready.push(b' ');
                }
                self.ready.push(byte.to_ascii_lowercase());
            }
            _ => self.is_between = true,
        }
    }

    fn add_digit(&mut self, byte: u8, digits: u8, value: u32) {
        self.escape = Escape::None;
        let Some(digit) = char::from(byte).to_digit(16) else { return self.add_plain(byte) };
        let value = value * 16 + digit;
        if digits > 1 {
            self.escape = Escape::Number { digits: digits - 1, value };
        } else if let Some(character) = char::from_u32(value) {
            character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.add_plain(byte));
        }
    }
}

impl<R: Read> Read for Words<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.read == self.ready.len() {
            self.ready.clear();
            self.read = 0;
            let piece = self.text.fill_buf()?.to_vec();
            if piece.is_empty() {
                return Ok(0);
            }
            self.text.consume(piece.len());
            piece.into_iter().for_each(|byte| self.add(byte));
        }
        let count = out.len().min(self.ready.len() - self.read);
        out[..count].copy_from_slice(&self.ready[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_found_in_every_format() {
        let plain = searched_words("Write \"a\" café\nbrief – now 😀!");
        assert_eq!(String::from_utf8_lossy(&plain), " write a café brief – now");
        for other in [
            r#"Write \"a\" caf\u00e9\nbrief \u2013 now \ud83d\ude00!"#,
            "> **Write** `a` café\n>   brief – now 😀",
        ] {
            assert_eq!(searched_words(other), plain, "{other}");
        }
    }
}
