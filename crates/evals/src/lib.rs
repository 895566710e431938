//! Eval files of every format, and the deterministic checks they ask for.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod checks;
pub mod dialects;
pub mod discover;
pub mod first_evals;
pub mod url_check;
