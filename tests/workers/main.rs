//! Workers: trials that run in other processes, with a real NATS server between them.

#[path = "../common/mod.rs"]
mod common;

mod ends;
mod equal;
mod refusals;
mod setup;
mod throughput;
