//! Eval files of every format, and the deterministic checks in them.

// The print macros panic if nobody reads the output any more, and a run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod checks;
pub mod dialects;
pub mod discover;
pub mod first_evals;
pub mod url_check;
