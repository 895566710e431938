//! Parses what stands in parentheses.

use std::sync::LazyLock;

use super::InvalidPattern;
use super::inline_flags::{FlagScope, FlagState, read_flags};
use super::parse::{DEEPEST_NESTING, GroupState, ParenthesisContent, PatternParser};
use super::syntax::{LookSide, PatternNode};
use super::tokens::PatternToken;

impl PatternParser<'_> {
    /// Parses what follows an opening parenthesis.
    pub(super) fn parse_parenthesis(
        &mut self,
        start: usize,
        state: &mut FlagState,
        depth: usize,
        opening: bool,
    ) -> Result<ParenthesisContent, InvalidPattern> {
        if !self.tokens.take_if('?') {
            return self.parse_capture(None, start, state, depth);
        }
        let Some(token) = self.tokens.take() else {
            return Err(self.tokens.error_here("unexpected end of pattern"));
        };
        match token {
            PatternToken::Plain('P') => self.parse_python_extension(start, state, depth),
            PatternToken::Plain(':') => {
                Ok(ParenthesisContent::Piece(self.parse_group_body(start, &mut state.clone(), depth)?))
            }
            PatternToken::Plain('>') => {
                let node = self.parse_group_body(start, &mut state.clone(), depth)?;
                Ok(ParenthesisContent::Piece(PatternNode::Atomic(Box::new(node))))
            }
            PatternToken::Plain('#') => self.skip_comment(start),
            PatternToken::Plain(c @ ('=' | '!')) => {
                self.parse_look_around(false, c == '=', start, state, depth)
            }
            PatternToken::Plain('<') => match self.tokens.take() {
                Some(PatternToken::Plain(c @ ('=' | '!'))) => {
                    self.parse_look_around(true, c == '=', start, state, depth)
                }
                Some(PatternToken::Plain(c) | PatternToken::Escaped(c)) => {
                    let known = "a group is named with (?P<name>…)";
                    Err(self.tokens.error(start + 1, format!("unknown extension ?<{c} ({known})")))
                }
                None => Err(self.tokens.error_here("unexpected end of pattern")),
            },
            PatternToken::Plain('(') => self.parse_condition(start, state, depth),
            PatternToken::Plain(c) if c == '-' || FlagState::is_flag(c) => {
                match read_flags(self.tokens, c, state)? {
                    FlagScope::ForGroup(mut inner) => {
                        Ok(ParenthesisContent::Piece(self.parse_group_body(start, &mut inner, depth)?))
                    }
                    FlagScope::ForAll(_) if !opening => {
                        Err(self.tokens.error(start, "global flags not at the start of the expression"))
                    }
                    FlagScope::ForAll(global) => {
                        *state = global;
                        Ok(ParenthesisContent::NoPiece)
                    }
                }
            }
            PatternToken::Plain(c) | PatternToken::Escaped(c) => {
                Err(self.tokens.error(start + 1, format!("unknown extension ?{c}")))
            }
        }
    }

    /// Parses alternatives up to the closing parenthesis.
    fn parse_group_body(
        &mut self,
        start: usize,
        state: &mut FlagState,
        depth: usize,
    ) -> Result<PatternNode, InvalidPattern> {
        let node = self.parse_alternatives(state, depth + 1)?;
        self.expect_closing(start)?;
        Ok(node)
    }

    fn expect_closing(&mut self, start: usize) -> Result<(), InvalidPattern> {
        if self.tokens.take_if(')') {
            return Ok(());
        }
        Err(self.tokens.error(start, "missing ), unterminated subpattern"))
    }

    fn parse_capture(
        &mut self,
        name: Option<String>,
        start: usize,
        state: &FlagState,
        depth: usize,
    ) -> Result<ParenthesisContent, InvalidPattern> {
        let group = self.groups.len();
        if let Some(name) = name {
            if let Some(earlier) = self.names.get(&name) {
                let message =
                    format!("redefinition of group name '{name}' as group {group}; was group {earlier}");
                return Err(self.tokens.error(start, message));
            }
            self.names.insert(name, group);
        }
        self.groups.push(GroupState::Open);
        let node = self.parse_group_body(start, &mut state.clone(), depth)?;
        self.groups[group] = GroupState::Closed(node.width());
        Ok(ParenthesisContent::Piece(PatternNode::Capture(group, Box::new(node))))
    }

    fn parse_python_extension(
        &mut self,
        start: usize,
        state: &FlagState,
        depth: usize,
    ) -> Result<ParenthesisContent, InvalidPattern> {
        match self.tokens.take() {
            Some(PatternToken::Plain('<')) => {
                let name = self.parse_group_name('>')?;
                self.parse_capture(Some(name), start, state, depth)
            }
            Some(PatternToken::Plain('=')) => {
                let at = self.tokens.position();
                let name = self.parse_group_name(')')?;
                let Some(&group) = self.names.get(&name) else {
                    return Err(self.tokens.error(at, format!("unknown group name '{name}'")));
                };
                Ok(ParenthesisContent::Piece(self.back_reference(group, at, state)?))
            }
            Some(PatternToken::Plain(c) | PatternToken::Escaped(c)) => {
                Err(self.tokens.error(start + 1, format!("unknown extension ?P{c}")))
            }
            None => Err(self.tokens.error_here("unexpected end of pattern")),
        }
    }

    fn parse_group_name(&mut self, end: char) -> Result<String, InvalidPattern> {
        let at = self.tokens.position();
        let name = self.tokens.take_until(end, "group name")?;
        if !is_identifier(&name) {
            return Err(self.tokens.error(at, format!("bad character in group name '{name}'")));
        }
        Ok(name)
    }

    fn skip_comment(&mut self, start: usize) -> Result<ParenthesisContent, InvalidPattern> {
        loop {
            match self.tokens.take() {
                None => return Err(self.tokens.error(start, "missing ), unterminated comment")),
                Some(token) if token.is_plain(')') => return Ok(ParenthesisContent::NoPiece),
                Some(_) => {}
            }
        }
    }

    fn parse_look_around(
        &mut self,
        behind: bool,
        wanted: bool,
        start: usize,
        state: &FlagState,
        depth: usize,
    ) -> Result<ParenthesisContent, InvalidPattern> {
        let outer = self.groups_before_look_behind;
        if behind && outer.is_none() {
            self.groups_before_look_behind = Some(self.groups.len());
        }
        let node = Box::new(self.parse_group_body(start, &mut state.clone(), depth)?);
        self.groups_before_look_behind = outer;
        let side = if behind {
            let width = node.width();
            if width.min != width.max {
                return Err(self.tokens.error(start, "look-behind requires fixed-width pattern"));
            }
            match u32::try_from(width.min) {
                Ok(width) => LookSide::Behind(width),
                Err(_) => return Err(self.tokens.error(start, "looks too much behind")),
            }
        } else {
            LookSide::Ahead
        };
        Ok(ParenthesisContent::Piece(PatternNode::LookAround { side, wanted, node }))
    }

    fn parse_condition(
        &mut self,
        start: usize,
        state: &FlagState,
        depth: usize,
    ) -> Result<ParenthesisContent, InvalidPattern> {
        let at = self.tokens.position();
        let name = self.tokens.take_until(')', "group name")?;
        let group = if is_identifier(&name) {
            match self.names.get(&name) {
                Some(&group) => group,
                None => return Err(self.tokens.error(at, format!("unknown group name '{name}'"))),
            }
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            match name.parse::<usize>() {
                Ok(0) => return Err(self.tokens.error(at, "bad group number")),
                Ok(group) => group,
                Err(_) => return Err(self.tokens.error(at, format!("invalid group reference {name}"))),
            }
        } else {
            return Err(self.tokens.error(at, format!("bad character in group name '{name}'")));
        };
        self.conditions.push((group, at));
        self.refuse_group_of_same_look_behind(group, at)?;
        if depth >= DEEPEST_NESTING {
            return Err(self.tokens.error_here(format!("nests deeper than {DEEPEST_NESTING} groups")));
        }
        let then = Box::new(self.parse_sequence(&mut state.clone(), depth + 1, false)?);
        let otherwise = if self.tokens.take_if('|') {
            let otherwise = self.parse_sequence(&mut state.clone(), depth + 1, false)?;
            if self.tokens.peek_is('|') {
                return Err(self.tokens.error_here("conditional backref with more than two branches"));
            }
            otherwise
        } else {
            PatternNode::Sequence(Vec::new())
        };
        self.expect_closing(start)?;
        Ok(ParenthesisContent::Piece(PatternNode::IfMatched { group, then, otherwise: Box::new(otherwise) }))
    }

    pub(super) fn back_reference(
        &mut self,
        group: usize,
        at: usize,
        state: &FlagState,
    ) -> Result<PatternNode, InvalidPattern> {
        let width = match self.groups.get(group) {
            Some(GroupState::Closed(width)) => *width,
            Some(GroupState::Open) => return Err(self.tokens.error(at, "cannot refer to an open group")),
            None => return Err(self.tokens.error(at, format!("invalid group reference {group}"))),
        };
        self.refuse_group_of_same_look_behind(group, at)?;
        Ok(PatternNode::BackReference { group, width, fold: state.fold() })
    }

    fn refuse_group_of_same_look_behind(&self, group: usize, at: usize) -> Result<(), InvalidPattern> {
        let Some(before) = self.groups_before_look_behind else { return Ok(()) };
        if !matches!(self.groups.get(group), Some(GroupState::Closed(_))) {
            return Err(self.tokens.error(at, "cannot refer to an open group"));
        }
        if group >= before {
            let message = "cannot refer to group defined in the same lookbehind subpattern";
            return Err(self.tokens.error(at, message));
        }
        Ok(())
    }
}

/// Says whether a name is valid for a group: Python's `str.isidentifier`.
fn is_identifier(name: &str) -> bool {
    static IDENTIFIER: LazyLock<Option<regex::Regex>> =
        LazyLock::new(|| regex::Regex::new(r"\A[\p{XID_Start}_]\p{XID_Continue}*\z").ok());
    IDENTIFIER.as_ref().is_some_and(|identifier| identifier.is_match(name))
}
