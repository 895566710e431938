//! Skills on disk: reading and linting them, keeping their versions, and deciding which files of a project an agent may
//! see.

// Printing panics when nobody reads any more, and a run must not end with its reader.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod git_ref;
pub mod lint;
pub mod own_files;
pub mod project_files;
pub mod skill;
pub mod versions;
