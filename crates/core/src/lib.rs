//! Types that every other crate uses: the domain model, source files as trees with positions, run events, statistics,
//! the summary of a run, the comparison of two runs, and studies over several runs.
//!
//! Uses no other crate of the workspace.

#![warn(missing_docs)]
// The print macros panic when the reader of the output has gone, and that must not end a run.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Practicum runs on Linux and macOS. On Windows, install and run it inside WSL.");

pub mod aggregate;
pub mod compare;
pub mod event;
pub mod model;
pub mod stats;
pub mod studies;
pub mod tree;
