//! Supervises a process: starts it, reads its output, and ends it together with everything it started.
//!
//! In: a `Launch` and limits. Out: how the process ended, and its stream, decoded. Never: decides pass or fail.

mod blocking;
mod check_command;
mod control_group;
mod conversation;
mod decode;
mod dialogue;
mod isolated_program;
mod launch_files;
mod memory;
mod process;
#[cfg_attr(target_os = "linux", path = "proc_fs.rs")]
#[cfg_attr(target_os = "macos", path = "process_table_macos.rs")]
mod process_table;
mod process_tree;
mod script;
mod stream_capture;
mod watchdog;

pub use blocking::run_blocking;
pub use check_command::CheckedWorkspace;
pub use control_group::control_groups_work;
pub use conversation::{
    AgentMessage, Conversation, ConversationResult, ConversationUser, UserMove, run_conversation,
};
pub use decode::decode;
pub use isolated_program::ProgramIsolation;
pub use launch_files::{LoginAccess, write_launch_files};
pub use memory::{MemoryPermit, TranscriptMemory};
pub use process::{CancelToken, OutputFiles, ProcessResult, ProcessRules, supervise};
pub use process_table::{adopt_orphans, start_time};
pub use process_tree::MARKER_VARIABLE;
pub(crate) use process_tree::{kill_orphans, kill_run_processes};
pub(crate) use script::run_script;
pub use script::{ScriptContext, ScriptEnd};
