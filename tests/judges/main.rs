//! Judges, and the model gateway that answers, records and replays.

#[path = "../common/mod.rs"]
mod common;

mod gateway_modes;
mod judge_injection;
mod judge_transports;
mod judging;
mod pictures;
