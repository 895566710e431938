//! Eval files of every supported format, and the deterministic checks that their cases contain.
//!
//! A new format is a file in `dialects`, a new check a file in `checks`.

#![warn(missing_docs)]
// The print macros panic if nobody reads the output any more, and a run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod checks;
pub mod dialects;
pub mod discover;
#[doc(hidden)]
pub mod first_evals;
pub mod mocks;
#[doc(hidden)]
pub mod rewordings;
#[doc(hidden)]
pub mod routing_prompts;
#[doc(hidden)]
pub mod url_check;
