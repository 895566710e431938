//! Patterns with the syntax and meaning of Python's `re`, because people's eval files use it.
//!
//! In: a pattern and a text. Out: where the pattern matches, how often, and whether it matches the whole text; or
//! an error in the pattern, with Python's position and message. Never: an endless search.
//!
//! The pattern is parsed into a tree. The linear-time engine runs it if it gives Python's answer for this tree and
//! this text. Otherwise our own backtracking engine runs it, which counts its steps. (The crates that backtrack
//! limit the number of backtracks, but not the work between them.)

mod backtrack;
mod case_folding;
mod character_names;
mod characters;
mod group;
mod inline_flags;
mod linear;
mod match_start;
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

use backtrack::Backtracker;
use linear::{EngineDemands, LinearRegexes};
use program::PatternProgram;
use syntax::{MatchWidth, PatternNode};

/// A compiled pattern. Cheap to clone.
#[derive(Clone)]
pub struct PythonPattern {
    inner: Arc<PatternData>,
}

struct PatternData {
    source: String,
    node: PatternNode,
    groups: usize,
    width: MatchWidth,
    demands: EngineDemands,
    linear: LinearRegexes,
    program: OnceLock<PatternProgram>,
}

/// Flags that are given beside the pattern, like the arguments of `re.compile`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatternFlags {
    /// `^` and `$` also match at line ends.
    pub multiline: bool,
    /// Whether upper and lower case count as the same.
    pub ignore_case: bool,
}

/// An error in a pattern that Python would not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPattern {
    /// What is wrong with the pattern.
    pub message: String,
    /// The position of the error in characters, from 0.
    pub position: usize,
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {}", self.message, self.position)
    }
}

impl std::error::Error for InvalidPattern {}

/// An error: the search needs more backtracking steps than are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuchBacktracking;

impl fmt::Display for TooMuchBacktracking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("backtracks without end on this text; write it without nested repetition")
    }
}

impl std::error::Error for TooMuchBacktracking {}

impl PythonPattern {
    /// Compiles a pattern without flags.
    pub fn new(source: &str) -> Result<Self, InvalidPattern> {
        Self::with_flags(source, PatternFlags::default())
    }

    /// Compiles a pattern with flags.
    pub fn with_flags(source: &str, flags: PatternFlags) -> Result<Self, InvalidPattern> {
        let parse::ParsedPattern { node, groups } = parse::parse_pattern(source, flags)?;
        let inner = PatternData {
            source: source.to_owned(),
            width: node.width(),
            demands: EngineDemands::from_node(&node),
            node,
            groups,
            linear: LinearRegexes::default(),
            program: OnceLock::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Gives the pattern as it was written.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Finds the first match, as `re.search` does.
    pub fn find(&self, text: &str) -> Result<Option<Range<usize>>, TooMuchBacktracking> {
        let Some(search) = self.linear_search(text, false) else {
            return self.backtracker(text).find(0, false);
        };
        let found = search.regex.find(&search.text).map(|found| found.range());
        if !self.inner.demands.empty_turns || found.is_none() {
            return Ok(found);
        }
        // There is a match, and it begins here. If finding the exact end takes too many steps, the linear engine's
        // end is good enough.
        Ok(self.backtracker(text).find(0, false).unwrap_or(found))
    }

    /// Says whether the pattern is found in a text.
    pub fn is_match(&self, text: &str) -> Result<bool, TooMuchBacktracking> {
        match self.linear_search(text, false) {
            Some(search) => Ok(search.regex.is_match(&search.text)),
            None => Ok(self.backtracker(text).find(0, false)?.is_some()),
        }
    }

    /// Says whether the pattern matches the whole text, as `re.fullmatch` does.
    pub fn is_full_match(&self, text: &str) -> Result<bool, TooMuchBacktracking> {
        match self.linear_search(text, true) {
            Some(search) => Ok(search.regex.is_match(&search.text)),
            None => self.backtracker(text).matches_whole_text(),
        }
    }

    /// Counts the matches that do not overlap: the length of `re.finditer`.
    pub fn count(&self, text: &str) -> Result<usize, TooMuchBacktracking> {
        // After an empty match, Python looks for a match at the same position that is not empty. The linear engine
        // cannot do that.
        let MatchWidth { min, max } = self.inner.width;
        let countable = (min > 0 || max == 0) && !self.inner.demands.empty_turns;
        let search = countable.then(|| self.linear_search(text, false)).flatten();
        if let Some(search) = search {
            return Ok(search.regex.find_iter(&search.text).count());
        }
        let mut machine = self.backtracker(text);
        let (mut count, mut from, mut advance) = (0, 0, false);
        while let Some(found) = machine.find(from, advance)? {
            count += 1;
            advance = found.is_empty();
            from = found.end;
        }
        Ok(count)
    }

    fn linear_search<'t>(&self, text: &'t str, whole: bool) -> Option<linear::LinearSearch<'_, 't>> {
        self.inner.linear.search(&self.inner.node, self.inner.demands, text, whole)
    }

    fn backtracker<'t>(&self, text: &'t str) -> Backtracker<'_, 't> {
        let inner = &*self.inner;
        Backtracker::new(inner.program.get_or_init(|| PatternProgram::new(&inner.node, inner.groups)), text)
    }
}

impl fmt::Debug for PythonPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.inner.source)
    }
}
