//! Skills on disk: reading and linting them, keeping their versions, and deciding which files of a project an agent may
//! see.

#![warn(missing_docs)]
// The print macros panic when the reader of the output has gone, and that must not end a run.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[doc(hidden)]
pub mod git_ref;
pub mod lint;
#[doc(hidden)]
pub mod own_files;
#[doc(hidden)]
pub mod project_files;
pub mod skill;
#[doc(hidden)]
pub mod versions;
