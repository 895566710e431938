//! Domain types, source trees with positions, run events, statistics.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod aggregate;
pub mod compare;
pub mod event;
pub mod model;
pub mod stats;
pub mod tree;
