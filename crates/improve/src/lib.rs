//! Improves a skill with the help of its evals: compares versions blindly, analyses runs, proposes edits and runs the
//! improve loop.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod improve;
