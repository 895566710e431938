//! Flags written in the pattern: `(?im)` for all of it, `(?i-s:…)` for a group.

use super::syntax::CaseFolding;
use super::tokens::{PatternToken, PatternTokens};
use super::{InvalidPattern, PatternFlags};

/// The flags that apply at one position of the pattern.
#[derive(Debug, Clone, Default)]
pub struct FlagState {
    pub ignore_case: bool,
    pub multiline: bool,
    pub dot_all: bool,
    pub verbose: bool,
    pub ascii: bool,
    /// The pattern has the flag `u`. It is the default, but it must not be combined with `a`.
    unicode: bool,
}

/// The part of the pattern that a sequence of flag letters applies to.
pub enum FlagScope {
    ForAll(FlagState),
    ForGroup(FlagState),
}

impl FlagState {
    pub fn new(flags: PatternFlags) -> Self {
        Self { ignore_case: flags.ignore_case, multiline: flags.multiline, ..Self::default() }
    }

    /// Says whether flags can begin with this letter. `L` counts, although text patterns may not use it.
    pub fn is_flag(c: char) -> bool {
        matches!(c, 'a' | 'i' | 'L' | 'm' | 's' | 'u' | 'x')
    }

    /// Gives the letters that are equal when case is ignored; `None` if case matters.
    pub fn fold(&self) -> Option<CaseFolding> {
        match (self.ignore_case, self.ascii) {
            (false, _) => None,
            (true, true) => Some(CaseFolding::Ascii),
            (true, false) => Some(CaseFolding::Unicode),
        }
    }

    fn set_flag(&mut self, flag: char, on: bool) {
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

/// Reads flags up to and including the `)` or `:` after them. The first letter (or `-`) has already been read.
pub fn read_flags(
    tokens: &mut PatternTokens,
    first: char,
    state: &FlagState,
) -> Result<FlagScope, InvalidPattern> {
    let start = tokens.position() - 1;
    let wrong = |message: &str| Err(InvalidPattern { message: message.to_owned(), position: start });
    let (mut on, mut off) = (Vec::new(), Vec::new());
    let mut c = first;
    while c != '-' {
        if c == 'L' {
            return wrong("bad inline flags: cannot use 'L' flag with a str pattern");
        }
        on.push(c);
        c = match tokens.take() {
            Some(PatternToken::Plain(c @ (')' | ':' | '-'))) => c,
            Some(PatternToken::Plain(c)) if FlagState::is_flag(c) => c,
            Some(PatternToken::Plain(c)) if c.is_alphabetic() => return wrong("unknown flag"),
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
        on.iter().for_each(|&flag| all.set_flag(flag, true));
        if all.ascii && all.unicode {
            return wrong("ASCII and UNICODE flags are incompatible");
        }
        return Ok(FlagScope::ForAll(all));
    }
    if c == '-' {
        loop {
            match tokens.take() {
                Some(PatternToken::Plain(':')) if !off.is_empty() => break,
                Some(PatternToken::Plain('a' | 'u' | 'L')) => {
                    return wrong("bad inline flags: cannot turn off flags 'a', 'u' and 'L'");
                }
                Some(PatternToken::Plain(flag)) if FlagState::is_flag(flag) => off.push(flag),
                Some(PatternToken::Plain(flag)) if flag.is_alphabetic() => return wrong("unknown flag"),
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
        group.set_flag('a', false);
        group.set_flag('u', false);
    }
    on.iter().for_each(|&flag| group.set_flag(flag, true));
    off.iter().for_each(|&flag| group.set_flag(flag, false));
    Ok(FlagScope::ForGroup(group))
}
