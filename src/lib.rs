//! Practicum gives agent skills their practical exam. `ARCHITECTURE.md` says how it is built.

pub mod model;
pub mod score;
pub mod tree;
