//! Plans, workspaces, supervised runs, grading and the store of runs.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod captured;
pub mod history;
pub mod intake;
pub mod judge;
pub mod key;
pub mod marking;
pub mod modes;
pub mod observe;
pub mod options;
pub mod pipeline;
pub mod plan;
pub mod probe;
pub mod quality;
pub mod recall;
pub mod run;
pub mod sandbox;
pub mod self_test;
pub mod session;
pub mod settings;
pub mod stage;
pub mod store;
pub mod transcript;
