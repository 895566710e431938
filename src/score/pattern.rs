//! Patterns in Python's `re` syntax: the linear-time engine whenever the pattern allows, else one
//! with bounded backtracking.

use std::fmt;
use std::ops::Range;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(fancy_regex::Regex),
}

/// The pattern needs more backtracking than anyone should wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooHard;

impl fmt::Display for TooHard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("backtracks without end on this text; write it without nested repetition")
    }
}

/// How far the backtracking engine may go for one search.
const BACKTRACK_LIMIT: usize = 1_000_000;

impl Pattern {
    pub fn new(source: &str) -> Result<Self, String> {
        let engine = match regex::Regex::new(source) {
            Ok(regex) => Engine::Linear(regex),
            Err(_) => Engine::Backtracking(
                fancy_regex::RegexBuilder::new(source)
                    .backtrack_limit(BACKTRACK_LIMIT)
                    .build()
                    .map_err(|error| error.to_string())?,
            ),
        };
        Ok(Self { source: source.to_owned(), engine })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Where it matches first.
    pub fn find(&self, text: &str) -> Result<Option<Range<usize>>, TooHard> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.find(text).map(|found| found.range())),
            Engine::Backtracking(regex) => {
                Ok(regex.find(text).map_err(|_| TooHard)?.map(|found| found.start()..found.end()))
            }
        }
    }
}
