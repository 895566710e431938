//! Results over many runs.
//!
//! In: the index. Out: trends, doubtful checks, estimates, badges, tables. Never: reads a run directory; runs
//! anything.

mod audit;
mod badge;
mod estimate;
mod export;
mod trend;

pub use audit::{AuditReport, DoubtReason, DoubtfulCheck, audit};
pub use badge::{Badge, ShieldsEndpoint};
pub use estimate::{EstimatedTrialKind, RunEstimate, estimate_run};
pub use export::{
    ExportFormat, ExportTable, ExportedCheck, ExportedTrial, export, write_csv_row, write_table,
};
pub use trend::{Trend, TrendPoint, sparkline, trend};
