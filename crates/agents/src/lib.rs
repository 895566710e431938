//! Agent command lines and the decoders of their output, the built-in agent, clients for model APIs, and the model
//! gateway that scripts, meters, records and replays answers.

#![warn(missing_docs)]
// The print macros panic when the reader of the output has gone, and that must not end a run.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod agents;
#[doc(hidden)]
pub mod builtin;
#[doc(hidden)]
pub mod gateway;
#[doc(hidden)]
pub mod llm;
