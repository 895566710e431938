//! Practicum gives agent skills their practical exam. `ARCHITECTURE.md` says how it is built.

pub mod dialects;
pub mod model;
pub mod score;
pub mod skill;
pub mod tree;
