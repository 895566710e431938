//! The characters of a pattern, an escape being one token: `\)` never closes anything.

use super::InvalidPattern;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    Plain(char),
    Escaped(char),
}

impl Token {
    pub fn is(self, c: char) -> bool {
        self == Token::Plain(c)
    }
}

pub struct Tokens {
    chars: Vec<char>,
    at: usize,
}

impl Tokens {
    pub fn new(source: &str) -> Result<Self, InvalidPattern> {
        let tokens = Self { chars: source.chars().collect(), at: 0 };
        // An even number of backslashes at the end are escaped ones; an odd one escapes nothing.
        let trailing = tokens.chars.iter().rev().take_while(|&&c| c == '\\').count();
        if trailing % 2 == 1 {
            return Err(tokens.error(tokens.chars.len() - 1, "bad escape (end of pattern)"));
        }
        Ok(tokens)
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    pub fn peek(&self) -> Option<Token> {
        match *self.chars.get(self.at)? {
            '\\' => self.chars.get(self.at + 1).map(|&c| Token::Escaped(c)),
            c => Some(Token::Plain(c)),
        }
    }

    pub fn take(&mut self) -> Option<Token> {
        let token = self.peek()?;
        self.at += match token {
            Token::Plain(_) => 1,
            Token::Escaped(_) => 2,
        };
        Some(token)
    }

    pub fn take_if(&mut self, wanted: char) -> bool {
        let there = self.peek_is(wanted);
        if there {
            self.at += 1;
        }
        there
    }

    pub fn peek_is(&self, wanted: char) -> bool {
        self.peek() == Some(Token::Plain(wanted))
    }

    pub fn peek_digit(&self) -> Option<char> {
        match self.peek()? {
            Token::Plain(c) if c.is_ascii_digit() => Some(c),
            Token::Plain(_) | Token::Escaped(_) => None,
        }
    }

    /// At most `most` plain characters of a kind.
    pub fn take_while(&mut self, most: usize, kind: fn(&char) -> bool) -> String {
        let taken: String = self.chars[self.at..].iter().copied().take(most).take_while(kind).collect();
        self.at += taken.chars().count();
        taken
    }

    /// What stands before `end`, which is taken too; never nothing.
    pub fn take_until(&mut self, end: char, what: &str) -> Result<String, InvalidPattern> {
        let start = self.at;
        loop {
            match self.take() {
                None if self.at == start => return Err(self.error(start, format!("missing {what}"))),
                None => return Err(self.error(start, format!("missing {end}, unterminated name"))),
                Some(token) if token.is(end) => break,
                Some(_) => {}
            }
        }
        if self.at == start + 1 {
            return Err(self.error(start, format!("missing {what}")));
        }
        Ok(self.chars[start..self.at - 1].iter().collect())
    }

    /// The text from a position up to here, for messages.
    pub fn since(&self, start: usize) -> String {
        self.chars[start..self.at].iter().collect()
    }

    pub fn error(&self, at: usize, message: impl Into<String>) -> InvalidPattern {
        InvalidPattern { message: message.into(), at }
    }

    pub fn error_here(&self, message: impl Into<String>) -> InvalidPattern {
        self.error(self.at, message)
    }
}
