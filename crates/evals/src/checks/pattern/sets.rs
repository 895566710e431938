//! Sets of characters and their members.

use std::sync::LazyLock;

use super::syntax::{CharacterClass, CharacterSet, SetItem};

pub fn set_contains(set: &CharacterSet, c: char) -> bool {
    let code = u32::from(c);
    let found = set.items.iter().any(|item| match *item {
        SetItem::Range(low, high) => (low..=high).contains(&code),
        SetItem::Class { class, negated, ascii } => class_contains(class, ascii, c) != negated,
    });
    found != set.negated
}

fn class_contains(class: CharacterClass, ascii: bool, c: char) -> bool {
    if ascii && !c.is_ascii() {
        return false;
    }
    match class {
        CharacterClass::Digit if c.is_ascii() => c.is_ascii_digit(),
        CharacterClass::Digit => DIGIT_CHARACTERS.contains(c),
        // Python's whitespace is that of Unicode and, without the ASCII flag, four separators.
        CharacterClass::Space => c.is_whitespace() || !ascii && ('\x1c'..='\x1f').contains(&c),
        CharacterClass::Word => is_word(c, ascii),
    }
}

/// Says whether a character is part of a word, as Python's `\w` does.
pub fn is_word(c: char, ascii: bool) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { !ascii && WORD_CHARACTERS.contains(c) }
}

/// Letters and numbers. The standard library's `is_alphanumeric` also accepts marks.
static WORD_CHARACTERS: LazyLock<CharacterRanges> =
    LazyLock::new(|| CharacterRanges::from_class(r"[\p{L}\p{N}]"));
static DIGIT_CHARACTERS: LazyLock<CharacterRanges> = LazyLock::new(|| CharacterRanges::from_class(r"\p{Nd}"));

/// Sorted ranges of characters.
struct CharacterRanges(Vec<(char, char)>);

impl CharacterRanges {
    fn from_class(class: &str) -> Self {
        use regex_syntax::hir::{Class, HirKind};
        let ranges = match regex_syntax::parse(class).map(regex_syntax::hir::Hir::into_kind) {
            Ok(HirKind::Class(Class::Unicode(class))) => {
                class.ranges().iter().map(|range| (range.start(), range.end())).collect()
            }
            Ok(_) | Err(_) => Vec::new(),
        };
        Self(ranges)
    }

    fn contains(&self, c: char) -> bool {
        let after = self.0.partition_point(|&(low, _)| low <= c);
        after > 0 && self.0[after - 1].1 >= c
    }
}

/// A set with a lookup table for ASCII.
#[derive(Debug, Clone)]
pub struct QuickSet {
    ascii: u128,
    set: CharacterSet,
}

impl QuickSet {
    pub fn new(set: &CharacterSet) -> Self {
        let ascii =
            (0u8..128).filter(|&byte| set_contains(set, byte.into())).fold(0, |bits, byte| bits | 1 << byte);
        Self { ascii, set: set.clone() }
    }

    pub fn contains(&self, c: char) -> bool {
        if c.is_ascii() { self.ascii >> u32::from(c) & 1 == 1 } else { set_contains(&self.set, c) }
    }
}
