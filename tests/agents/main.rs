//! Real agent programs, what they print, and what they can reach.

#[path = "../common/mod.rs"]
mod common;

mod acp;
mod captures;
mod isolation;
mod mocks;
mod paraphrases;
mod played_servers;
mod plugin;
mod real_activation;
mod real_claude;
mod real_codex;
mod real_copilot;
mod real_gemini;
mod real_goose;
mod real_opencode;
mod real_qwen;
mod real_sessions;
mod recorded_servers;
mod stream_tables;
// What it tries to reach are things of Linux.
#[cfg(target_os = "linux")]
mod sandbox;
mod simulated_user;
