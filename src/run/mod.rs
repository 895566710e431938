//! Keeps an eye on a process: starts it, listens, and ends it with everything it started.
//!
//! In: a `Launch` and limits. Out: how the process ended, its stream decoded as it came.
//! Never: decides pass or fail.

mod conversation;
mod process;
mod script;
mod tree;

pub use conversation::{Conversation, converse};
pub use process::{Cancel, Output, Supervised, decode_kept, may_be_cut, supervise};
pub use script::{ScriptEnd, ScriptScene, run_script};
pub use tree::{MARKER, adopt_orphans, sweep, sweep_run};
