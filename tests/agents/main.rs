//! Real agent programs, what they print, and what they can reach.

#[path = "../common/mod.rs"]
mod common;

mod captures;
mod isolation;
mod mocks;
mod plugin;
mod real_activation;
mod real_claude;
mod real_codex;
mod real_opencode;
// What it tries to reach are things of Linux.
#[cfg(target_os = "linux")]
mod sandbox;
