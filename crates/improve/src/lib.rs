//! Improves a skill with the help of its evals: compares versions blindly, analyses runs, proposes edits and runs the
//! improve loop.

#![warn(missing_docs)]
// The print macros panic if nobody reads the output any more, and a run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[doc(hidden)]
pub mod improve;
