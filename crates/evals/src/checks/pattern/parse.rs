//! Parses Python's `re` syntax and refuses what `re.compile` refuses.
//!
//! The reference is CPython 3.11. Later versions dropped what 3.11 already warns about (`(?t)`, group numbers with
//! signs or blanks); this parser refuses that too. One bug of CPython is not copied: its search tests the first
//! character by the flags of the whole pattern, so that `(?a:\W)` does not find `é` although it matches `é`.

use std::collections::HashMap;

use super::characters::literal_set;
use super::inline_flags::FlagState;
use super::syntax::{CharacterSet, Greediness, MatchWidth, PatternAnchor, PatternNode};
use super::tokens::{PatternToken, PatternTokens};
use super::{InvalidPattern, PatternFlags};

/// The deepest nesting of groups. Both engines walk the tree by recursion.
pub(super) const DEEPEST_NESTING: usize = 200;

/// The longest pattern, in bytes. People do not write longer ones, and compiling them takes long.
const LONGEST_PATTERN: usize = 32 * 1024;

/// The bound of repetition that is refused, as in Python.
const MAX_REPEAT: u32 = u32::MAX;

/// A pattern as a tree, and the number of groups that it captures.
pub struct ParsedPattern {
    pub node: PatternNode,
    pub groups: usize,
}

pub fn parse_pattern(source: &str, flags: PatternFlags) -> Result<ParsedPattern, InvalidPattern> {
    let mut tokens = PatternTokens::new(source)?;
    if source.len() > LONGEST_PATTERN {
        return Err(tokens.error(0, format!("longer than {LONGEST_PATTERN} bytes")));
    }
    let mut parser = PatternParser {
        tokens: &mut tokens,
        groups: vec![GroupState::Closed(MatchWidth::NONE)],
        names: HashMap::new(),
        conditions: Vec::new(),
        groups_before_look_behind: None,
    };
    let node = parser.parse_alternatives(&mut FlagState::new(flags), 0)?;
    if parser.tokens.peek().is_some() {
        return Err(parser.tokens.error_here("unbalanced parenthesis"));
    }
    let groups = parser.groups.len();
    if let Some(&(group, at)) = parser.conditions.iter().find(|(group, _)| *group >= groups) {
        return Err(parser.tokens.error(at, format!("invalid group reference {group}")));
    }
    Ok(ParsedPattern { node, groups })
}

/// A parser for one pattern, with the groups read so far.
pub(super) struct PatternParser<'t> {
    pub(super) tokens: &'t mut PatternTokens,
    /// The groups by number; 0 is the whole match.
    pub(super) groups: Vec<GroupState>,
    pub(super) names: HashMap<String, usize>,
    /// The groups that conditions name by number. A group may come later than the condition.
    pub(super) conditions: Vec<(usize, usize)>,
    /// The number of groups where the outermost look-behind began.
    pub(super) groups_before_look_behind: Option<usize>,
}

/// The state of a group during parsing: still open, or closed with its width.
#[derive(Clone, Copy)]
pub(super) enum GroupState {
    Open,
    Closed(MatchWidth),
}

/// The piece that a quantifier would repeat.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuantifierTarget {
    Nothing,
    Anchor,
    Repeat,
    Piece,
}

/// The content of a pair of parentheses.
pub(super) enum ParenthesisContent {
    Piece(PatternNode),
    /// A comment, or flags for the whole pattern: adds no piece to the sequence.
    NoPiece,
}

impl PatternParser<'_> {
    pub(super) fn parse_alternatives(
        &mut self,
        state: &mut FlagState,
        depth: usize,
    ) -> Result<PatternNode, InvalidPattern> {
        if depth > DEEPEST_NESTING {
            return Err(self.tokens.error_here(format!("nests deeper than {DEEPEST_NESTING} groups")));
        }
        let mut found = vec![self.parse_sequence(state, depth, depth == 0)?];
        while self.tokens.take_if('|') {
            found.push(self.parse_sequence(state, depth, false)?);
        }
        Ok(if found.len() == 1 { found.remove(0) } else { PatternNode::Alternatives(found) })
    }

    /// Parses a sequence. `opening` means that flags for the whole pattern are allowed here.
    pub(super) fn parse_sequence(
        &mut self,
        state: &mut FlagState,
        depth: usize,
        opening: bool,
    ) -> Result<PatternNode, InvalidPattern> {
        let mut nodes: Vec<PatternNode> = Vec::new();
        let mut last = QuantifierTarget::Nothing;
        while let Some(token) = self.tokens.peek() {
            let here = self.tokens.position();
            if token.is_plain('|') || token.is_plain(')') {
                break;
            }
            self.tokens.take();
            if state.verbose && self.skip_layout(token) {
                continue;
            }
            let node = match token {
                PatternToken::Escaped(c) => self.parse_escape(c, here, state)?,
                PatternToken::Plain('.') if state.dot_all => {
                    PatternNode::OneCharacter(CharacterSet::everything())
                }
                PatternToken::Plain('.') => PatternNode::OneCharacter(CharacterSet::all_but_newline()),
                PatternToken::Plain('^') if state.multiline => PatternNode::Anchor(PatternAnchor::LineStart),
                PatternToken::Plain('^') => PatternNode::Anchor(PatternAnchor::Start),
                PatternToken::Plain('$') if state.multiline => PatternNode::Anchor(PatternAnchor::LineEnd),
                PatternToken::Plain('$') => PatternNode::Anchor(PatternAnchor::EndOrLastNewline),
                PatternToken::Plain('[') => PatternNode::OneCharacter(self.parse_set(here, state)?),
                PatternToken::Plain('(') => {
                    match self.parse_parenthesis(here, state, depth, opening && nodes.is_empty())? {
                        ParenthesisContent::Piece(node) => node,
                        ParenthesisContent::NoPiece => continue,
                    }
                }
                PatternToken::Plain(c @ ('*' | '+' | '?' | '{')) => match self.parse_quantifier(c, here)? {
                    Some(bounds) => {
                        self.apply_quantifier(&mut nodes, last, bounds, here)?;
                        last = QuantifierTarget::Repeat;
                        continue;
                    }
                    None => PatternNode::OneCharacter(literal_set(c.into(), state)),
                },
                PatternToken::Plain(c) => PatternNode::OneCharacter(literal_set(c.into(), state)),
            };
            last = if matches!(node, PatternNode::Anchor(_)) && !token.is_plain('(') {
                QuantifierTarget::Anchor
            } else {
                QuantifierTarget::Piece
            };
            nodes.push(node);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { PatternNode::Sequence(nodes) })
    }

    /// Skips blanks and comments, which mean nothing in verbose patterns.
    fn skip_layout(&mut self, token: PatternToken) -> bool {
        match token {
            PatternToken::Plain(' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') => true,
            PatternToken::Plain('#') => {
                while self.tokens.take().is_some_and(|token| !token.is_plain('\n')) {}
                true
            }
            PatternToken::Plain(_) | PatternToken::Escaped(_) => false,
        }
    }

    /// Gives the bounds of a quantifier, or `None` for a brace that is only a character.
    fn parse_quantifier(
        &mut self,
        c: char,
        here: usize,
    ) -> Result<Option<(u32, Option<u32>)>, InvalidPattern> {
        match c {
            '*' => return Ok(Some((0, None))),
            '+' => return Ok(Some((1, None))),
            '?' => return Ok(Some((0, Some(1)))),
            _ => {}
        }
        let after = self.tokens.position();
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
            self.tokens.move_back_to(after);
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

    fn apply_quantifier(
        &mut self,
        nodes: &mut Vec<PatternNode>,
        last: QuantifierTarget,
        (min, max): (u32, Option<u32>),
        here: usize,
    ) -> Result<(), InvalidPattern> {
        let node = match (last, nodes.pop()) {
            (QuantifierTarget::Repeat, _) => return Err(self.tokens.error(here, "multiple repeat")),
            (QuantifierTarget::Piece, Some(node)) => Box::new(node),
            (QuantifierTarget::Piece | QuantifierTarget::Nothing | QuantifierTarget::Anchor, _) => {
                return Err(self.tokens.error(here, "nothing to repeat"));
            }
        };
        let greed = if self.tokens.take_if('?') {
            Greediness::Lazy
        } else if self.tokens.take_if('+') {
            Greediness::Possessive
        } else {
            Greediness::Greedy
        };
        nodes.push(PatternNode::Repeat { node, min, max, greed });
        Ok(())
    }
}
