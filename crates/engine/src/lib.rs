//! Runs evals: plans trials, stages workspaces, supervises agents, grades what they did and stores the results.
//!
//! Start with `session::Session`, which takes the options of a run and gives its results.

#![warn(missing_docs)]
// Printing panics when the reader of the output has gone. A run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[doc(hidden)]
pub mod grade;
#[doc(hidden)]
pub mod pipeline;
#[doc(hidden)]
pub mod plan;
pub mod session;
pub mod store;
#[doc(hidden)]
pub mod workspace;
