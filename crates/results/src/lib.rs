//! Results of stored runs for people and machines: reports in many formats, and the viewer in a browser.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod report;
pub mod serve;
