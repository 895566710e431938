//! Keeps an eye on a process: starts it, listens, and ends it with everything it started.
//!
//! In: a `Launch` and limits. Out: how the process ended, and its stream, decoded.
//! Never: decides pass or fail.

mod blocking;
mod conversation;
mod decode;
mod kept;
mod lay_out;
mod memory;
mod proc;
mod process;
mod script;
mod tree;

pub use blocking::run_blocking;
pub use conversation::{Conversation, Conversed, converse};
pub use decode::decode;
pub use lay_out::lay_out;
pub use memory::{Held, Memory};
pub use process::{Cancel, Output, Supervised, supervise};
pub use script::{ScriptEnd, ScriptScene, run_script};
pub use tree::{MARKER, adopt_orphans, sweep_orphans, sweep_run};
