//! The characters of a pattern as tokens. An escape is one token, so `\)` never closes a group.

use super::InvalidPattern;

/// A character of a pattern, plain or after a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternToken {
    Plain(char),
    Escaped(char),
}

impl PatternToken {
    /// Says whether this is the given character, without a backslash.
    pub fn is_plain(self, c: char) -> bool {
        self == PatternToken::Plain(c)
    }
}

/// The tokens of a pattern, with the current position.
pub struct PatternTokens {
    chars: Vec<char>,
    position: usize,
}

impl PatternTokens {
    pub fn new(source: &str) -> Result<Self, InvalidPattern> {
        let tokens = Self { chars: source.chars().collect(), position: 0 };
        // An even number of backslashes at the end are escaped ones; with an odd number, the last escapes nothing.
        let trailing = tokens.chars.iter().rev().take_while(|&&c| c == '\\').count();
        if trailing % 2 == 1 {
            return Err(tokens.error(tokens.chars.len() - 1, "bad escape (end of pattern)"));
        }
        Ok(tokens)
    }

    pub fn position(&self) -> usize {
        self.position
    }

    pub fn move_back_to(&mut self, at: usize) {
        self.position = at;
    }

    pub fn peek(&self) -> Option<PatternToken> {
        match *self.chars.get(self.position)? {
            '\\' => self.chars.get(self.position + 1).map(|&c| PatternToken::Escaped(c)),
            c => Some(PatternToken::Plain(c)),
        }
    }

    pub fn take(&mut self) -> Option<PatternToken> {
        let token = self.peek()?;
        self.position += match token {
            PatternToken::Plain(_) => 1,
            PatternToken::Escaped(_) => 2,
        };
        Some(token)
    }

    pub fn take_if(&mut self, wanted: char) -> bool {
        let there = self.peek_is(wanted);
        if there {
            self.position += 1;
        }
        there
    }

    pub fn peek_is(&self, wanted: char) -> bool {
        self.peek() == Some(PatternToken::Plain(wanted))
    }

    pub fn peek_digit(&self) -> Option<char> {
        match self.peek()? {
            PatternToken::Plain(c) if c.is_ascii_digit() => Some(c),
            PatternToken::Plain(_) | PatternToken::Escaped(_) => None,
        }
    }

    /// Takes at most `most` plain characters of a kind.
    pub fn take_while(&mut self, most: usize, kind: fn(&char) -> bool) -> String {
        let taken: String = self.chars[self.position..].iter().copied().take(most).take_while(kind).collect();
        self.position += taken.chars().count();
        taken
    }

    /// Takes the text before `end`, and `end` too. An empty text is an error.
    pub fn take_until(&mut self, end: char, what: &str) -> Result<String, InvalidPattern> {
        let start = self.position;
        loop {
            match self.take() {
                None if self.position == start => return Err(self.error(start, format!("missing {what}"))),
                None => return Err(self.error(start, format!("missing {end}, unterminated name"))),
                Some(token) if token.is_plain(end) => break,
                Some(_) => {}
            }
        }
        if self.position == start + 1 {
            return Err(self.error(start, format!("missing {what}")));
        }
        Ok(self.chars[start..self.position - 1].iter().collect())
    }

    /// Gives the text from a position up to here, for messages.
    pub fn text_since(&self, start: usize) -> String {
        self.chars[start..self.position].iter().collect()
    }

    pub fn error(&self, at: usize, message: impl Into<String>) -> InvalidPattern {
        InvalidPattern { message: message.into(), position: at }
    }

    pub fn error_here(&self, message: impl Into<String>) -> InvalidPattern {
        self.error(self.position, message)
    }
}
