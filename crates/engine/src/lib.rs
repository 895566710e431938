//! Runs evals: plans trials, stages workspaces, supervises agents, grades what they did and stores the results.
//!
//! Start with `session::Session`, which takes the options of a run and gives its results.

// Printing panics when the reader of the output has gone. A run must not end because of that.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod grade_text;
pub mod grading;
pub mod history;
pub mod judge;
pub mod observe;
pub mod options;
pub mod pipeline;
pub mod plan;
pub mod probe_diagnosis;
pub mod reload_trial;
pub mod run;
pub mod run_setup;
pub mod sandbox;
pub mod self_test;
pub mod session;
pub mod settings;
pub mod stage;
pub mod store;
pub mod suite_quality;
pub mod system_prompt;
pub mod transcript;
pub mod trial_key;
