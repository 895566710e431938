//! Workers: trials that run in other processes, with a real NATS server between them.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod damage;
mod ends;
mod equal;
mod forged;
mod limits;
mod proxy;
mod refusals;
mod setup;
mod steps;
mod stranger;
mod throughput;
