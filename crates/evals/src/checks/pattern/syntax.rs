//! The tree of a pattern. Flags are already resolved: case folding into sets, `.` and the anchors into what they
//! match. Both engines read only this tree.

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternNode {
    /// One character from a set; a literal is a set of one.
    OneCharacter(CharacterSet),
    Anchor(PatternAnchor),
    Sequence(Vec<PatternNode>),
    Alternatives(Vec<PatternNode>),
    Capture(usize, Box<PatternNode>),
    Repeat {
        node: Box<PatternNode>,
        min: u32,
        /// The largest number of repetitions; `None` means no limit.
        max: Option<u32>,
        greed: Greediness,
    },
    /// An atomic group: once it has matched, it is never tried again.
    Atomic(Box<PatternNode>),
    LookAround {
        side: LookSide,
        wanted: bool,
        node: Box<PatternNode>,
    },
    /// The text that a group matched, once more.
    BackReference {
        group: usize,
        /// The width of that group, which look-behind needs.
        width: MatchWidth,
        fold: Option<CaseFolding>,
    },
    IfMatched {
        group: usize,
        then: Box<PatternNode>,
        otherwise: Box<PatternNode>,
    },
}

/// A condition on a position that takes no characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternAnchor {
    /// `\A`, and `^` without MULTILINE.
    Start,
    /// `\Z`.
    End,
    /// `$` without MULTILINE: the end of the text, or before a newline that ends the text.
    EndOrLastNewline,
    LineStart,
    LineEnd,
    /// `\b`, with the words of Unicode or of ASCII.
    WordEdge {
        ascii: bool,
    },
    NotWordEdge {
        ascii: bool,
    },
}

/// How a repetition chooses its length: the longest first, the shortest first, or the longest only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greediness {
    Greedy,
    Lazy,
    Possessive,
}

/// The direction of a look-around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookSide {
    Ahead,
    /// Look-behind by so many characters.
    Behind(u32),
}

/// The letters that are equal when case is ignored: those of ASCII or of Unicode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseFolding {
    Unicode,
    Ascii,
}

/// A set of code points. A pattern can name surrogates, although no text has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CharacterSet {
    pub negated: bool,
    pub items: Vec<SetItem>,
}

/// A member of a character set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetItem {
    /// A range that includes both ends.
    Range(u32, u32),
    Class {
        class: CharacterClass,
        negated: bool,
        ascii: bool,
    },
}

/// A class of characters: `\d`, `\s` or `\w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharacterClass {
    Digit,
    Space,
    Word,
}

impl CharacterSet {
    pub fn literal(code: u32) -> Self {
        Self { negated: false, items: vec![SetItem::Range(code, code)] }
    }

    pub fn everything() -> Self {
        Self { negated: true, items: Vec::new() }
    }

    pub fn all_but_newline() -> Self {
        Self { negated: true, items: vec![SetItem::Range('\n'.into(), '\n'.into())] }
    }
}

/// The smallest and largest number of characters of a match; `u64::MAX` stands for more than can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchWidth {
    pub min: u64,
    pub max: u64,
}

impl MatchWidth {
    pub const NONE: MatchWidth = MatchWidth { min: 0, max: 0 };

    fn followed_by(self, next: MatchWidth) -> MatchWidth {
        MatchWidth { min: self.min.saturating_add(next.min), max: self.max.saturating_add(next.max) }
    }

    fn either(self, other: MatchWidth) -> MatchWidth {
        MatchWidth { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl PatternNode {
    /// Gives the smallest and largest number of characters that this piece can match.
    pub fn width(&self) -> MatchWidth {
        match self {
            PatternNode::OneCharacter(_) => MatchWidth { min: 1, max: 1 },
            PatternNode::Anchor(_) | PatternNode::LookAround { .. } => MatchWidth::NONE,
            PatternNode::Sequence(nodes) => {
                nodes.iter().map(PatternNode::width).fold(MatchWidth::NONE, MatchWidth::followed_by)
            }
            PatternNode::Alternatives(nodes) => {
                nodes.iter().map(PatternNode::width).reduce(MatchWidth::either).unwrap_or(MatchWidth::NONE)
            }
            PatternNode::Capture(_, node) | PatternNode::Atomic(node) => node.width(),
            PatternNode::Repeat { node, min, max, .. } => {
                let once = node.width();
                MatchWidth {
                    min: once.min.saturating_mul(u64::from(*min)),
                    max: match max {
                        Some(max) => once.max.saturating_mul(u64::from(*max)),
                        None if once.max == 0 => 0,
                        None => u64::MAX,
                    },
                }
            }
            PatternNode::BackReference { width, .. } => *width,
            PatternNode::IfMatched { then, otherwise, .. } => then.width().either(otherwise.width()),
        }
    }

    /// Calls `look` on this piece and on every piece inside it.
    pub fn visit(&self, look: &mut impl FnMut(&PatternNode)) {
        look(self);
        match self {
            PatternNode::OneCharacter(_) | PatternNode::Anchor(_) | PatternNode::BackReference { .. } => {}
            PatternNode::Sequence(nodes) | PatternNode::Alternatives(nodes) => {
                nodes.iter().for_each(|node| node.visit(look))
            }
            PatternNode::Capture(_, node)
            | PatternNode::Repeat { node, .. }
            | PatternNode::Atomic(node)
            | PatternNode::LookAround { node, .. } => node.visit(look),
            PatternNode::IfMatched { then, otherwise, .. } => {
                then.visit(look);
                otherwise.visit(look);
            }
        }
    }
}
