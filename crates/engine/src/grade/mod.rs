//! Grading: deterministic checks and judges decide about a trial, a stored record or a text from elsewhere.
//!
//! `grading` is the one path for all three. `judge` asks a model, `grade_text` grades a text or a recorded session
//! (`captured_output`) without a run, and `self_test` grades an agent that does nothing and each output that is known
//! to be good.

pub mod captured_output;
pub mod grade_text;
pub mod grading;
pub mod judge;
pub mod self_test;
mod services;
pub(crate) mod skill_texts;

pub use services::{GatewayRole, SuiteServices};
