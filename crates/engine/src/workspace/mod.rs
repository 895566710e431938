//! What happens around one agent process: its workspace, its sandbox, its supervision, and what was observed of it.
//!
//! `stage` makes the folder that the agent works in, `sandbox` limits what the agent can reach, `limits` what it
//! can use up, `run` supervises the process, `mocks` answers calls of mocked servers and commands, `observe` turns the
//! output of the process into an `Observation`, and `pictures` shows files that are no text.

mod disk_usage;
pub mod limits;
pub mod mocks;
pub mod observe;
pub mod pictures;
pub mod run;
pub mod sandbox;
mod secret_forms;
pub mod secrets;
pub mod stage;
