//! Real agent programs, what they print, and what they can reach.

#[path = "../common/mod.rs"]
mod common;

mod captures;
mod isolation;
mod real_activation;
mod real_claude;
mod real_codex;
mod real_opencode;
mod sandbox;
