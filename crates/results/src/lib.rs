//! Results of stored runs for people and machines: reports in many formats, and the viewer in a browser.

#![warn(missing_docs)]
// The print macros panic when the reader of the output has gone, and that must not end a run.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod report;
#[doc(hidden)]
pub mod serve;
