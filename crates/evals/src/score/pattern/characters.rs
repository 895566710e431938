//! The pieces that stand for one character: literals, escapes, sets. (And the escapes that look
//! alike: anchors and group numbers.)

use super::fold::fold;
use super::inline_flags::State;
use super::parse::Parser;
use super::syntax::{At, Class, Item, Node, Set};
use super::tokens::Token;
use super::{InvalidPattern, names};

impl Parser<'_> {
    pub(super) fn escape(&mut self, c: char, start: usize, state: &State) -> Result<Node, InvalidPattern> {
        let node = match c {
            'A' => Node::At(At::Start),
            'Z' => Node::At(At::End),
            'b' => Node::At(At::WordEdge { ascii: state.ascii }),
            'B' => Node::At(At::NotWordEdge { ascii: state.ascii }),
            '1'..='9' => return self.octal_or_group(c, start, state),
            _ => match class_item(c, state.ascii) {
                Some(item) => Node::One(Set { negated: false, items: vec![item] }),
                None => Node::One(literal(self.escaped_code(c, start)?, state)),
            },
        };
        Ok(node)
    }

    /// `\12` is a group, `\123` a character.
    fn octal_or_group(&mut self, first: char, start: usize, state: &State) -> Result<Node, InvalidPattern> {
        let mut digits = String::from(first);
        if let Some(second) = self.tokens.peek_digit() {
            self.tokens.take();
            digits.push(second);
            let third = self.tokens.peek_digit().filter(|third| {
                digits.bytes().all(|digit| matches!(digit, b'0'..=b'7')) && ('0'..='7').contains(third)
            });
            if let Some(third) = third {
                self.tokens.take();
                digits.push(third);
                return Ok(Node::One(literal(self.octal(&digits, start)?, state)));
            }
        }
        match digits.parse::<usize>() {
            Ok(group) => self.same(group, start, state),
            Err(_) => Err(self.tokens.error(start, format!("invalid group reference {digits}"))),
        }
    }

    fn octal(&self, digits: &str, start: usize) -> Result<u32, InvalidPattern> {
        match u32::from_str_radix(digits, 8) {
            Ok(code) if code <= 0o377 => Ok(code),
            Ok(_) | Err(_) => {
                let message = format!("octal escape value \\{digits} outside of range 0-0o377");
                Err(self.tokens.error(start, message))
            }
        }
    }

    /// The character that an escape stands for, inside a set or outside.
    fn escaped_code(&mut self, c: char, start: usize) -> Result<u32, InvalidPattern> {
        let code = match c {
            'a' => 0x07,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            'x' => return self.hex(2, start),
            'u' => return self.hex(4, start),
            'U' => return self.hex(8, start),
            'N' => return self.named(start),
            '0' => {
                let digits = self.tokens.take_while(2, |c| ('0'..='7').contains(c));
                return self.octal(&format!("0{digits}"), start);
            }
            _ if c.is_ascii_alphanumeric() => {
                return Err(self.tokens.error(start, format!("bad escape \\{c}")));
            }
            _ => c.into(),
        };
        Ok(code)
    }

    fn hex(&mut self, digits: usize, start: usize) -> Result<u32, InvalidPattern> {
        let found = self.tokens.take_while(digits, char::is_ascii_hexdigit);
        let wrong = |what: &str| self.tokens.error(start, format!("{what} {}", self.tokens.since(start)));
        if found.len() != digits {
            return Err(wrong("incomplete escape"));
        }
        match u32::from_str_radix(&found, 16) {
            Ok(code) if code <= char::MAX.into() => Ok(code),
            Ok(_) | Err(_) => Err(wrong("bad escape")),
        }
    }

    fn named(&mut self, start: usize) -> Result<u32, InvalidPattern> {
        if !self.tokens.take_if('{') {
            return Err(self.tokens.error_here("missing {"));
        }
        let name = self.tokens.take_until('}', "character name")?;
        names::lookup(&name).map(u32::from).ok_or_else(|| {
            let message =
                format!("undefined character name '{name}' (only common names are known; write \\uXXXX)");
            self.tokens.error(start, message)
        })
    }

    /// A set, its opening bracket already taken. `[`, `&&`, `--` and `~~` are plain characters.
    pub(super) fn set(&mut self, start: usize, state: &State) -> Result<Set, InvalidPattern> {
        let negated = self.tokens.take_if('^');
        let mut ranges = Vec::new();
        let mut classes = Vec::new();
        loop {
            let here = self.tokens.at();
            let Some(token) = self.tokens.take() else { return Err(self.unterminated(start)) };
            if token.is(']') && !(ranges.is_empty() && classes.is_empty()) {
                break;
            }
            let low = self.member(token, here, state)?;
            if !self.tokens.take_if('-') {
                low.add_to(&mut ranges, &mut classes);
                continue;
            }
            let there = self.tokens.at();
            let Some(token) = self.tokens.take() else { return Err(self.unterminated(start)) };
            if token.is(']') {
                low.add_to(&mut ranges, &mut classes);
                ranges.push(('-'.into(), '-'.into()));
                break;
            }
            match (low, self.member(token, there, state)?) {
                (Member::Code(low), Member::Code(high)) if low <= high => ranges.push((low, high)),
                (Member::Code(_) | Member::Class(_), _) => {
                    let message = format!("bad character range {}", self.tokens.since(here));
                    return Err(self.tokens.error(here, message));
                }
            }
        }
        // Only what was written as a character has a case; `\W` stays as it is.
        if let Some(kind) = state.fold() {
            ranges = fold(&ranges, kind);
        }
        let ranges = ranges.into_iter().map(|(low, high)| Item::Range(low, high));
        Ok(Set { negated, items: ranges.chain(classes).collect() })
    }

    fn unterminated(&self, start: usize) -> InvalidPattern {
        self.tokens.error(start, "unterminated character set")
    }

    fn member(&mut self, token: Token, start: usize, state: &State) -> Result<Member, InvalidPattern> {
        let c = match token {
            Token::Plain(c) => return Ok(Member::Code(c.into())),
            Token::Escaped(c) => c,
        };
        if let Some(item) = class_item(c, state.ascii) {
            return Ok(Member::Class(item));
        }
        match c {
            'b' => Ok(Member::Code(0x08)),
            '0'..='7' => {
                let more = self.tokens.take_while(2, |c| ('0'..='7').contains(c));
                Ok(Member::Code(self.octal(&format!("{c}{more}"), start)?))
            }
            _ => Ok(Member::Code(self.escaped_code(c, start)?)),
        }
    }
}

/// One member of a set as written.
enum Member {
    Code(u32),
    Class(Item),
}

impl Member {
    fn add_to(self, ranges: &mut Vec<(u32, u32)>, classes: &mut Vec<Item>) {
        match self {
            Member::Code(code) => ranges.push((code, code)),
            Member::Class(item) => classes.push(item),
        }
    }
}

fn class_item(c: char, ascii: bool) -> Option<Item> {
    let class = match c {
        'd' | 'D' => Class::Digit,
        's' | 'S' => Class::Space,
        'w' | 'W' => Class::Word,
        _ => return None,
    };
    Some(Item::Class { class, negated: c.is_ascii_uppercase(), ascii })
}

/// One character, in every case that counts as the same.
pub(super) fn literal(code: u32, state: &State) -> Set {
    let Some(kind) = state.fold() else { return Set::literal(code) };
    let items = fold(&[(code, code)], kind).into_iter().map(|(low, high)| Item::Range(low, high)).collect();
    Set { negated: false, items }
}
