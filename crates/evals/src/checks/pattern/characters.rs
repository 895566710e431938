//! Parses what stands for one character: literals, escapes, sets. Also parses the escapes that look similar:
//! anchors and group numbers.

use super::case_folding::fold_ranges;
use super::inline_flags::FlagState;
use super::parse::PatternParser;
use super::syntax::{CharacterClass, CharacterSet, PatternAnchor, PatternNode, SetItem};
use super::tokens::PatternToken;
use super::{InvalidPattern, character_names};

impl PatternParser<'_> {
    pub(super) fn parse_escape(
        &mut self,
        c: char,
        start: usize,
        state: &FlagState,
    ) -> Result<PatternNode, InvalidPattern> {
        let node = match c {
            'A' => PatternNode::Anchor(PatternAnchor::Start),
            'Z' => PatternNode::Anchor(PatternAnchor::End),
            'b' => PatternNode::Anchor(PatternAnchor::WordEdge { ascii: state.ascii }),
            'B' => PatternNode::Anchor(PatternAnchor::NotWordEdge { ascii: state.ascii }),
            '1'..='9' => return self.parse_octal_or_group(c, start, state),
            _ => match class_item(c, state.ascii) {
                Some(item) => PatternNode::OneCharacter(CharacterSet { negated: false, items: vec![item] }),
                None => PatternNode::OneCharacter(literal_set(self.parse_escaped_code(c, start)?, state)),
            },
        };
        Ok(node)
    }

    /// Parses a backslash and digits: `\12` is a group, `\123` a character.
    fn parse_octal_or_group(
        &mut self,
        first: char,
        start: usize,
        state: &FlagState,
    ) -> Result<PatternNode, InvalidPattern> {
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
                return Ok(PatternNode::OneCharacter(literal_set(self.parse_octal(&digits, start)?, state)));
            }
        }
        match digits.parse::<usize>() {
            Ok(group) => self.back_reference(group, start, state),
            Err(_) => Err(self.tokens.error(start, format!("invalid group reference {digits}"))),
        }
    }

    fn parse_octal(&self, digits: &str, start: usize) -> Result<u32, InvalidPattern> {
        match u32::from_str_radix(digits, 8) {
            Ok(code) if code <= 0o377 => Ok(code),
            Ok(_) | Err(_) => {
                let message = format!("octal escape value \\{digits} outside of range 0-0o377");
                Err(self.tokens.error(start, message))
            }
        }
    }

    /// Gives the character that an escape stands for, inside or outside a set.
    fn parse_escaped_code(&mut self, c: char, start: usize) -> Result<u32, InvalidPattern> {
        let code = match c {
            'a' => 0x07,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            'x' => return self.parse_hex(2, start),
            'u' => return self.parse_hex(4, start),
            'U' => return self.parse_hex(8, start),
            'N' => return self.parse_named(start),
            '0' => {
                let digits = self.tokens.take_while(2, |c| ('0'..='7').contains(c));
                return self.parse_octal(&format!("0{digits}"), start);
            }
            _ if c.is_ascii_alphanumeric() => {
                return Err(self.tokens.error(start, format!("bad escape \\{c}")));
            }
            _ => c.into(),
        };
        Ok(code)
    }

    fn parse_hex(&mut self, digits: usize, start: usize) -> Result<u32, InvalidPattern> {
        let found = self.tokens.take_while(digits, char::is_ascii_hexdigit);
        let wrong =
            |what: &str| self.tokens.error(start, format!("{what} {}", self.tokens.text_since(start)));
        if found.len() != digits {
            return Err(wrong("incomplete escape"));
        }
        match u32::from_str_radix(&found, 16) {
            Ok(code) if code <= char::MAX.into() => Ok(code),
            Ok(_) | Err(_) => Err(wrong("bad escape")),
        }
    }

    fn parse_named(&mut self, start: usize) -> Result<u32, InvalidPattern> {
        if !self.tokens.take_if('{') {
            return Err(self.tokens.error_here("missing {"));
        }
        let name = self.tokens.take_until('}', "character name")?;
        character_names::find_character(&name).map(u32::from).ok_or_else(|| {
            let message =
                format!("undefined character name '{name}' (only common names are known; write \\uXXXX)");
            self.tokens.error(start, message)
        })
    }

    /// Parses a set after its opening bracket. `[`, `&&`, `--` and `~~` are plain characters in it.
    pub(super) fn parse_set(
        &mut self,
        start: usize,
        state: &FlagState,
    ) -> Result<CharacterSet, InvalidPattern> {
        let negated = self.tokens.take_if('^');
        let mut ranges = Vec::new();
        let mut classes = Vec::new();
        loop {
            let here = self.tokens.position();
            let Some(token) = self.tokens.take() else { return Err(self.unterminated_set(start)) };
            if token.is_plain(']') && !(ranges.is_empty() && classes.is_empty()) {
                break;
            }
            let low = self.parse_member(token, here, state)?;
            if !self.tokens.take_if('-') {
                low.add_to(&mut ranges, &mut classes);
                continue;
            }
            let there = self.tokens.position();
            let Some(token) = self.tokens.take() else { return Err(self.unterminated_set(start)) };
            if token.is_plain(']') {
                low.add_to(&mut ranges, &mut classes);
                ranges.push(('-'.into(), '-'.into()));
                break;
            }
            match (low, self.parse_member(token, there, state)?) {
                (SetMember::Code(low), SetMember::Code(high)) if low <= high => ranges.push((low, high)),
                (SetMember::Code(_) | SetMember::Class(_), _) => {
                    let message = format!("bad character range {}", self.tokens.text_since(here));
                    return Err(self.tokens.error(here, message));
                }
            }
        }
        // Only members that are written as characters have a case; `\W` stays as it is.
        if let Some(kind) = state.fold() {
            ranges = fold_ranges(&ranges, kind);
        }
        let ranges = ranges.into_iter().map(|(low, high)| SetItem::Range(low, high));
        Ok(CharacterSet { negated, items: ranges.chain(classes).collect() })
    }

    fn unterminated_set(&self, start: usize) -> InvalidPattern {
        self.tokens.error(start, "unterminated character set")
    }

    fn parse_member(
        &mut self,
        token: PatternToken,
        start: usize,
        state: &FlagState,
    ) -> Result<SetMember, InvalidPattern> {
        let c = match token {
            PatternToken::Plain(c) => return Ok(SetMember::Code(c.into())),
            PatternToken::Escaped(c) => c,
        };
        if let Some(item) = class_item(c, state.ascii) {
            return Ok(SetMember::Class(item));
        }
        match c {
            'b' => Ok(SetMember::Code(0x08)),
            '0'..='7' => {
                let more = self.tokens.take_while(2, |c| ('0'..='7').contains(c));
                Ok(SetMember::Code(self.parse_octal(&format!("{c}{more}"), start)?))
            }
            _ => Ok(SetMember::Code(self.parse_escaped_code(c, start)?)),
        }
    }
}

/// One member of a set as it is written.
enum SetMember {
    Code(u32),
    Class(SetItem),
}

impl SetMember {
    fn add_to(self, ranges: &mut Vec<(u32, u32)>, classes: &mut Vec<SetItem>) {
        match self {
            SetMember::Code(code) => ranges.push((code, code)),
            SetMember::Class(item) => classes.push(item),
        }
    }
}

fn class_item(c: char, ascii: bool) -> Option<SetItem> {
    let class = match c {
        'd' | 'D' => CharacterClass::Digit,
        's' | 'S' => CharacterClass::Space,
        'w' | 'W' => CharacterClass::Word,
        _ => return None,
    };
    Some(SetItem::Class { class, negated: c.is_ascii_uppercase(), ascii })
}

/// Makes a set of one character and of all characters that are equal to it under the flags.
pub(super) fn literal_set(code: u32, state: &FlagState) -> CharacterSet {
    let Some(kind) = state.fold() else { return CharacterSet::literal(code) };
    let items =
        fold_ranges(&[(code, code)], kind).into_iter().map(|(low, high)| SetItem::Range(low, high)).collect();
    CharacterSet { negated: false, items }
}
