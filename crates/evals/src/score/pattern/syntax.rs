//! What a pattern says, with its flags already worked in: case folded into sets, `.` and the
//! anchors resolved. Both engines read this and nothing else.

/// A piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// One character out of a set; a literal is a set of one.
    One(Set),
    At(At),
    All(Vec<Node>),
    Either(Vec<Node>),
    Capture(usize, Box<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        /// `None`: without end.
        max: Option<u32>,
        greed: Greed,
    },
    /// Once matched, never reconsidered.
    Atomic(Box<Node>),
    Look {
        side: Side,
        wanted: bool,
        node: Box<Node>,
    },
    /// What a group matched, again.
    Same {
        group: usize,
        /// The width of that group, kept because look-behind must know it.
        width: Width,
        fold: Option<Fold>,
    },
    IfMatched {
        group: usize,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// `\A`, and `^` without MULTILINE.
    Start,
    /// `\Z`.
    End,
    /// `$` without MULTILINE: the end, or before a newline that ends the text.
    EndOrLastNewline,
    LineStart,
    LineEnd,
    /// `\b`, by the words of Unicode or of ASCII.
    WordEdge {
        ascii: bool,
    },
    NotWordEdge {
        ascii: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Ahead,
    /// So many characters back.
    Behind(u32),
}

/// Which letters are the same but for their case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Unicode,
    Ascii,
}

/// A set of code points. Surrogates can be named in a pattern, though no text has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Set {
    pub negated: bool,
    pub items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Both ends included.
    Range(u32, u32),
    Class {
        class: Class,
        negated: bool,
        ascii: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Digit,
    Space,
    Word,
}

impl Set {
    pub fn literal(code: u32) -> Self {
        Self { negated: false, items: vec![Item::Range(code, code)] }
    }

    pub fn everything() -> Self {
        Self { negated: true, items: Vec::new() }
    }

    pub fn all_but_newline() -> Self {
        Self { negated: true, items: vec![Item::Range('\n'.into(), '\n'.into())] }
    }
}

/// How many characters a match can have; `u64::MAX` stands for more than anyone can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    pub min: u64,
    pub max: u64,
}

impl Width {
    pub const NONE: Width = Width { min: 0, max: 0 };

    fn then(self, next: Width) -> Width {
        Width { min: self.min.saturating_add(next.min), max: self.max.saturating_add(next.max) }
    }

    fn or(self, other: Width) -> Width {
        Width { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

impl Node {
    pub fn width(&self) -> Width {
        match self {
            Node::One(_) => Width { min: 1, max: 1 },
            Node::At(_) | Node::Look { .. } => Width::NONE,
            Node::All(nodes) => nodes.iter().map(Node::width).fold(Width::NONE, Width::then),
            Node::Either(nodes) => nodes.iter().map(Node::width).reduce(Width::or).unwrap_or(Width::NONE),
            Node::Capture(_, node) | Node::Atomic(node) => node.width(),
            Node::Repeat { node, min, max, .. } => {
                let once = node.width();
                Width {
                    min: once.min.saturating_mul(u64::from(*min)),
                    max: match max {
                        Some(max) => once.max.saturating_mul(u64::from(*max)),
                        None if once.max == 0 => 0,
                        None => u64::MAX,
                    },
                }
            }
            Node::Same { width, .. } => *width,
            Node::IfMatched { then, otherwise, .. } => then.width().or(otherwise.width()),
        }
    }

    /// Calls `look` on this piece and every piece inside.
    pub fn visit(&self, look: &mut impl FnMut(&Node)) {
        look(self);
        match self {
            Node::One(_) | Node::At(_) | Node::Same { .. } => {}
            Node::All(nodes) | Node::Either(nodes) => nodes.iter().for_each(|node| node.visit(look)),
            Node::Capture(_, node)
            | Node::Repeat { node, .. }
            | Node::Atomic(node)
            | Node::Look { node, .. } => node.visit(look),
            Node::IfMatched { then, otherwise, .. } => {
                then.visit(look);
                otherwise.visit(look);
            }
        }
    }
}
