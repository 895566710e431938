//! What many runs tell together.
//!
//! In: the index. Out: trends, doubts about checks, estimates, badges, tables. Never: reads a run
//! directory, runs anything.

mod audit;
mod badge;
mod estimate;
mod export;
mod trend;

pub use audit::{Audited, Concern, Doubt, audit};
pub use badge::{Badge, Shields};
pub use estimate::{Estimate, Wanted, estimate};
pub use export::{ExportedCheck, ExportedTrial, Format, Table, export};
pub use trend::{Trend, TrendPoint, sparkline, trend};
