//! Practicum gives agent skills their practical exam. `ARCHITECTURE.md` says how it is built.

pub mod builtin;
pub mod gateway;
pub mod llm;
pub mod model;
pub mod tree;
