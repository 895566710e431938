//! Recognises copies of the evals that are run, in any format, by their texts.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};

use aho_corasick::AhoCorasick;
use serde_json::Value;

use super::unpacked::Unpacked;
use super::{ContentKind, eval_document};
use practicum_core::model::{CasePrompt, CheckKind, Suite};

/// The prompts and expectations of evals.
#[derive(Debug, Default)]
pub struct EvalTexts {
    cases: Vec<CaseTexts>,
    /// Looks for all texts at once.
    search: Option<AhoCorasick>,
}

/// The texts of one case, by their numbers in the search.
#[derive(Debug, Default)]
struct CaseTexts {
    prompts: Vec<SearchedText>,
    expectations: Vec<SearchedText>,
    expects_activation: bool,
}

#[derive(Debug, Clone, Copy)]
struct SearchedText {
    number: usize,
    letters: usize,
}

/// A prompt with fewer letters may stand in any text.
const SHORTEST_PROMPT: usize = 2;

/// An expectation with fewer letters may stand in any text.
const SHORTEST_EXPECTATION: usize = 9;

/// The text of an exact check, such as `contains`, with fewer letters may stand in any text.
const SHORTEST_EXACT_TEXT: usize = 16;

/// A prompt and an expectation that have so many letters together do not stand in one text by chance.
const SHORTEST_PAIR: usize = 48;

/// The number of bytes that show whether a text is HTML or XML.
const MARKUP_HEAD: u64 = 64;

/// The greatest length of a text that is looked for. Only the beginning of a longer text is used.
const LONGEST_TEXT: usize = 160;

impl EvalTexts {
    pub fn of<'s>(suites: impl IntoIterator<Item = &'s Suite>) -> Self {
        let mut searched = Vec::new();
        let mut add = |text: &str, shortest: usize| {
            let words = searched_words(text);
            // A space stands before the words, and one after them.
            let letters = words.len().saturating_sub(2);
            (letters >= shortest).then(|| {
                searched.push(words);
                SearchedText { number: searched.len() - 1, letters }
            })
        };
        let mut cases = Vec::new();
        for case in suites.into_iter().flat_map(|suite| &suite.cases) {
            let mut texts = CaseTexts::default();
            if let CasePrompt::Turns(turns) = &case.prompt {
                texts.prompts = turns.iter().filter_map(|turn| add(turn, SHORTEST_PROMPT)).collect();
            }
            for check in &case.checks {
                match &check.kind {
                    CheckKind::Judged(judged) => {
                        texts.expectations.extend(add(&judged.statement, SHORTEST_EXPECTATION));
                    }
                    CheckKind::Activation(_) => texts.expects_activation = true,
                    CheckKind::Rule(rule) => {
                        let value = rule.value();
                        let exact = texts_in(&value).into_iter();
                        texts.expectations.extend(exact.filter_map(|text| add(text, SHORTEST_EXACT_TEXT)));
                    }
                    CheckKind::Sections(_) => {}
                }
            }
            let context = case.context.iter().filter_map(|text| add(text, SHORTEST_EXPECTATION));
            texts.expectations.extend(context);
            cases.push(texts);
        }
        // Only more texts than memory can hold cannot be searched for.
        let search = (!searched.is_empty()).then(|| AhoCorasick::new(searched).ok()).flatten();
        Self { cases, search }
    }

    /// Whether a file is a copy of these evals, or of some of them, in any format: it has the structure of an eval
    /// file and one of their texts, or it says of cases both what they ask and what they expect.
    pub fn are_in(&self, file: &Unpacked<'_>) -> bool {
        let mut found = self.find_in(file.reader());
        if file.head(MARKUP_HEAD).is_some_and(|head| head.trim_ascii_start().starts_with(b"<")) {
            found.extend(self.find_in(file.reader().map(without_markup).as_deref()));
        }
        if found.is_empty() {
            return false;
        }
        eval_document::classify_eval_document(file) != ContentKind::Other
            || self.are_in_code_block(file)
            || self.are_contained_in(file, &found)
    }

    /// Whether a file has one of the texts.
    pub fn share_text_with(&self, file: &Unpacked<'_>) -> bool {
        !self.find_in(file.reader()).is_empty()
    }

    /// Whether a file has a block of code that is an eval file with one of the texts.
    pub fn are_in_code_block(&self, file: &Unpacked<'_>) -> bool {
        self.search.is_some()
            && eval_document::eval_code_blocks(file)
                .iter()
                .any(|block| !self.find_in(Some(block.as_bytes())).is_empty())
    }

    /// Whether a file, in which these texts were found, says of cases what they ask and what they expect. Two short
    /// texts of one case may stand in any document by chance, so there must be two such cases, or long texts, or
    /// the keys of a case, or an archive around them.
    fn are_contained_in(&self, file: &Unpacked<'_>, found: &BTreeSet<usize>) -> bool {
        let keys = eval_document::named_case_keys(file);
        let is_found = |text: &&SearchedText| found.contains(&text.number);
        let longest = |texts: &[SearchedText]| texts.iter().filter(is_found).map(|text| text.letters).max();
        let pairs: Vec<(usize, usize)> = self
            .cases
            .iter()
            .filter_map(|case| longest(&case.prompts).zip(longest(&case.expectations)))
            .collect();
        let is_long = |(prompt, expectation): &(usize, usize)| {
            *prompt >= SHORTEST_EXPECTATION && prompt + expectation >= SHORTEST_PAIR
        };
        let asks = |case: &&CaseTexts| case.prompts.iter().any(|text| found.contains(&text.number));
        pairs.len() > 1
            || pairs.len() == 1 && (keys.make_case || file.is_binary())
            || pairs.iter().any(is_long)
            || keys.expect_activation && self.cases.iter().any(|case| case.expects_activation && asks(&case))
    }

    /// Gives the numbers of the texts that occur in a file.
    fn find_in(&self, text: Option<impl Read>) -> BTreeSet<usize> {
        let Some((search, text)) = self.search.as_ref().zip(text) else { return BTreeSet::new() };
        let mut words = Vec::new();
        // What was read before an error can be read by an agent, too.
        let _ = Words::of(text).read_to_end(&mut words);
        search.find_overlapping_iter(&words).map(|found| found.pattern().as_usize()).collect()
    }
}

/// Gives the texts in the value of an exact check.
fn texts_in(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_in).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Gives a text in HTML or XML without its tags and without escaped signs, as a browser shows its words.
fn without_markup(mut text: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before an error can be read by an agent, too.
    let _ = text.read_to_end(&mut bytes);
    let mut is_tag = false;
    for byte in &mut bytes {
        is_tag |= *byte == b'<';
        let is_end = *byte == b'>';
        // A tag stands between words, as a space does.
        *byte = if is_tag { b' ' } else { *byte };
        is_tag &= !is_end;
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    for sign in ["&quot;", "&#34;", "&#39;", "&#x27;", "&apos;", "&lt;", "&gt;", "&amp;", "&nbsp;"] {
        text = text.replace(sign, " ");
    }
    text.into_bytes()
}

/// Gives the words of a text that is looked for.
fn searched_words(text: &str) -> Vec<u8> {
    let mut words = Vec::new();
    // Reading from memory cannot fail.
    let _ = Words::of(text.as_bytes()).read_to_end(&mut words);
    words.truncate(LONGEST_TEXT);
    words
}

/// Reads the words of a text in small letters, with one space before each and one after the last. So a text is found again whatever is
/// around its words: quotes and escapes of JSON, line breaks of YAML, emphasis of Markdown.
struct Words<R> {
    text: BufReader<R>,
    /// Output that was produced and not yet read.
    ready: Vec<u8>,
    read: usize,
    is_between: bool,
    has_ended: bool,
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
        Self { text, ready: Vec::new(), read: 0, is_between: true, has_ended: false, escape: Escape::None }
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
            if piece.is_empty() && self.has_ended {
                return Ok(0);
            }
            if piece.is_empty() {
                // The last word ends as the others do.
                self.has_ended = true;
                self.ready.push(b' ');
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
        assert_eq!(String::from_utf8_lossy(&plain), " write a café brief – now ");
        for other in [
            r#"Write \"a\" caf\u00e9\nbrief \u2013 now \ud83d\ude00!"#,
            "> **Write** `a` café\n>   brief – now 😀",
        ] {
            assert_eq!(searched_words(other), plain, "{other}");
        }
    }
}
