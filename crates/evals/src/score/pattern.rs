//! Patterns in Python's `re` syntax and with its meaning, because that is what people's eval
//! files are written in.
//!
//! In: a pattern and a text. Out: where it matches, how often, whether it spans the text; or that
//! the pattern is wrong, at the place and in the words of Python. Never: an endless search.
//!
//! The pattern is read into a tree. The linear-time engine takes it whenever tree and text allow
//! the same answer there; everything else goes to an engine of our own that counts its steps.
//! (The crates that backtrack bound the number of ways back, but not the work between them.)

mod backtrack;
mod characters;
mod fold;
mod group;
mod head;
mod inline_flags;
mod linear;
mod names;
mod parse;
mod program;
mod sets;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use backtrack::Machine;
use linear::{Demands, Linear};
use program::Program;
use syntax::{Node, Width};

/// A pattern that can be searched for. Cheap to clone.
#[derive(Clone)]
pub struct Pattern {
    inner: Arc<Inner>,
}

struct Inner {
    source: String,
    node: Node,
    groups: usize,
    width: Width,
    demands: Demands,
    linear: Linear,
    program: OnceLock<Program>,
}

/// Flags given beside the pattern, as arguments of `re.compile`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `^` and `$` also match at line ends.
    pub multiline: bool,
    pub ignore_case: bool,
}

/// What Python would not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPattern {
    pub message: String,
    /// In characters, from 0.
    pub at: usize,
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {}", self.message, self.at)
    }
}

impl std::error::Error for InvalidPattern {}

/// The pattern needs more backtracking than anyone should wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooHard;

impl fmt::Display for TooHard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("backtracks without end on this text; write it without nested repetition")
    }
}

impl std::error::Error for TooHard {}

impl Pattern {
    pub fn new(source: &str) -> Result<Self, InvalidPattern> {
        Self::with(source, Flags::default())
    }

    pub fn with(source: &str, flags: Flags) -> Result<Self, InvalidPattern> {
        let parse::Parsed { node, groups } = parse::parse(source, flags)?;
        let inner = Inner {
            source: source.to_owned(),
            width: node.width(),
            demands: Demands::of(&node),
            node,
            groups,
            linear: Linear::default(),
            program: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Where it matches first: `re.search`.
    pub fn find(&self, text: &str) -> Result<Option<Range<usize>>, TooHard> {
        let Some(search) = self.linear(text, false) else { return self.machine(text).find(0, false) };
        let found = search.regex.find(&search.text).map(|found| found.range());
        if !self.inner.demands.empty_turns || found.is_none() {
            return Ok(found);
        }
        // It is there, and it begins here. If only its end is too hard to tell, this end will do.
        Ok(self.machine(text).find(0, false).unwrap_or(found))
    }

    pub fn is_match(&self, text: &str) -> Result<bool, TooHard> {
        match self.linear(text, false) {
            Some(search) => Ok(search.regex.is_match(&search.text)),
            None => Ok(self.machine(text).find(0, false)?.is_some()),
        }
    }

    /// Whether it matches the text from end to end: `re.fullmatch`.
    pub fn is_full_match(&self, text: &str) -> Result<bool, TooHard> {
        match self.linear(text, true) {
            Some(search) => Ok(search.regex.is_match(&search.text)),
            None => self.machine(text).spans_text(),
        }
    }

    /// How many matches there are that do not overlap: the length of `re.finditer`.
    pub fn count(&self, text: &str) -> Result<usize, TooHard> {
        // After an empty match Python looks for one at the same place that is not, which the
        // linear engine cannot.
        let Width { min, max } = self.inner.width;
        let countable = (min > 0 || max == 0) && !self.inner.demands.empty_turns;
        let search = countable.then(|| self.linear(text, false)).flatten();
        if let Some(search) = search {
            return Ok(search.regex.find_iter(&search.text).count());
        }
        let mut machine = self.machine(text);
        let (mut count, mut from, mut advance) = (0, 0, false);
        while let Some(found) = machine.find(from, advance)? {
            count += 1;
            advance = found.is_empty();
            from = found.end;
        }
        Ok(count)
    }

    fn linear<'t>(&self, text: &'t str, whole: bool) -> Option<linear::Search<'_, 't>> {
        self.inner.linear.search(&self.inner.node, self.inner.demands, text, whole)
    }

    fn machine<'t>(&self, text: &'t str) -> Machine<'_, 't> {
        let inner = &*self.inner;
        Machine::new(inner.program.get_or_init(|| Program::new(&inner.node, inner.groups)), text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.inner.source)
    }
}
