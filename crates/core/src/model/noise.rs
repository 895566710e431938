//! The noise of cases: results that vary although nothing was changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much the same thing differs from itself: `.practicum/noise.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "How much the same thing differs from itself (noise.json, noise --json)")]
pub struct Noise {
    #[schemars(extend("const" = 1))]
    pub schema_version: u32,
    pub cases: Vec<NoisyCase>,
}

/// Runs of one case in which nothing was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoisyCase {
    pub suite: String,
    pub id: String,
    pub agent: String,
    pub model: Option<String>,
    pub mode: String,
    pub arm: String,
    /// Those with a verdict.
    pub runs: u64,
    pub passed: u64,
    /// How often two of them differ; `None` with fewer than two.
    pub flip_rate: Option<f64>,
}

impl NoisyCase {
    /// Says whether the case both passed and failed although nothing was changed.
    pub fn is_flaky(&self) -> bool {
        self.passed > 0 && self.passed < self.runs
    }
}
