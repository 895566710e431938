//! What stands in parentheses.

use std::sync::LazyLock;

use super::InvalidPattern;
use super::inline_flags::{Given, State, read_flags};
use super::parse::{Bracket, DEEPEST, Group, Parser};
use super::syntax::{Node, Side};
use super::tokens::Token;

impl Parser<'_> {
    /// What follows an opening parenthesis, which is already taken.
    pub(super) fn bracket(
        &mut self,
        start: usize,
        state: &mut State,
        depth: usize,
        opening: bool,
    ) -> Result<Bracket, InvalidPattern> {
        if !self.tokens.take_if('?') {
            return self.capture(None, start, state, depth);
        }
        let Some(token) = self.tokens.take() else {
            return Err(self.tokens.error_here("unexpected end of pattern"));
        };
        match token {
            Token::Plain('P') => self.python_extension(start, state, depth),
            Token::Plain(':') => Ok(Bracket::Piece(self.inside(start, &mut state.clone(), depth)?)),
            Token::Plain('>') => {
                let node = self.inside(start, &mut state.clone(), depth)?;
                Ok(Bracket::Piece(Node::Atomic(Box::new(node))))
            }
            Token::Plain('#') => self.comment(start),
            Token::Plain(c @ ('=' | '!')) => self.look(false, c == '=', start, state, depth),
            Token::Plain('<') => match self.tokens.take() {
                Some(Token::Plain(c @ ('=' | '!'))) => self.look(true, c == '=', start, state, depth),
                Some(Token::Plain(c) | Token::Escaped(c)) => {
                    let known = "a group is named with (?P<name>…)";
                    Err(self.tokens.error(start + 1, format!("unknown extension ?<{c} ({known})")))
                }
                None => Err(self.tokens.error_here("unexpected end of pattern")),
            },
            Token::Plain('(') => self.condition(start, state, depth),
            Token::Plain(c) if c == '-' || State::is_flag(c) => match read_flags(self.tokens, c, state)? {
                Given::ForGroup(mut inner) => Ok(Bracket::Piece(self.inside(start, &mut inner, depth)?)),
                Given::ForAll(_) if !opening => {
                    Err(self.tokens.error(start, "global flags not at the start of the expression"))
                }
                Given::ForAll(global) => {
                    *state = global;
                    Ok(Bracket::NoPiece)
                }
            },
            Token::Plain(c) | Token::Escaped(c) => {
                Err(self.tokens.error(start + 1, format!("unknown extension ?{c}")))
            }
        }
    }

    /// Alternatives up to the closing parenthesis.
    fn inside(&mut self, start: usize, state: &mut State, depth: usize) -> Result<Node, InvalidPattern> {
        let node = self.alternatives(state, depth + 1)?;
        self.close(start)?;
        Ok(node)
    }

    fn close(&mut self, start: usize) -> Result<(), InvalidPattern> {
        if self.tokens.take_if(')') {
            return Ok(());
        }
        Err(self.tokens.error(start, "missing ), unterminated subpattern"))
    }

    fn capture(
        &mut self,
        name: Option<String>,
        start: usize,
        state: &State,
        depth: usize,
    ) -> Result<Bracket, InvalidPattern> {
        let group = self.groups.len();
        if let Some(name) = name {
            if let Some(earlier) = self.names.get(&name) {
                let message =
                    format!("redefinition of group name '{name}' as group {group}; was group {earlier}");
                return Err(self.tokens.error(start, message));
            }
            self.names.insert(name, group);
        }
        self.groups.push(Group::Open);
        let node = self.inside(start, &mut state.clone(), depth)?;
        self.groups[group] = Group::Closed(node.width());
        Ok(Bracket::Piece(Node::Capture(group, Box::new(node))))
    }

    fn python_extension(
        &mut self,
        start: usize,
        state: &State,
        depth: usize,
    ) -> Result<Bracket, InvalidPattern> {
        match self.tokens.take() {
            Some(Token::Plain('<')) => {
                let name = self.group_name('>')?;
                self.capture(Some(name), start, state, depth)
            }
            Some(Token::Plain('=')) => {
                let at = self.tokens.at();
                let name = self.group_name(')')?;
                let Some(&group) = self.names.get(&name) else {
                    return Err(self.tokens.error(at, format!("unknown group name '{name}'")));
                };
                Ok(Bracket::Piece(self.same(group, at, state)?))
            }
            Some(Token::Plain(c) | Token::Escaped(c)) => {
                Err(self.tokens.error(start + 1, format!("unknown extension ?P{c}")))
            }
            None => Err(self.tokens.error_here("unexpected end of pattern")),
        }
    }

    fn group_name(&mut self, end: char) -> Result<String, InvalidPattern> {
        let at = self.tokens.at();
        let name = self.tokens.take_until(end, "group name")?;
        if !is_identifier(&name) {
            return Err(self.tokens.error(at, format!("bad character in group name '{name}'")));
        }
        Ok(name)
    }

    fn comment(&mut self, start: usize) -> Result<Bracket, InvalidPattern> {
        loop {
            match self.tokens.take() {
                None => return Err(self.tokens.error(start, "missing ), unterminated comment")),
                Some(token) if token.is(')') => return Ok(Bracket::NoPiece),
                Some(_) => {}
            }
        }
    }

    fn look(
        &mut self,
        behind: bool,
        wanted: bool,
        start: usize,
        state: &State,
        depth: usize,
    ) -> Result<Bracket, InvalidPattern> {
        let outer = self.behind;
        if behind && outer.is_none() {
            self.behind = Some(self.groups.len());
        }
        let node = Box::new(self.inside(start, &mut state.clone(), depth)?);
        self.behind = outer;
        let side = if behind {
            let width = node.width();
            if width.min != width.max {
                return Err(self.tokens.error(start, "look-behind requires fixed-width pattern"));
            }
            match u32::try_from(width.min) {
                Ok(width) => Side::Behind(width),
                Err(_) => return Err(self.tokens.error(start, "looks too much behind")),
            }
        } else {
            Side::Ahead
        };
        Ok(Bracket::Piece(Node::Look { side, wanted, node }))
    }

    fn condition(&mut self, start: usize, state: &State, depth: usize) -> Result<Bracket, InvalidPattern> {
        let at = self.tokens.at();
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
        if depth >= DEEPEST {
            return Err(self.tokens.error_here(format!("nests deeper than {DEEPEST} groups")));
        }
        let then = Box::new(self.sequence(&mut state.clone(), depth + 1, false)?);
        let otherwise = if self.tokens.take_if('|') {
            let otherwise = self.sequence(&mut state.clone(), depth + 1, false)?;
            if self.tokens.peek_is('|') {
                return Err(self.tokens.error_here("conditional backref with more than two branches"));
            }
            otherwise
        } else {
            Node::All(Vec::new())
        };
        self.close(start)?;
        Ok(Bracket::Piece(Node::IfMatched { group, then, otherwise: Box::new(otherwise) }))
    }

    pub(super) fn same(&mut self, group: usize, at: usize, state: &State) -> Result<Node, InvalidPattern> {
        let width = match self.groups.get(group) {
            Some(Group::Closed(width)) => *width,
            Some(Group::Open) => return Err(self.tokens.error(at, "cannot refer to an open group")),
            None => return Err(self.tokens.error(at, format!("invalid group reference {group}"))),
        };
        self.refuse_group_of_same_look_behind(group, at)?;
        Ok(Node::Same { group, width, fold: state.fold() })
    }

    fn refuse_group_of_same_look_behind(&self, group: usize, at: usize) -> Result<(), InvalidPattern> {
        let Some(before) = self.behind else { return Ok(()) };
        if !matches!(self.groups.get(group), Some(Group::Closed(_))) {
            return Err(self.tokens.error(at, "cannot refer to an open group"));
        }
        if group >= before {
            let message = "cannot refer to group defined in the same lookbehind subpattern";
            return Err(self.tokens.error(at, message));
        }
        Ok(())
    }
}

/// Python's `str.isidentifier`.
fn is_identifier(name: &str) -> bool {
    static IDENTIFIER: LazyLock<Option<regex::Regex>> =
        LazyLock::new(|| regex::Regex::new(r"\A[\p{XID_Start}_]\p{XID_Continue}*\z").ok());
    IDENTIFIER.as_ref().is_some_and(|identifier| identifier.is_match(name))
}
