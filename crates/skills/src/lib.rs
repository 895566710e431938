//! Skills on disk: reading and linting them, keeping their versions, and deciding which files of a project an agent may
//! see.

// The print macros panic when the reader of the output has gone, and that must not end a run.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod git_ref;
pub mod lint;
pub mod own_files;
pub mod project_files;
pub mod skill;
pub mod versions;
