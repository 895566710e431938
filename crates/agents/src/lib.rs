//! Agent command lines and the decoders of their output, the built-in agent, clients for model APIs, and the model
//! gateway that scripts, meters, records and replays answers.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod agents;
pub mod builtin;
pub mod gateway;
pub mod llm;
