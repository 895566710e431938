//! Practicum gives agent skills their practical exam. `ARCHITECTURE.md` says how it is built.

pub mod agents;
pub mod aggregate;
pub mod builtin;
pub mod cli;
pub mod dialects;
pub mod discover;
pub mod event;
pub mod gateway;
pub mod intake;
pub mod judge;
pub mod llm;
pub mod model;
pub mod observe;
pub mod pipeline;
pub mod plan;
pub mod quality;
pub mod report;
pub mod run;
pub mod schema;
pub mod score;
pub mod settings;
pub mod skill;
pub mod stage;
pub mod store;
pub mod tree;
