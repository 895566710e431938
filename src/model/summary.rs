use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::GateResult;

/// The summary document: `run --json`, `report --format json` and `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub schema_version: u32,
    pub run: String,
    pub ok: bool,
    pub exit: u8,
    pub totals: Totals,
    /// `None` when any trial's cost is not known.
    pub cost_usd: Option<f64>,
    pub tokens: Tokens,
    pub seconds: f64,
    pub gates: Vec<GateResult>,
    pub cases: Vec<CaseSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub trials: u64,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseSummary {
    pub id: String,
    pub suite: String,
    pub agent: String,
    pub model: Option<String>,
    pub arm: String,
    pub mode: String,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    pub endings: BTreeMap<String, u64>,
    pub fired: FiredCount,
    pub checks: Vec<CheckSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiredCount {
    pub yes: u64,
    pub no: u64,
    pub unknown: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckSummary {
    pub id: String,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    pub mean_score: Option<f64>,
}
