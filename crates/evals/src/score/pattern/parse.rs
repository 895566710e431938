//! Reads Python's `re` syntax, refusing what `re.compile` refuses.
//!
//! The reference is CPython 3.11. Later versions drop what 3.11 already warns about (`(?t)`, group
//! numbers with signs or blanks); that is refused here too. One bug is not followed: its search
//! tests a first character by the flags of the whole pattern, so that `(?a:\W)` finds no `é`
//! although it matches one.

use std::collections::HashMap;

use super::characters::literal;
use super::inline_flags::State;
use super::syntax::{At, Greed, Node, Set, Width};
use super::tokens::{Token, Tokens};
use super::{Flags, InvalidPattern};

/// How deep groups may nest. Both engines walk the tree by recursion.
pub(super) const DEEPEST: usize = 200;

/// Longer patterns were not written by a person, and compiling them takes its time.
const LONGEST: usize = 32 * 1024;

/// Repetitions from here on are refused, as in Python.
const MAX_REPEAT: u32 = u32::MAX;

/// A pattern as a tree, and how many groups it captures.
pub struct Parsed {
    pub node: Node,
    pub groups: usize,
}

pub fn parse(source: &str, flags: Flags) -> Result<Parsed, InvalidPattern> {
    let mut tokens = Tokens::new(source)?;
    if source.len() > LONGEST {
        return Err(tokens.error(0, format!("longer than {LONGEST} bytes")));
    }
    let mut parser = Parser {
        tokens: &mut tokens,
        groups: vec![Group::Closed(Width::NONE)],
        names: HashMap::new(),
        conditions: Vec::new(),
        behind: None,
    };
    let node = parser.alternatives(&mut State::new(flags), 0)?;
    if parser.tokens.peek().is_some() {
        return Err(parser.tokens.error_here("unbalanced parenthesis"));
    }
    let groups = parser.groups.len();
    if let Some(&(group, at)) = parser.conditions.iter().find(|(group, _)| *group >= groups) {
        return Err(parser.tokens.error(at, format!("invalid group reference {group}")));
    }
    Ok(Parsed { node, groups })
}

pub(super) struct Parser<'t> {
    pub(super) tokens: &'t mut Tokens,
    /// By number; the whole match is 0.
    pub(super) groups: Vec<Group>,
    pub(super) names: HashMap<String, usize>,
    /// Groups that conditions ask for by number, which may come later than the condition.
    pub(super) conditions: Vec<(usize, usize)>,
    /// How many groups there were where the outermost look-behind began.
    pub(super) behind: Option<usize>,
}

#[derive(Clone, Copy)]
pub(super) enum Group {
    Open,
    Closed(Width),
}

/// What a quantifier would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Anchor,
    Repeat,
    Piece,
}

/// What stands between two parentheses turned out to be.
pub(super) enum Bracket {
    Piece(Node),
    /// A comment, or flags for the whole pattern: leaves no trace in the sequence.
    NoPiece,
}

impl Parser<'_> {
    pub(super) fn alternatives(&mut self, state: &mut State, depth: usize) -> Result<Node, InvalidPattern> {
        if depth > DEEPEST {
            return Err(self.tokens.error_here(format!("nests deeper than {DEEPEST} groups")));
        }
        let mut found = vec![self.sequence(state, depth, depth == 0)?];
        while self.tokens.take_if('|') {
            found.push(self.sequence(state, depth, false)?);
        }
        Ok(if found.len() == 1 { found.remove(0) } else { Node::Either(found) })
    }

    /// `opening`: this is where flags for the whole pattern may stand.
    pub(super) fn sequence(
        &mut self,
        state: &mut State,
        depth: usize,
        opening: bool,
    ) -> Result<Node, InvalidPattern> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut last = Last::Nothing;
        while let Some(token) = self.tokens.peek() {
            let here = self.tokens.at();
            if token.is('|') || token.is(')') {
                break;
            }
            self.tokens.take();
            if state.verbose && self.skipped_as_layout(token) {
                continue;
            }
            let node = match token {
                Token::Escaped(c) => self.escape(c, here, state)?,
                Token::Plain('.') if state.dot_all => Node::One(Set::everything()),
                Token::Plain('.') => Node::One(Set::all_but_newline()),
                Token::Plain('^') if state.multiline => Node::At(At::LineStart),
                Token::Plain('^') => Node::At(At::Start),
                Token::Plain('$') if state.multiline => Node::At(At::LineEnd),
                Token::Plain('$') => Node::At(At::EndOrLastNewline),
                Token::Plain('[') => Node::One(self.set(here, state)?),
                Token::Plain('(') => match self.bracket(here, state, depth, opening && nodes.is_empty())? {
                    Bracket::Piece(node) => node,
                    Bracket::NoPiece => continue,
                },
                Token::Plain(c @ ('*' | '+' | '?' | '{')) => match self.quantifier(c, here)? {
                    Some(bounds) => {
                        self.repeat(&mut nodes, last, bounds, here)?;
                        last = Last::Repeat;
                        continue;
                    }
                    None => Node::One(literal(c.into(), state)),
                },
                Token::Plain(c) => Node::One(literal(c.into(), state)),
            };
            last = if matches!(node, Node::At(_)) && !token.is('(') { Last::Anchor } else { Last::Piece };
            nodes.push(node);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
    }

    /// In verbose patterns, blanks and comments mean nothing.
    fn skipped_as_layout(&mut self, token: Token) -> bool {
        match token {
            Token::Plain(' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') => true,
            Token::Plain('#') => {
                while self.tokens.take().is_some_and(|token| !token.is('\n')) {}
                true
            }
            Token::Plain(_) | Token::Escaped(_) => false,
        }
    }

    /// The bounds of a quantifier; `None` for a brace that is only a brace.
    fn quantifier(&mut self, c: char, here: usize) -> Result<Option<(u32, Option<u32>)>, InvalidPattern> {
        match c {
            '*' => return Ok(Some((0, None))),
            '+' => return Ok(Some((1, None))),
            '?' => return Ok(Some((0, Some(1)))),
            _ => {}
        }
        let after = self.tokens.at();
        if self.tokens.peek_is('}') {
            return Ok(None);
        }
        let low = self.tokens.take_while(usize::MAX, char::is_ascii_digit);
        let high = if self.tokens.take_if(',') {
            self.tokens.take_while(usize::MAX, char::is_ascii_digit)
        } else {
            low.clone()
        };
        if !self.tokens.take_if('}') {
            self.tokens.back_to(after);
            return Ok(None);
        }
        let number = |digits: &str| match digits.parse::<u32>() {
            _ if digits.is_empty() => Ok(None),
            Ok(number) if number < MAX_REPEAT => Ok(Some(number)),
            Ok(_) | Err(_) => Err(self.tokens.error(here, "the repetition number is too large")),
        };
        let (min, max) = (number(&low)?.unwrap_or(0), number(&high)?);
        if max.is_some_and(|max| max < min) {
            return Err(self.tokens.error(here, "min repeat greater than max repeat"));
        }
        Ok(Some((min, max)))
    }

    fn repeat(
        &mut self,
        nodes: &mut Vec<Node>,
        last: Last,
        (min, max): (u32, Option<u32>),
        here: usize,
    ) -> Result<(), InvalidPattern> {
        let node = match (last, nodes.pop()) {
            (Last::Repeat, _) => return Err(self.tokens.error(here, "multiple repeat")),
            (Last::Piece, Some(node)) => Box::new(node),
            (Last::Piece | Last::Nothing | Last::Anchor, _) => {
                return Err(self.tokens.error(here, "nothing to repeat"));
            }
        };
        let greed = if self.tokens.take_if('?') {
            Greed::Lazy
        } else if self.tokens.take_if('+') {
            Greed::Possessive
        } else {
            Greed::Greedy
        };
        nodes.push(Node::Repeat { node, min, max, greed });
        Ok(())
    }
}
