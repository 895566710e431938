use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Doubts, GateResult};

/// The summary document: `run --json`, `report --format json` and `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Summary of a run (summary.json, run --json)")]
pub struct Summary {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    /// The run's id, which is also its folder's name.
    pub run: String,
    /// Whether the exit code is 0.
    pub ok: bool,
    /// The exit code.
    pub exit: u8,
    pub totals: Totals,
    /// `None` when any trial's cost is not known.
    pub cost_usd: Option<f64>,
    pub tokens: Tokens,
    /// How long the whole run took.
    pub seconds: f64,
    pub gates: Vec<GateResult>,
    /// One for each case under each condition, in the order of the plan.
    pub cases: Vec<CaseSummary>,
    /// What the judges themselves, and the checks of their quotes, leave in doubt.
    #[serde(default)]
    pub doubts: Doubts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    pub trials: u64,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseSummary {
    pub id: String,
    pub suite: String,
    pub agent: String,
    /// The model that was asked for; `None` is the agent's own choice.
    pub model: Option<String>,
    /// `with` or `without` the skill, or a version of it like `v2`.
    pub arm: String,
    pub mode: String,
    /// Trials, by their verdict.
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// How the agent's processes ended, and how often.
    pub endings: BTreeMap<String, u64>,
    /// In how many trials the skill fired by itself.
    pub fired: FiredCount,
    pub checks: Vec<CheckSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FiredCount {
    pub yes: u64,
    pub no: u64,
    pub unknown: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckSummary {
    pub id: String,
    pub passed: u64,
    pub failed: u64,
    pub not_scored: u64,
    /// Over the trials that have a score, on the check's own scale.
    pub mean_score: Option<f64>,
}
