//! The loop over a skill's versions, with the builtin agent and scripted models.

#[path = "../common/mod.rs"]
mod common;

mod description;
mod ferry;
mod kills;
mod limits;
mod proposers;
mod rounds;
mod wire;
