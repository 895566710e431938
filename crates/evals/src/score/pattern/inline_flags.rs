//! Flags written in the pattern: `(?im)` for all of it, `(?i-s:…)` for a group.

use super::syntax::Fold;
use super::tokens::{Token, Tokens};
use super::{Flags, InvalidPattern};

/// The flags in force at a place in the pattern.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub ignore_case: bool,
    pub multiline: bool,
    pub dot_all: bool,
    pub verbose: bool,
    pub ascii: bool,
    /// `u` was written. It is the default, and still may not meet `a`.
    unicode: bool,
}

/// What a run of flag letters turned out to be.
pub enum Given {
    ForAll(State),
    ForGroup(State),
}

impl State {
    pub fn new(flags: Flags) -> Self {
        Self { ignore_case: flags.ignore_case, multiline: flags.multiline, ..Self::default() }
    }

    /// Letters that can begin flags. `L` is one, though never allowed in text patterns.
    pub fn is_flag(c: char) -> bool {
        matches!(c, 'a' | 'i' | 'L' | 'm' | 's' | 'u' | 'x')
    }

    pub fn fold(&self) -> Option<Fold> {
        match (self.ignore_case, self.ascii) {
            (false, _) => None,
            (true, true) => Some(Fold::Ascii),
            (true, false) => Some(Fold::Unicode),
        }
    }

    fn set(&mut self, flag: char, on: bool) {
        match flag {
            'i' => self.ignore_case = on,
            'm' => self.multiline = on,
            's' => self.dot_all = on,
            'x' => self.verbose = on,
            'a' => self.ascii = on,
            'u' => self.unicode = on,
            _ => {}
        }
    }
}

/// Reads flags up to and including the `)` or `:` behind them. The first letter (or `-`) is
/// already taken.
pub fn read_flags(tokens: &mut Tokens, first: char, state: &State) -> Result<Given, InvalidPattern> {
    let start = tokens.at() - 1;
    let wrong = |message: &str| Err(InvalidPattern { message: message.to_owned(), at: start });
    let (mut on, mut off) = (Vec::new(), Vec::new());
    let mut c = first;
    while c != '-' {
        if c == 'L' {
            return wrong("bad inline flags: cannot use 'L' flag with a str pattern");
        }
        on.push(c);
        c = match tokens.take() {
            Some(Token::Plain(c @ (')' | ':' | '-'))) => c,
            Some(Token::Plain(c)) if State::is_flag(c) => c,
            Some(Token::Plain(c)) if c.is_alphabetic() => return wrong("unknown flag"),
            Some(_) | None => return wrong("missing -, : or )"),
        };
        if c == ')' || c == ':' {
            break;
        }
    }
    if on.contains(&'a') && on.contains(&'u') {
        return wrong("bad inline flags: flags 'a', 'u' and 'L' are incompatible");
    }
    if c == ')' {
        let mut all = state.clone();
        on.iter().for_each(|&flag| all.set(flag, true));
        if all.ascii && all.unicode {
            return wrong("ASCII and UNICODE flags are incompatible");
        }
        return Ok(Given::ForAll(all));
    }
    if c == '-' {
        loop {
            match tokens.take() {
                Some(Token::Plain(':')) if !off.is_empty() => break,
                Some(Token::Plain('a' | 'u' | 'L')) => {
                    return wrong("bad inline flags: cannot turn off flags 'a', 'u' and 'L'");
                }
                Some(Token::Plain(flag)) if State::is_flag(flag) => off.push(flag),
                Some(Token::Plain(flag)) if flag.is_alphabetic() => return wrong("unknown flag"),
                Some(_) | None if off.is_empty() => return wrong("missing flag"),
                Some(_) | None => return wrong("missing :"),
            }
        }
    }
    if on.iter().any(|flag| off.contains(flag)) {
        return wrong("bad inline flags: flag turned on and off");
    }
    let mut group = state.clone();
    if on.contains(&'a') || on.contains(&'u') {
        group.set('a', false);
        group.set('u', false);
    }
    on.iter().for_each(|&flag| group.set(flag, true));
    off.iter().for_each(|&flag| group.set(flag, false));
    Ok(Given::ForGroup(group))
}
